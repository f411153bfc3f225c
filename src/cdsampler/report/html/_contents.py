"""The page's sections, in order. Each begins with one sentence: what is shown, and how to read it."""

from cdsampler.benchmark.fronts import ACCOUNTINGS, N_RESAMPLES, REACHED
from cdsampler.report.html import _sections as sections
from cdsampler.report.html._markup import both, escaped, image, section, swatch
from cdsampler.report.html._pictures import Picture
from cdsampler.report.html._sweep import Sweep

_COSTS = {
    "independent": "of an independent sample",
    "returned": "of a returned sample, tuning included",
}
_SAMPLES = {
    "samples": (
        "Samples beside exact draws",
        "Dots are samples of each sampler at its largest budget, over the density of exact draws in grey: all of the "
        "grey should hold dots, in proportion, and no dots should lie elsewhere.",
    ),
    "energies": (
        "Energies",
        "How the energies of the samples are distributed at each sampler's largest budget, over those of the reference "
        "in grey: the line should follow the grey's edge.",
    ),
    "ramachandran": (
        "Ramachandran plots",
        "Free energies of two backbone angles at each sampler's largest budget, beside the reference's: the same wells "
        "should be as deep, and the weight of the rare basin C7ax (φ &gt; 0) should agree.",
    ),
}


def body(sweep: Sweep, pictures: list[Picture], studies: list[Picture]) -> str:
    """Return all sections that the sweep has something for."""
    parts = [_summary(sweep), _fronts(sweep), _hypervolumes(sweep), _samples(pictures), _studies(studies)]
    parts += [_failures(sweep), _provenance(sweep)]
    return "\n".join(part for part in parts if part)


def controls(sweep: Sweep) -> str:
    """Return the buttons that choose the accounting and the samplers."""
    chips = "".join(
        f'<button type="button" class="chip" data-label="{escaped(label)}" aria-pressed="true">'
        f"{swatch(look)}{escaped(label)}</button>"
        for label, look in sweep.looks.items()
    )
    switches = "".join(
        f'<button type="button" class="switch" data-switch="{name}" aria-pressed="false">{_COSTS[name]}</button>'
        for name in ACCOUNTINGS
    )
    return (
        f'<div class="group" role="group" aria-label="What a sample costs"><span>Cost</span>{switches}</div>'
        f'<div class="group" role="group" aria-label="Samplers shown in the plots"><span>Show</span>{chips}</div>'
    )


def _summary(sweep: Sweep) -> str:
    lead = (
        "Which sampler gives good samples for the fewest evaluations: those higher up do, by their mean hypervolume "
        "ratio, and the tasks' columns say how many evaluations a sample of theirs takes until it is about as good as "
        "an exact one."
    )
    more = (
        "The floor is the error that exact draws of the same number have, and about as good is an error within "
        f"{REACHED:g} × the floor; the least cost is bold. The hypervolume ratio is 1 for the best trade of error for "
        "evaluations on every task, and 0 for none; small figures are its 5–95 % over resamples of the repeats."
    )
    details = (
        "<details><summary>By every metric</summary><p class='small'>The smallest cost tested at which the mean "
        f"multiple of the floor over the repeats is at most {REACHED:g}, of the best configuration: hover a figure to "
        f"see which.</p>{''.join(both(name, sections.reach_table(sweep, name)) for name in ACCOUNTINGS)}</details>"
    )
    parts = [both(name, sections.summary_table(sweep, name)) for name in ACCOUNTINGS]
    return section("summary", "In short", lead, _small(more), *parts, details, sections.quantity_table(sweep))


def _fronts(sweep: Sweep) -> str:
    lead = (
        "The least error that each price buys, on logarithmic axes: lower is better, further left is cheaper, and the "
        "dashed floor is the error of exact draws."
    )
    more = (
        "A line falls at each configuration that nothing cheaper matches; faint dots are those that others beat, and "
        f"bands hold 5–95 % of {N_RESAMPLES} resamples of the repeats, and are too narrow where these are two or "
        "three. Hover a point for its configuration; the buttons above hide samplers, and the axes fit the rest. The "
        "MMD² is unbiased, so that good samples come below its floor. A front takes the best of several "
        "configurations, each a mean over few repeats, and is a little too good for that, the more so the more "
        "configurations a sampler has. A configuration with an error that was not finite in any repeat is on none."
    )
    blocks = [f'<h3>{escaped(task)}</h3><div class="plots" data-task="{escaped(task)}"></div>' for task in sweep.tasks]
    script = "<noscript><p>The plots need JavaScript; the same are in the folder figures/.</p></noscript>"
    return section("fronts", "Error against cost", lead, _small(more), script, *blocks)


def _hypervolumes(sweep: Sweep) -> str:
    lead = (
        "Each front as one number, the greater the better: the area that it dominates, as a share of what the front of "
        "all samplers together does."
    )
    more = (
        "Areas are taken of the logarithms of cost and error, scaled to the range of all samplers on a task, up to "
        "(1.1, 1.1). Columns are means over tasks, and the mean is that of the columns. A sampler that was tried on a "
        "task and gave no samples has 0 there; one that was not tried is judged on its other tasks. Errors below .1 of "
        "the floor's standard deviation (the unbiased MMD² can be negative) count as that. The greatest is bold. "
        "Resamples are noisier than the repeats, and the front of all samplers gains the most by that: a band may lie "
        "below its figure."
    )
    parts = [both(name, sections.hypervolume_table(sweep, name)) for name in ACCOUNTINGS]
    return section("hypervolume", "Hypervolume ratios", lead, _small(more), *parts)


def _samples(pictures: list[Picture]) -> str:
    found = []
    for kind, (title, lead) in _SAMPLES.items():
        chosen = [picture for picture in pictures if picture.name.startswith(f"{kind}-")]
        if chosen:
            found.append(section(kind, title, lead, *_images(chosen)))
    return "\n".join(found)


def _studies(pictures: list[Picture]) -> str:
    if not pictures:
        return ""
    lead = (
        "What one setting does while all others stay: the error over its floor, where 1 (dashed) is as good as exact "
        "draws, with the range of the repeats as bars."
    )
    more = _small("A line for each sampler and budget; the largest budget is the strongest.")
    return section("study", "Effect of settings", lead, more, *_images(pictures))


def _failures(sweep: Sweep) -> str:
    lead = "Runs that gave no samples, and what the others warned of: read a sampler's figures with these in mind."
    more = _small("An infeasible run is one whose budget doesn't pay for a single step.")
    tables = sections.trouble_table(sweep), sections.warnings_table(sweep)
    return section("failures", "Failures and warnings", lead, more, *tables)


def _provenance(sweep: Sweep) -> str:
    lead = "Where the figures come from: the same request to the same version gives them again."
    return section("provenance", "Provenance", lead, sections.provenance(sweep))


def _images(pictures: list[Picture]) -> list[str]:
    return [image(picture.figure, picture.text, picture.title) for picture in pictures]


def _small(text: str) -> str:
    return f'<p class="small">{text}</p>'
