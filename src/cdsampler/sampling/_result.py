from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cdsampler.density import Evaluations
from cdsampler.samplers import AbstractSampler, TemperingDiagnostics, TransportStatistics
from cdsampler.sampling._inference_data import to_inference_data, write_netcdf
from cdsampler.sampling._warnings import RunWarning


class Timing(NamedTuple):
    """Wall-clock seconds of the production run; compilation is part of the total and named apart."""

    total: float
    compilation: float


@dataclass(frozen=True)
class Result:
    """Samples, what they cost, and what the run says about them.

    Attributes
    ----------
    samples : ndarray, shape (n_chains, n_draws, dim)
        One draw per chain: the draws are independent.
    log_density : ndarray, shape (n_chains, n_draws)
        The target's unnormalised log density at the samples.
    evaluations : Evaluations
        Of each chain in production, shape (n_chains,).
    tuning_evaluations : Evaluations
        Total of everything before production: mode search and pilot.
    sampler
        The frozen sampler that produced them.
    seed : int
    names : tuple of str
        Of the coordinates.
    timing : Timing
    tempering : TemperingDiagnostics or None
        None without a tempering stage.
    transport : TransportStatistics or None
        Means over chains; None without an SDE.
    is_partial : bool
        Whether the run was interrupted; then only finished chains are in here.
    spare_evaluations : int
        Executed for chains whose samples are not returned: those that only filled the last group, and those that
        an interrupt left unfinished.
    warnings : tuple of RunWarning
    """

    samples: np.ndarray
    log_density: np.ndarray
    evaluations: Evaluations
    tuning_evaluations: Evaluations
    sampler: AbstractSampler
    seed: int
    names: tuple[str, ...]
    timing: Timing
    tempering: TemperingDiagnostics | None = None
    transport: TransportStatistics | None = None
    is_partial: bool = False
    spare_evaluations: int = 0
    warnings: tuple[RunWarning, ...] = field(default=())

    @property
    def positions(self) -> np.ndarray:
        """All samples in one array, shape (n_chains * n_draws, dim)."""
        return self.samples.reshape(-1, self.samples.shape[-1])

    @property
    def evaluations_per_sample(self) -> float:
        """Evaluations of the chain that produced a sample, on average: the paper's accounting."""
        return float(self.evaluations.total().count / self.samples.shape[0])

    @property
    def evaluations_per_returned_sample(self) -> float:
        """All evaluations, mode search, tuning and spare chains included, divided by the samples returned."""
        total = self.evaluations.total().count + self.tuning_evaluations.total().count + self.spare_evaluations
        return float(total / len(self.positions))

    def to_inference_data(self) -> Any:
        """Return ArviZ's container: an `InferenceData` (ArviZ < 1) or a `DataTree` (ArviZ ≥ 1)."""
        return to_inference_data(self.samples, self.log_density, self.names, self._sample_stats(), self.attributes())

    def save(self, path: str | Path) -> Path:
        """Write samples, statistics and attributes as netCDF (readable by ArviZ and xarray).

        Parameters
        ----------
        path
            File to write; it appears only when it is complete.
        """
        return write_netcdf(self.to_inference_data(), Path(path))

    def attributes(self) -> dict[str, Any]:
        """Return the run's figures in the plain types that netCDF keeps."""
        attributes: dict[str, Any] = {
            "sampler": type(self.sampler).__name__,
            "seed": self.seed,
            "evaluations_per_sample": self.evaluations_per_sample,
            "evaluations_per_returned_sample": self.evaluations_per_returned_sample,
            "tuning_evaluations": int(self.tuning_evaluations.total().count),
            "spare_evaluations": self.spare_evaluations,
            "seconds": self.timing.total,
            "compilation_seconds": self.timing.compilation,
            "is_partial": int(self.is_partial),
            "warnings": [str(w) for w in self.warnings] or ["none"],
        }
        if self.tempering is not None:
            attributes["betas"] = self.tempering.betas
            attributes["swap_rejection"] = self.tempering.rejection
            attributes["local_acceptance"] = self.tempering.acceptance
            attributes["barrier"] = self.tempering.barrier
            if self.tempering.evidence is not None:
                attributes["log_z"] = self.tempering.evidence.log_z
                attributes["log_z_standard_error"] = self.tempering.evidence.standard_error
        return attributes

    def _sample_stats(self) -> dict[str, np.ndarray]:
        shape = self.log_density.shape
        stats = {
            "lp": self.log_density,
            "n_evaluations": np.broadcast_to(np.asarray(self.evaluations.count)[:, None], shape),
        }
        if self.tempering is not None:
            stats["restarts"] = np.broadcast_to(self.tempering.restarts[:, None], shape)
            stats["round_trips"] = np.broadcast_to(self.tempering.round_trips[:, None], shape)
        return stats
