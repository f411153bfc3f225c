"""The page's sections, in order. Each begins with one sentence: what is shown, and how to read it."""

from cdsampler.benchmark.fronts import ACCOUNTINGS, REACHED
from cdsampler.report.html import _sections as sections
from cdsampler.report.html._markup import both, details, escaped, section, small, swatch
from cdsampler.report.html._origins import glossary, provenance
from cdsampler.report.html._picture import Picture
from cdsampler.report.html._sweep import Sweep
from cdsampler.report.html._troubles import trouble_tables, warnings_table

_COST_MEANINGS = {
    "independent": (
        "An independent sample costs all evaluations of the chain, or of the group of particles, that it comes from: "
        "the paper's account, for one draw of each is used. The other account is of a returned sample (switch above)."
    ),
    "returned": (
        "A returned sample costs all evaluations, the mode search and tuning included, divided by the samples "
        "returned; draws of one chain or group may depend on each other. The other account is of an independent "
        "sample (switch above)."
    ),
}
_MOST_BANDS = 8  # samplers whose bands can be told from each other
_SAMPLES = {
    "samples": (
        "Samples beside exact draws",
        "Dots are samples of each sampler at its largest budget, of its first repeat, over the density of exact "
        "draws in grey: all of the grey should hold dots, in proportion, and no dots should lie elsewhere.",
    ),
    "energies": (
        "Energies",
        "How the energies of the samples are distributed at each sampler's largest budget, over those of the "
        "reference in grey: the line should follow the grey's edge. All panels of a task have the same axes, and "
        "higher peaks than twice the reference's are cut.",
    ),
    "ramachandran": (
        "Ramachandran plots",
        "Free energies of two backbone angles at each sampler's largest budget, beside the reference's: the same wells "
        "should be as deep, and the weight of the rare basin C7ax (φ &gt; 0) should agree.",
    ),
}


def body(sweep: Sweep, pictures: list[Picture], studies: list[Picture]) -> str:
    """Return all sections that the sweep has something for."""
    parts = [_summary(sweep), _fronts(sweep), _hypervolumes(sweep), _quantities(sweep), _samples(pictures)]
    parts += [_studies(studies), _failures(sweep), _provenance(sweep)]
    return "\n".join(part for part in parts if part)


def controls(sweep: Sweep) -> str:
    """Return the buttons that choose the accounting, the samplers and their bands."""
    chips = "".join(
        f'<button type="button" class="chip" data-label="{escaped(label)}" aria-pressed="true">'
        f"{swatch(look)}{escaped(label)}</button>"
        for label, look in sweep.looks.items()
    )
    switches = "".join(
        f'<button type="button" class="switch" data-switch="{name}" aria-pressed="false">{text}</button>'
        for name, text in sections.COSTS.items()
    )
    has_bands = str(len(sweep.labels) <= _MOST_BANDS).lower()
    bands = f'<button type="button" id="bands" aria-pressed="{has_bands}">bands</button>'
    every = "".join(
        f'<button type="button" class="every" data-every="{name}">{name}</button>' for name in ("all", "none")
    )
    groups = {
        "What a sample costs": f"<span>Cost</span>{switches}",
        "What the plots show": f"<span>Show</span>{bands}{every}{chips}",
    }
    return "".join(f'<div class="group" role="group" aria-label="{k}">{v}</div>' for k, v in groups.items())


def _summary(sweep: Sweep) -> str:
    lead = (
        "Which sampler gives good samples for the fewest evaluations of the density? The best comes first. The "
        "columns of the tasks are the price of a good sample: the evaluations per sample from which the error is "
        "near its floor."
    )
    more = (
        "The <b>floor</b> is the error of as many exact draws: no sampler does better but by luck. <b>Near</b> is "
        f"within {REACHED:g} × the floor, in the mean of the repeats, at a budget that was run; the least cost is "
        "bold, and <i>not at more</i> marks what a larger budget of the same configuration did not confirm. The "
        "<b>hypervolume ratio</b> sums up the trade of error for evaluations over all metrics and tasks: 1 is the "
        "best on every one, 0 is none; small figures are its 5–95 % over resamples of the repeats. All of it is in "
        "tables/, too: evaluations_to_floor.csv and hypervolume_ratios.csv."
    )
    parts = [both(name, small(_COST_MEANINGS[name]) + sections.summary_table(sweep, name)) for name in ACCOUNTINGS]
    hint = small("Hover a figure for its configuration.")
    tables = [both(name, sections.reach_tables(sweep, name)) for name in ACCOUNTINGS]
    parts += [details("Evaluations to reach the floor by every metric", hint, *tables), glossary(sweep)]
    return section("summary", "In short", lead, small(more), *parts)


