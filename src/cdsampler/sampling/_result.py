from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cdsampler.density import Evaluations
from cdsampler.parameters import Model
from cdsampler.samplers import AbstractSampler, AnnealingDiagnostics, TemperingDiagnostics, TransportStatistics
from cdsampler.sampling._inference_data import effective_sizes, to_inference_data, write_netcdf
from cdsampler.sampling._warnings import RunWarning
from cdsampler.tuning import Plan


class Timing(NamedTuple):
    """Wall-clock seconds of the production run; compilation is part of the total and named apart."""

    total: float
    compilation: float


class Weighted(NamedTuple):
    """The draws of a sampler whose chains carry weights, as they were before resampling.

    Attributes
    ----------
    positions : ndarray, shape (n, dim)
    log_density : ndarray, shape (n,)
    log_weights : ndarray, shape (n,)
        Up to a constant.
    """

    positions: np.ndarray
    log_density: np.ndarray
    log_weights: np.ndarray


@dataclass(frozen=True)
class Result:
    """Equally weighted samples, what they cost, and what the run says about them.

    Attributes
    ----------
    samples : ndarray, shape (n_chains, n_draws, dim)
        With one draw per chain the draws are independent. Those of groups of particles are one row, in random order.
    log_density : ndarray, shape (n_chains, n_draws)
        The target's unnormalised log density at the samples.
    evaluations : Evaluations
        Of each chain, or group of particles, in production; shape (n_chains,).
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
    annealing : AnnealingDiagnostics or None
        None without annealed particles.
    transport : TransportStatistics or None
        Means over chains; None without an SDE.
    is_partial : bool
        Whether the run was interrupted; then only finished chains are in here.
    spare_evaluations : int
        Executed for draws that are not returned: of chains that only filled the last group or that an interrupt left
        unfinished, and of a production that was repeated because its draws were correlated.
    executed_evaluations : int
        What the device evaluated in production. More than counted where vectorised chains wait for the one with the
        longest trajectory, as those of NUTS do.
    weighted : Weighted or None
        The draws before they were resampled to equal weights; None without weights.
    warnings : tuple of RunWarning
    plan : Plan or None
        What tuning chose, for reuse; None if the sampler was given.
    model : Model or None
        With named parameters: what they are.
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
    annealing: AnnealingDiagnostics | None = None
    transport: TransportStatistics | None = None
    is_partial: bool = False
    spare_evaluations: int = 0
    executed_evaluations: int = 0
    weighted: Weighted | None = None
    warnings: tuple[RunWarning, ...] = field(default=())
    plan: Plan | None = None
    model: Model | None = None

    @property
    def positions(self) -> np.ndarray:
        """All samples in one array, shape (n_chains * n_draws, dim)."""
        return self.samples.reshape(-1, self.samples.shape[-1])

    @cached_property
    def variables(self) -> dict[str, np.ndarray]:
        """Samples by name, each of shape `(n_chains, n_draws, *shape)`; without named parameters, `x` alone."""
        if self.model is None:
            return {"x": self.samples}
        shape = self.log_density.shape
        found = self.model.variables(self.positions)
        return {name: values.reshape(*shape, *values.shape[1:]) for name, values in found.items()}

    @property
    def evaluations_per_sample(self) -> float:
        """Evaluations of the chain, or group of particles, that produced a sample, on average.

        The paper's accounting, if one draw of it is used.
        """
        return float(self.evaluations.total().count / np.size(self.evaluations.count))

    @property
    def evaluations_per_returned_sample(self) -> float:
        """All evaluations, mode search, tuning and spare chains included, divided by the samples returned."""
        return self.total_evaluations / len(self.positions)

    @property
    def total_evaluations(self) -> int:
        """All evaluations: production, tuning, and chains whose samples are not returned."""
        return int(self.evaluations.total().count + self.tuning_evaluations.total().count) + self.spare_evaluations

    @cached_property
    def ess(self) -> np.ndarray:
        """Bulk effective sample size of each coordinate (ArviZ), shape (dim,); the number of draws if one per chain."""
        n_chains, n_draws, dim = self.samples.shape
        return np.full(dim, float(n_chains)) if n_draws == 1 else effective_sizes(self.samples)[0]

    @cached_property
    def rhat(self) -> np.ndarray:
        """Rank-normalised split R-hat of each coordinate (ArviZ), shape (dim,); NaN with fewer than 4 draws."""
        return effective_sizes(self.samples)[1]

    @property
    def log_z(self) -> tuple[float, float] | None:
        """Log Z and its standard error, from tempering or annealing; None without a normalised reference."""
        if self.tempering is not None and self.tempering.evidence is not None:
            return self.tempering.evidence.log_z, self.tempering.evidence.standard_error
        return None if self.annealing is None else (self.annealing.log_z, self.annealing.standard_error)

    def summary(self) -> str:
        """Return a table: mean, standard deviation, ESS and R-hat of each coordinate, log Z, cost and warnings."""
        names, columns, ess, rhat = self._columns()
        width = max(12, 2 + max(map(len, names)))
        rows = [f"{'':<{width}}{'mean':>12}{'sd':>12}{'ess':>10}{'r_hat':>8}"]
        flat = columns.reshape(-1, len(names))
        for d, name in enumerate(names):
            mean, sd = float(flat[:, d].mean(dtype=np.float64)), float(flat[:, d].std(dtype=np.float64))
            rows.append(f"{name:<{width}}{mean:>12.5g}{sd:>12.5g}{ess[d]:>10.0f}{rhat[d]:>8.3f}")
        if self.log_z is not None:
            rows.append("log Z {:.4g} ± {:.2g}".format(*self.log_z))
        rows.append(
            f"{len(flat):,} draws from {self.total_evaluations:,} evaluations "
            f"({self.evaluations_per_returned_sample:.1f} each, tuning included)"
        )
        rows += [f"warning: {warning}" for warning in self.warnings] or ["no warnings"]
        return "\n".join(rows)

    def to_inference_data(self) -> Any:
        """Return ArviZ's container: an `InferenceData` (ArviZ < 1) or a `DataTree` (ArviZ ≥ 1).

        Named parameters are variables of their own.
        """
        if self.model is None:
            coords: dict[str, Any] = {"coordinate": list(self.names)}
            dims: dict[str, Any] = {"x": ["coordinate"]}
        else:
            coords = {name: list(values) for name, values in self.model.coords.items()}
            dims = {name: list(labels) for name, labels in self.model.dims.items() if name in self.variables}
        return to_inference_data(self.variables, self._sample_stats(), self.attributes(), coords=coords, dims=dims)

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
        if self.plan is not None:
            attributes["t0"] = self.plan.t0
            attributes["reference"] = self.plan.kind_of_reference
        if self.tempering is not None:
            attributes["betas"] = self.tempering.betas
            attributes["swap_rejection"] = self.tempering.rejection
            attributes["local_acceptance"] = self.tempering.acceptance
            attributes["barrier"] = self.tempering.barrier
        if self.log_z is not None:
            attributes["log_z"], attributes["log_z_standard_error"] = self.log_z
        return attributes

    def _columns(self) -> tuple[Sequence[str], np.ndarray, np.ndarray, np.ndarray]:
        """Return what the summary lists: names, values, shape (n_chains, n_draws, n), effective sizes and R-hat."""
        if self.model is None:
            return self.names, self.samples, self.ess, self.rhat
        names: list[str] = []
        parts: list[np.ndarray] = []
        shape = self.log_density.shape
        for name, values in self.variables.items():
            inner = values.shape[2:]
            names += [f"{name}[{','.join(map(str, index))}]" if inner else name for index in np.ndindex(*inner)]
            parts.append(values.reshape(*shape, -1))
        columns = np.concatenate(parts, axis=2)
        if shape[1] == 1:
            return names, columns, np.full(len(names), float(shape[0])), np.full(len(names), np.nan)
        return names, columns, *effective_sizes(columns)

    def _sample_stats(self) -> dict[str, np.ndarray]:
        shape = self.log_density.shape
        stats = {"lp": self.log_density}
        count = np.asarray(self.evaluations.count)
        if len(count) == len(self.samples):
            stats["n_evaluations"] = np.broadcast_to(count[:, None], shape)
        if self.tempering is not None:
            stats["restarts"] = np.broadcast_to(self.tempering.restarts[:, None], shape)
            stats["round_trips"] = np.broadcast_to(self.tempering.round_trips[:, None], shape)
        return stats
