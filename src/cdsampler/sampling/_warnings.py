from typing import NamedTuple

import numpy as np

from cdsampler.density import Evaluations
from cdsampler.samplers import AnnealingDiagnostics, TemperingDiagnostics
from cdsampler.tuning import Checks


class RunWarning(NamedTuple):
    """Something that makes the samples less trustworthy.

    Attributes
    ----------
    code
        Stable name.
    meaning
        One sentence on what was seen.
    advice
        One sentence on what to do.
    """

    code: str
    meaning: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code}: {self.meaning} {self.advice}"


def tempering_warnings(tempering: TemperingDiagnostics, n_draws: int = 1) -> list[RunWarning]:
    """Return the warnings that a tempering run's rates call for.

    Parameters
    ----------
    tempering
        Diagnostics of the run.
    n_draws
        Draws that each chain gave.
    """
    warnings = []
    is_flat = tempering.evidence is None
    never = float(np.mean((tempering.round_trips if is_flat else tempering.restarts) == 0))
    if never > 0.05 and is_flat:
        warnings.append(
            RunWarning(
                "few-round-trips",
                f"{never:.0%} of the chains had no replica that went to the hottest level and back.",
                "Raise the budget, or use a Gaussian reference, which can be drawn from.",
            )
        )
    elif never > 0.05:
        warnings.append(
            RunWarning(
                "few-restarts",
                f"{never:.0%} of the samples never received an independent draw from the reference.",
                "Raise the budget, or lower the barrier: another reference width or more replicas.",
            )
        )
    elif not is_flat and n_draws > 1 and tempering.restarts.mean() < 0.5 * n_draws:
        warnings.append(
            RunWarning(
                "few-restarts",
                f"Only {tempering.restarts.sum():.0f} independent draws from the reference came through for "
                f"{n_draws * len(tempering.restarts)} samples.",
                "The samples are correlated: raise max_evaluations or leave it out.",
            )
        )
    evidence = tempering.evidence
    if evidence is not None:
        gap = abs(evidence.forward - evidence.backward)
        # A gap below half a nat doesn't mislead anyone; the backward direction is heavy-tailed by nature.
        if not gap < max(5 * evidence.gap_standard_error, 0.5):
            warnings.append(
                RunWarning(
                    "log-z-gap",
                    f"log Z is {evidence.forward:.2f} up the ladder and {evidence.backward:.2f} down it.",
                    "Don't use log Z; use more replicas or a wider reference.",
                )
            )
    return warnings


def annealing_warnings(annealing: AnnealingDiagnostics) -> list[RunWarning]:
    """Return the warnings that a run of annealed particles calls for."""
    warnings = []
    if annealing.n_groups > 1 and annealing.effective_groups < 0.1 * annealing.n_groups:
        warnings.append(
            RunWarning(
                "weights-degenerate",
                f"The weights of {annealing.n_groups} groups of {annealing.n_particles} particles are worth "
                f"{annealing.effective_groups:.3g} equal ones.",
                "Don't trust the samples or log Z; raise the budget or use more particles in a group.",
            )
        )
    if annealing.n_particles > 1 and annealing.n_ancestors < 2:
        warnings.append(
            RunWarning(
                "few-ancestors",
                f"The {annealing.n_particles} particles of a group descend from {annealing.n_ancestors:.2g} draws of "
                "the reference on average.",
                "The particles of a group are nearly one sample: use more of them, or a reference nearer the target.",
            )
        )
    return warnings


_Rule = tuple[bool, str, str, str]


def check_warnings(checks: Checks) -> list[RunWarning]:
    """Return the warnings that a plan's checks call for; docs/diagnostics.md explains each."""
    rules = (*_rules_of_mass(checks), *_rules_of_moves(checks))
    return [RunWarning(code, meaning, advice) for is_seen, code, meaning, advice in rules if is_seen]


