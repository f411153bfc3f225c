"""Which reference width? The least divergence (the paper's rule) against the default, on GMNU-16.

python benchmarks/reference_width.py

For each forced width: the exact symmetrised divergence, the barrier, the cover, the error of the mode weights at equal
evaluations, and the warnings. Writes docs/results/reference-width.csv and docs/images/reference-width.png.
"""

import csv
import warnings
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cdsampler
from cdsampler import benchmark
from cdsampler.density import AbstractLogDensity
from cdsampler.metrics import evaluate
from cdsampler.report import save_figure
from cdsampler.tuning import find_mode, minimise_skl

DOCS = Path(__file__).parent.parent / "docs"
TASK, BUDGET, N_SAMPLES = "gmnu-16", 20_000, 256
WIDTHS = (5.0, 10.0, 20.0, 30.0, 50.0, 70.0, 100.0, 150.0)
STARTS = (10.0, 30.0, 100.0, 300.0)


def exact_skl(density: AbstractLogDensity, exact: np.ndarray, anchor: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return KL(π, ref) + KL(ref, π) at each width, from exact draws of both: log Z and the norms cancel."""
    normal = np.random.default_rng(0).standard_normal(exact.shape)
    log_density = jax.jit(jax.vmap(lambda x: density.value_and_gradient(x)[0]))

    def log_ratio(x: np.ndarray, width: float) -> np.ndarray:
        target = np.asarray(log_density(x.astype(density.dtype)), dtype=np.float64)
        return target + 0.5 * np.sum((x - anchor) ** 2, axis=1) / width**2

    return np.array([log_ratio(exact, w).mean() - log_ratio(anchor + w * normal, w).mean() for w in widths])


def row(width: float | None, rule: str, seed: int) -> dict[str, object]:
    """Sample at one reference and return what came out."""
    target = benchmark.build_target(TASK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cdsampler.SamplingWarning)
        result = cdsampler.sample(
            target.density(),
            n_samples=N_SAMPLES,
            seed=seed,
            independent=True,
            budget=BUDGET,
            max_evaluations=2 * BUDGET * N_SAMPLES,
            reference_scale=width,
        )
    metrics = {m.name: m for m in evaluate(result.positions, benchmark.exact_reference(target), seed=seed)}
    assert result.plan is not None
    assert result.tempering is not None
    return {
        "rule": rule,
        "width": "" if width is None else round(width, 3),
        "replicas": len(result.plan.betas),
        "barrier": round(result.tempering.barrier, 2),
        "cover": round(result.plan.checks.cover, 2),
        "restarts_per_sample": round(float(result.tempering.restarts.mean()), 1),
        "evaluations_per_restart": round(float(BUDGET / max(result.tempering.restarts.mean(), 1e-9))),
        "tv_over_floor": round(metrics["mode_weight_total_variation"].ratio or np.nan, 2),
        "modes": int(metrics["modes_found"].value),
        "warnings": " ".join(w.code for w in result.warnings),
    }


def main() -> None:
    """Search, sweep, and write table and figure."""
    target = benchmark.build_target(TASK)
    density = target.density()
    anchor = find_mode(density).position
    exact = np.asarray(target.sample(jax.random.key(1), 20_000), dtype=np.float64)
    searches = [minimise_skl(density, anchor, jax.random.key(0), width=w, n_replicas=18) for w in STARTS]
    for start, search in zip(STARTS, searches, strict=True):
        print(f"search from {start:g}: {search.width:.3f} after {int(search.evaluations.count):,} evaluations")
    skl = searches[-1].width
    rows = [row(skl, "least divergence", 0), *(row(w, "forced", 0) for w in WIDTHS), row(None, "default", 0)]
    for r in rows:
        print(*(f"{k}={v}" for k, v in r.items()), flush=True)
    with (DOCS / "results" / "reference-width.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    grid = np.geomspace(1, 300, 60)
    curve = exact_skl(density, exact, anchor, grid)
    save_figure(draw(searches, grid, curve, rows), DOCS / "images" / "reference-width.png")


def draw(searches: list, grid: np.ndarray, curve: np.ndarray, rows: list[dict]) -> Figure:
    """Draw the searches, the divergence and the errors against the width."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for search in searches:
        left.semilogy(search.widths, ".-", label=f"from {search.widths[0]:g}")
    left.set(xlabel="round", ylabel="reference width", title="Descent of the divergence")
    left.legend(fontsize=8)
    middle.loglog(grid, curve, color="C3")
    middle.plot(grid[np.argmin(curve)], curve.min(), "o", color="C3")
    middle.set(xlabel="reference width", ylabel="nats", title=f"Divergence: least at {grid[np.argmin(curve)]:.1f}")
    forced = [r for r in rows if r["width"] != ""]
    widths = [float(r["width"]) for r in forced]
    right.loglog(widths, [r["tv_over_floor"] for r in forced], "o-", label="error of mode weights ÷ floor")
    right.loglog(widths, [r["barrier"] for r in forced], "s--", color="C2", label="barrier Λ")
    right.axhline(float(rows[-1]["tv_over_floor"]), color="C0", linestyle=":", label="default, learned reference")
    for r, w in zip(forced, widths, strict=True):
        if "reference-too-narrow" in str(r["warnings"]):
            right.plot(w, r["tv_over_floor"], "x", color="C3", markersize=11, markeredgewidth=2)
    right.plot([], [], "x", color="C3", label="warned: reference-too-narrow")
    right.set(xlabel="reference width", title=f"{N_SAMPLES} samples at {BUDGET:,} evaluations each")
    right.legend(fontsize=7)
    return figure


if __name__ == "__main__":
    main()
