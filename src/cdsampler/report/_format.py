"""How numbers and metrics are written, in tables and figures alike."""

import math

METRIC_LABELS = {
    "wasserstein_2": "Wasserstein-2",
    "wasserstein_1": "Wasserstein-1",
    "kabsch_wasserstein_2": "W2 (Kabsch)",
    "kabsch_wasserstein_1": "W1 (Kabsch)",
    "sorted_radius_wasserstein_2": "W2 of radii",
    "pair_distance_total_variation": "TV of distances",
    "mmd_squared_energy": "MMD² of energies",
    "energy_total_variation": "TV of energies",
    "energy_wasserstein_1": "W1 of energies",
    "relative_mae": "error of ⟨observable⟩",
    "ramachandran_kl": "KL of φ, ψ",
    "ramachandran_kl_published": "KL as published",
    "free_energy_rmse": "free energy error",
    "c7ax_weight": "weight of C7ax",
    "mean_nll": "mean test NLL",
    "predictive_nll": "predictive test NLL",
    "mode_weight_total_variation": "TV of mode weights",
    "modes_found": "modes found",
}


def metric_label(name: str) -> str:
    """Return a metric's short name for people; unknown metrics keep their own with blanks for underscores."""
    return METRIC_LABELS.get(name, name.replace("_", " "))


def count(value: float) -> str:
    """Return a count with thousands separated; a mean that isn't whole keeps one decimal below a hundred."""
    if not math.isfinite(value):
        return str(value)
    is_whole = abs(value) >= 100 or value == round(value)
    return f"{value:,.0f}" if is_whole else f"{value:,.1f}"


def number(value: float, digits: int = 3) -> str:
    """Return a number to some significant digits, trailing zeros kept."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.{digits - 1}e}"
    return f"{value:#.{digits}g}".rstrip(".")


def spread(mean: float, deviation: float) -> str:
    """Return `mean ± deviation`, the mean to the decimals of the deviation; the mean alone if that is NaN."""
    if not math.isfinite(deviation) or not math.isfinite(mean) or deviation <= 0:
        return number(mean)
    largest = max(abs(mean), deviation)
    if largest < 1e-3:
        exponent = math.floor(math.log10(largest))
        return f"({mean / 10**exponent:.1f} ± {deviation / 10**exponent:.1f})e{exponent:+03d}"
    # Two digits of the deviation, but of a mean that dwarfs it no more than six decimals.
    decimals = min(max(1 - math.floor(math.log10(deviation)), 0), 6)
    return f"{mean:,.{decimals}f} ± {deviation:,.{decimals}f}"


def percent(share: float) -> str:
    """Return a share in per cent; a small but positive share never reads as nought."""
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0 < share < 0.1 or 0.9 < share < 1:
        return f"{100 * share:.1f} %"
    return f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """Return a duration in the unit that suits it."""
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    if value < 120:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