def _rules_of_mass(checks: Checks) -> tuple[_Rule, ...]:
    """Return the rules about mass that the chains don't know of, or weigh wrongly."""
    return (
        (
            checks.distance > 3,
            "reference-too-far",
            f"Typical points of the target are {checks.distance:.3g} standard deviations from the reference's centre.",
            "Let the reference be chosen, or centre and widen it so that it covers the target.",
        ),
        (
            checks.cover > 1.5,
            "reference-too-narrow",
            f"log ref varies by {checks.cover:.2g} over the target (about 1 is the limit): it makes far modes rare "
            "where chains restart, so their weights can't be trusted.",
            "Widen the reference.",
        ),
        (
            checks.agreement_p < 0.001,
            "starts-disagree",
            f"Chains started at the modes and from the reference differ (p = {checks.agreement_p:.2g}).",
            "Don't trust mode weights; raise the budget, or give a better start or scale.",
        ),
        (
            checks.unseen > 0.01 or checks.surprise > 0.02,
            "new-modes",
            f"Tuning still found new modes at its end (about {max(checks.unseen, checks.surprise):.1%} of the mass).",
            "Run again with another seed, a larger budget or a better scale, and compare.",
        ),
        (
            checks.mode_gap > checks.typical_gap,
            "unvisited-mode",
            f"A point is known whose log density is {checks.mode_gap:.1f} above anything that the chains visited.",
            "There may be mass in a narrow mode that is missed: start there, or rescale the parameters.",
        ),
        (
            checks.size_ratio > 3,
            "mode-widths",
            f"The modes' widths differ by a factor of {checks.size_ratio:.1f}.",
            "Narrow modes are found by luck, so others may be missing: compare seeds, and start at modes you know.",
        ),
        (
            not checks.is_bounded,
            "improper",
            "The draws kept spreading as the reference was widened: the target may be improper, or heavy-tailed.",
            "Check that the density is normalisable, or bound or transform the parameters.",
        ),
    )


def _rules_of_moves(checks: Checks) -> tuple[_Rule, ...]:
    """Return the rules about local moves, and the numbers that they work with."""
    return (
        (
            checks.smallest_acceptance < 0.2,
            "step-collapsed",
            f"A local kernel accepts only {checks.smallest_acceptance:.0%} even with its adapted step size.",
            "Rescale or transform the parameters; check that the gradient belongs to the density.",
        ),
        (
            checks.stuck > 0.05,
            "chains-stuck",
            f"{checks.stuck:.0%} of the pilot chains never moved.",
            "Rescale or transform the parameters.",
        ),
        (
            checks.memory > 0.75,
            "starts-remembered",
            "Chains without tempering had not forgotten where they started when tuning's budget ended "
            f"({checks.memory:.0%} of a coordinate's variance was between them).",
            "Raise max_evaluations or leave it out.",
        ),
        (
            checks.resolution > 0.02,
            "precision",
            f"Log densities are so large that floating-point numbers there are {checks.resolution:.2g} apart.",
            "Subtract a constant from the log density, or use float64.",
        ),
    )


def effectiveness_warnings(effective_size: float, shape: tuple[int, int], rhat: float) -> list[RunWarning]:
    """Return a warning if the draws, of shape (n_chains, n_draws), are worth far fewer, or chains disagree."""
    n_samples = shape[0] * shape[1]
    # With m chains, halved, of n draws, the variance between halves has a relative error of √(2/2m), which enters R-hat
    # divided by 2 · n/2: good draws in short chains exceed any fixed limit.
    noise = np.sqrt(1 / shape[0]) / shape[1]
    is_mixed = not rhat > 1.05 + 4 * noise
    if effective_size >= 0.25 * n_samples and is_mixed:
        return []
    return [
        RunWarning(
            "low-ess",
            f"{n_samples} draws are worth {effective_size:.0f} independent ones (R-hat {rhat:.3f}).",
            "Raise max_evaluations or leave it out; or draw with independent=True.",
        )
    ]


def sample_warnings(log_density: np.ndarray) -> list[RunWarning]:
    """Return a warning if chains ended where the density is zero."""
    n_outside = int(np.sum(log_density == -np.inf))
    if n_outside == 0:
        return []
    return [
        RunWarning(
            "outside-support",
            f"{n_outside} of {log_density.size} samples lie outside the support: their chains never found it.",
            "Leave them out, and raise the budget or move the reference to where the density is positive.",
        )
    ]


def evaluation_warnings(total: Evaluations) -> list[RunWarning]:
    """Return the warnings that non-finite evaluations call for."""
    if int(total.nan) == 0:
        return []
    return [
        RunWarning(
            "nan",
            f"{int(total.nan)} of {int(total.count)} evaluations gave NaN and were rejected.",
            "If the density should be defined there, mend it; otherwise return -inf.",
        )
    ]