def _fronts(sweep: Sweep) -> str:
    lead = (
        "The least error that each price buys, on logarithmic axes: lower is better, further left is cheaper, and the "
        "dashed floor is the error of exact draws. A mean error below the floor is luck, and drawn at the floor."
    )
    more = (
        "A line falls at each configuration that nothing cheaper matches; faint dots are those that others beat. "
        "Hover a point for its configuration and its error as it was, or walk over the points of a plot with the Tab "
        "and arrow keys. The buttons above hide samplers, and the axes fit the rest; pointing at a button brings out "
        "its line."
    )
    caution = (
        f"Bands hold 5–95 % of {sweep.n_resamples} resamples of the repeats, and are too narrow where these are two or "
        "three. A front takes the best of several configurations, each a mean over few repeats, and is a little too "
        "good for that, the more so the more configurations a sampler has. A configuration with an error that was "
        "not finite in any repeat is on none. The MMD² is unbiased and may be negative; its floor is the mean size "
        "of that of exact draws."
    )
    blocks = [f'<h3>{escaped(task)}</h3><div class="plots" data-task="{escaped(task)}"></div>' for task in sweep.tasks]
    script = "<noscript><p>The plots need JavaScript; the same are in the folder figures/.</p></noscript>"
    notes = small(more), details("How sure the lines are", small(caution))
    return section("fronts", "Error against cost", lead, *notes, script, *blocks)


def _hypervolumes(sweep: Sweep) -> str:
    lead = (
        "Each front as one number, the greater the better: the area that it dominates, as a share of what the front of "
        "all samplers together does."
    )
    more = (
        "Areas are taken of the logarithms of cost and error, scaled to the range of all samplers on a task, up to "
        "(1.1, 1.1). Errors below the floor count as the floor, for nobody is better than exact draws; the column "
        "<i>not clipped</i> takes them as they are, which rewards luck. Columns are means over tasks, and the mean is "
        "that of the columns. The greatest is bold."
    )
    caution = (
        "A sampler that was tried on a task and gave no samples has 0 there; one that was not tried is judged on its "
        f"other tasks. Where all samplers are near the floor, the range of errors is taken to be {REACHED:g} × the "
        "floor, so that chance isn't blown up. Of errors that are not clipped, those below 0.1 of the floor's standard "
        "deviation (the unbiased MMD² can be negative) count as that. Resamples are noisier than the repeats, and the "
        "front of all samplers gains the most by that: a band may lie below its figure."
    )
    parts = [both(name, sections.hypervolume_table(sweep, name)) for name in ACCOUNTINGS]
    notes = small(more), details("Small print", small(caution))
    return section("hypervolume", "Hypervolume ratios", lead, *notes, *parts)


def _quantities(sweep: Sweep) -> str:
    lead = (
        "What is no error but should agree with exact draws: how many modes of a mixture have samples, the weight of a "
        "rare basin, or how well a posterior predicts."
    )
    found = sections.quantity_table(sweep)
    return section("quantities", "Modes, weights and likelihoods", lead, found) if found else ""


def _samples(pictures: list[Picture]) -> str:
    found = []
    for kind, (title, lead) in _SAMPLES.items():
        chosen = [picture for picture in pictures if picture.name.startswith(f"{kind}-")]
        if chosen:
            found.append(section(kind, title, lead, *(picture.html() for picture in chosen)))
    return "\n".join(found)


def _studies(pictures: list[Picture]) -> str:
    if not pictures:
        return ""
    lead = (
        "What one setting does while all others stay: the error over its floor, where 1 (dashed) is as good as exact "
        "draws, with the range of the repeats as bars."
    )
    more = small("A line for each sampler and budget; the largest budget is the strongest.")
    return section("study", "Effect of settings", lead, more, *(picture.html() for picture in pictures))


def _failures(sweep: Sweep) -> str:
    lead = (
        "Runs that gave no samples, and what the others warned of, those alike in one row: read a sampler's figures "
        "with these in mind. Every run by itself is in tables/runs.csv."
    )
    return section("failures", "Failures and warnings", lead, trouble_tables(sweep), warnings_table(sweep))


def _provenance(sweep: Sweep) -> str:
    lead = "Where the figures come from: the same request to the same version gives them again."
    return section("provenance", "Provenance", lead, provenance(sweep))
