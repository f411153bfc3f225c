"""Everything that tuning chose, frozen: printable, saveable, reusable."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cdsampler.charts import AffineChart
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import Linear, geometric_times
from cdsampler.kernels import HMC, MALA, AbstractKernel, RandomWalk
from cdsampler.paths import AbstractReference, GaussianReference, MixtureReference, PriorReference
from cdsampler.samplers import CDS, NRPT, AbstractSampler, LocalChain, constant_step_variances
from cdsampler.tuning._checks import Checks

FORMAT = 6


class RoundSummary(NamedTuple):
    """What one round of the pilot measured.

    Attributes
    ----------
    what : str
        What the round was for.
    n_replicas, n_steps : int
    barrier : float
        Λ.
    restart_rate : float
        Restarts per step and chain.
    log_z : float
        NaN where it wasn't estimated.
    evaluations : int
        Of tuning so far.
    evaluations_per_step : int
        Of one chain.
    """

    what: str
    n_replicas: int
    n_steps: int
    barrier: float
    restart_rate: float
    log_z: float
    evaluations: int
    evaluations_per_step: int


@dataclass(frozen=True)
class Plan:
    """A frozen sampler, in coordinates in which the target is about isotropic near a mode.

    Attributes
    ----------
    names : tuple of str
    shift : ndarray, shape (dim,)
        The anchor, in target coordinates.
    scale_tril : ndarray, shape (dim, dim)
        Preconditioner: target coordinates are `shift + scale_tril q`.
    centre : ndarray, shape (dim,)
        Of the Gaussian reference, in chart coordinates q, like everything below.
    width : float
        Its standard deviation; 1/t0.
    mixture : dict of ndarray, or None
        Means, Cholesky factors, labels and weights of a learned reference; None for others.
    uses_prior : bool
        The reference is the model's prior, which `sampler` then needs.
    betas, step_sizes : ndarray, shape (n_replicas,)
    rejection : ndarray, shape (n_replicas - 1,)
        As the pilot measured it.
    kernel : str
        "mala", "hmc", or "rwm" (random walk) for densities without a gradient.
    num_integration_steps : int
        Leapfrog steps of HMC.
    smallest_step : float
        Of HMC's random step sizes, as a share of the largest; 1 if they are all alike.
    restart_rate : float
        Restarts per step and chain.
    burn_in : int
        Stage-1 steps before the first draw.
    thinning : int
        Stage-1 steps between draws of one chain.
    n_transport : int
        Steps of stage 2.
    transport_step : float
        Their Langevin time.
    walk : ndarray of int, shape (n_steps, n_replicas)
        Index process of one pilot chain: which replica was on each rung, over the last round's last steps.
    starts : ndarray, shape (n_starts, dim), or None
        If given there is no tempering: chains of the kernel start here, where those of the pilot had forgotten their
        own starts; `betas` is 1 alone and a restart is an independent draw.
    rounds : tuple of RoundSummary
    checks : Checks
    value_evaluations, gradient_evaluations : int
        That tuning cost.
    """

    names: tuple[str, ...]
    shift: np.ndarray
    scale_tril: np.ndarray
    centre: np.ndarray
    width: float
    mixture: Mapping[str, np.ndarray] | None
    uses_prior: bool
    betas: np.ndarray
    step_sizes: np.ndarray
    rejection: np.ndarray
    kernel: str
    num_integration_steps: int
    smallest_step: float
    restart_rate: float
    burn_in: int
    thinning: int
    n_transport: int
    transport_step: float
    walk: np.ndarray
    starts: np.ndarray | None
    rounds: tuple[RoundSummary, ...]
    checks: Checks
    value_evaluations: int
    gradient_evaluations: int

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.shift)

    @property
    def t0(self) -> float:
        """Time at which stage 1 hands over, with a reference of unit width in path coordinates."""
        return float(min(1.0 / self.width, 0.99))

    @property
    def kind_of_reference(self) -> str:
        """Return "gaussian", "mixture", "prior", or "none" without tempering."""
        if self.starts is not None:
            return "none"
        if self.uses_prior:
            return "prior"
        return "gaussian" if self.mixture is None else "mixture"

    @property
    def barrier(self) -> float:
        """Λ, the sum of the rejections."""
        return float(self.rejection.sum())

    @property
    def tuning_evaluations(self) -> int:
        """Density evaluations that tuning cost."""
        return self.value_evaluations + self.gradient_evaluations

    @property
    def evaluations_per_restart(self) -> float:
        """Stage-1 evaluations for each restart, as the pilot measured them; infinite if there was none."""
        cost = self._sampler(GaussianReference(1.0)).stages()[0].cost_step()
        return cost / self.restart_rate if self.restart_rate > 0 else float("inf")

    @property
    def anchors(self) -> np.ndarray:
        """Where chains are anchored, shape (dim,) for all or (n_starts, dim) in turn."""
        return self.centre if self.starts is None else self.starts

    def chart(self) -> AffineChart:
        """Return the coordinates that the sampler works in."""
        return AffineChart(self.shift, self.scale_tril)

    def local_kernel(self) -> AbstractKernel:
        """Return the kernel of stage 1."""
        steps = jnp.asarray(self.step_sizes if self.starts is None else self.step_sizes[-1])
        if self.kernel == "rwm":
            return RandomWalk(steps)
        return MALA(steps) if self.kernel == "mala" else HMC(steps, self.num_integration_steps, self.smallest_step)

    def sampler(self, prior: PriorReference | None = None) -> AbstractSampler:
        """Return the sampler in chart coordinates: tempering, then the Metropolised SDE; or either alone.

        Parameters
        ----------
        prior
            Of the model, in the target's coordinates; needed by plans that use it.

        Raises
        ------
        InvalidInputError
            The plan uses a prior and there is none.
        """
        if self.uses_prior and prior is None:
            raise InvalidInputError("The plan's reference is the model's prior: give it the model it was made for.")
        reference: AbstractReference = GaussianReference(self.width * self.t0)
        if self.uses_prior and prior is not None:
            reference = prior.seen_through(self.chart())
        elif self.mixture is not None:
            reference = MixtureReference(**self.mixture)
        return self._sampler(reference)

    def _sampler(self, reference: AbstractReference) -> AbstractSampler:
        if self.starts is not None:
            return LocalChain(self.local_kernel())
        stage1 = NRPT(reference, self.betas, self.local_kernel())
        if self.n_transport == 0:
            return stage1
        times = geometric_times(self.t0, self.n_transport)
        variances = constant_step_variances(Linear(), times, self.transport_step)
        return CDS(stage1, times, variances, integrator="metropolis")

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps({"format": FORMAT, **_plain(dataclasses.asdict(self))}, indent=1) + "\n")
        return target

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read a plan that `save` wrote.

        Raises
        ------
        InvalidInputError
            The file is missing, isn't JSON, or isn't a plan of this format.
        """
        try:
            fields = json.loads(Path(path).read_text())
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise InvalidInputError(f"Can't read a plan from {path}: {error}") from error
        if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
            raise InvalidInputError(f"{path} is not a plan of format {FORMAT}: save it again with this version.")
        try:
            plan = cls(**_restored(fields))
            plan._sampler(GaussianReference(1.0))
            if plan.mixture is not None:
                MixtureReference(**plan.mixture)
        except (TypeError, KeyError, ValueError, IndexError) as error:
            raise InvalidInputError(f"{path} is not a valid plan: {error}") from error
        return plan

    def table(self) -> list[tuple[str, str]]:
        """Return the plan as rows of name and text."""
        kernel = {
            "mala": "MALA",
            "hmc": f"HMC with {self.num_integration_steps} leapfrog steps",
            "rwm": "random walk, since there is no gradient",
        }[self.kernel]
        if self.smallest_step < 1:
            kernel += f" of random size (from {self.smallest_step:g} of the step)"
        scales = np.sqrt(np.sum(self.scale_tril**2, axis=1))
        return [
            ("anchor", np.array2string(self.shift, precision=3, threshold=6, edgeitems=3)),
            ("preconditioner", f"standard deviations {scales.min():.3g} to {scales.max():.3g}"),
            *(self._tempering_rows() if self.starts is None else self._local_rows(self.starts)),
            ("local kernel", f"{kernel}, step {self.step_sizes[-1]:.3g} at β = 1"),
            (
                "restart" if self.starts is None else "independent draw",
                f"every {1 / max(self.restart_rate, 1e-9):.1f} steps, {self.evaluations_per_restart:.1f} evaluations",
            ),
            ("burn-in and thinning", f"{self.burn_in} and {self.thinning} steps of stage 1"),
            ("stage 2", self._transport_row()),
            ("tuning", f"{self.tuning_evaluations:,} evaluations in {len(self.rounds)} rounds"),
        ]

    def _transport_row(self) -> str:
        if self.n_transport == 0:
            return "none"
        return f"{self.n_transport} Metropolised SDE steps of Langevin time {self.transport_step:.3g}"

    def _tempering_rows(self) -> list[tuple[str, str]]:
        reference = f"Gaussian, standard deviation {self.width:.3g} (in units of the preconditioner)"
        if self.uses_prior:
            reference = "the model's prior"
        elif self.mixture is not None:
            reference = f"mixture of {len(self.mixture['means'])} Gaussians learned from the pilot"
        return [
            ("reference", reference),
            ("t0", f"{self.t0:.4g}"),
            ("replicas", f"{len(self.betas)}, at β = {np.array2string(self.betas, precision=3, threshold=8)}"),
            ("barrier Λ", f"{self.barrier:.2f}"),
        ]

    @staticmethod
    def _local_rows(starts: np.ndarray) -> list[tuple[str, str]]:
        return [
            ("tempering", "none: local chains forgot where they started, so there is no estimate of log Z"),
            ("starts", f"{len(starts)} states of the pilot"),
        ]

    def __str__(self) -> str:
        rows = self.table()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _restored(fields: dict[str, Any]) -> dict[str, Any]:
    restored = dict(fields)
    for name in ("shift", "scale_tril", "centre", "betas", "step_sizes", "rejection"):
        restored[name] = np.asarray(fields[name], dtype=np.float64)
    if fields["starts"] is not None:
        restored["starts"] = np.asarray(fields["starts"], dtype=np.float64)
    restored["walk"] = np.asarray(fields["walk"], dtype=np.int64)
    if fields["mixture"] is not None:
        restored["mixture"] = {
            k: np.asarray(v, dtype=np.int64 if k == "labels" else np.float64) for k, v in fields["mixture"].items()
        }
    restored["names"] = tuple(fields["names"])
    restored["rounds"] = tuple(RoundSummary(*r) for r in fields["rounds"])
    restored["checks"] = Checks(**fields["checks"])
    return restored
