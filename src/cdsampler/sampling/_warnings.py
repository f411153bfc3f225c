from typing import NamedTuple

import numpy as np

from cdsampler.density import Evaluations
from cdsampler.samplers import TemperingDiagnostics


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


def tempering_warnings(tempering: TemperingDiagnostics) -> list[RunWarning]:
    """Return the warnings that a tempering run's rates call for."""
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
