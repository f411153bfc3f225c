from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Point
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import AbstractAffineInterpolant, AbstractInterpolant, Linear, conditional_density
from cdsampler.kernels import AbstractKernel
from cdsampler.paths import AnnealingPath, FlatReference, GaussianReference, MixtureReference
from cdsampler.samplers._base import AbstractSampler, AbstractStage
from cdsampler.samplers._integrators import capped_variances
from cdsampler.samplers._inverse_map import InverseMap
from cdsampler.samplers._nrpt import NRPT
from cdsampler.samplers._reference_draw import ReferenceDraw
from cdsampler.samplers._smc import SMC
from cdsampler.samplers._transport import AffineTransport, Corrector, PathTransport


class InPathCoordinates(AbstractStage):
    """Any stage, run on the conditional density `π_{t0|z}` in path coordinates about `F_{t0|z}(z)`.

    Parameters
    ----------
    stage
        Any stage, e.g. `NRPT`.
    interpolant
        Any interpolant.
    time
        t0.
    """

    stage: AbstractStage
    interpolant: AbstractInterpolant
    time: Array
    n_steps: Array

    def __init__(self, stage: AbstractStage, interpolant: AbstractInterpolant, time: float):
        self.stage = stage
        self.interpolant = interpolant
        self.time = jnp.asarray(time)
        self.n_steps = stage.n_steps

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return the inner stage's path on the conditional density."""
        time = self.time.astype(anchor.dtype)
        conditional = conditional_density(density, self.interpolant, anchor, time)
        return self.stage.path(conditional, self.interpolant.forward(anchor, anchor, time))

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> Any:
        """Return the inner stage's first state."""
        return self.stage.init(rng_key, path, start)

    def step(self, rng_key: PRNGKey, state: Any, index: IntScalar, row: Any, path: AnnealingPath) -> Any:
        """Take the inner stage's step."""
        return self.stage.step(rng_key, state, index, row, path)

    @property
    def n_points(self) -> int:
        """Return the inner stage's."""
        return self.stage.n_points

    def log_weights(self, statistics: Any) -> np.ndarray | None:
        """Return the inner stage's."""
        return self.stage.log_weights(statistics)

    def executed(self, states: Any) -> Array | None:
        """Return the inner stage's."""
        return self.stage.executed(states)

    def rows(self, start: int, length: int) -> Any:
        """Return the inner stage's rows."""
        return self.stage.rows(start, length)

    def point(self, state: Any) -> Point:
        """Return the inner stage's point, in path coordinates."""
        return self.stage.point(state)

    def statistics(self, state: Any) -> Any:
        """Return the inner stage's statistics."""
        return self.stage.statistics(state)

    def cost_init(self) -> int:
        """Return the inner stage's cost."""
        return self.stage.cost_init()

    def cost_step(self) -> int:
        """Return the inner stage's cost."""
        return self.stage.cost_step()


class CDS(AbstractSampler):
    """Conditional diffusion sampling (paper, Algorithm 1): any stage-1 sampler of `π_{t0|z}`, then transport to t = 1.

    With an affine interpolant everything runs in target coordinates, where stage 1 is the same sampler on the target
    with the reference pulled back (scale τ/b(t0) about z) and stage 2 is annealed Langevin; other interpolants run in
    path coordinates.

    Parameters
    ----------
    stage1
        Sampler of the conditional distribution. Its `GaussianReference` has the paper's scale τ, in path coordinates
        about `F_{t0|z}(z)`; a `MixtureReference` is given in target coordinates. Its kernel's step sizes are in the
        coordinates that it runs in.
    times : ndarray, shape (n_steps + 1,), or float
        Time schedule from t0 to 1; with `transport="inverse-map"` just t0.
    variances : ndarray, shape (n_steps,)
        σ² of each step.
    interpolant
        Default linear.
    integrator
        "exponential" (default), "metropolis", "leimkuhler-matthews" or "euler-maruyama"; only the last for interpolants
        that aren't affine.
    corrector
        M steps of any gradient-based kernel after each integration step.
    transport
        "sde", or "inverse-map": F⁻¹ alone.
    max_langevin_step
        If given, σ² is lowered where a step's Langevin time `∫ σ²/(2b²) dt` would exceed this, e.g. a tuned MALA
        step size: any σ² is exact in theory, but explicit integrators diverge beyond the target's stability limit.
        For affine interpolants.

    Notes
    -----
    Cost per chain: stage 1's, then `n_steps · (1 + M c)` with c the corrector kernel's cost.
    """

    stage1: AbstractStage
    interpolant: AbstractInterpolant
    times: np.ndarray
    variances: np.ndarray
    corrector: Corrector | None
    max_langevin_step: Array | None
    integrator: str = eqx.field(static=True)
    transport: str = eqx.field(static=True)

    def __init__(
        self,
        stage1: AbstractStage,
        times: np.ndarray | float,
        variances: np.ndarray | None = None,
        *,
        interpolant: AbstractInterpolant | None = None,
        integrator: str | None = None,
        corrector: Corrector | None = None,
        transport: str = "sde",
        max_langevin_step: float | None = None,
    ):
        if transport not in ("sde", "inverse-map"):
            raise InvalidInputError(f"transport must be 'sde' or 'inverse-map', got {transport!r}.")
        if transport == "sde" and variances is None:
            raise InvalidInputError("transport='sde' needs a noise variance for each step.")
        self.stage1 = stage1
        self.interpolant = Linear() if interpolant is None else interpolant
        self.times = np.atleast_1d(np.asarray(times, dtype=np.float64))
        self.variances = np.zeros(0) if variances is None else np.asarray(variances, dtype=np.float64)
        if not 0 < self.times[0] < 1:
            raise InvalidInputError(f"t0 must lie in (0, 1), got {self.times[0]}.")
        kernel = getattr(stage1, "kernel", None)
        if transport == "sde" and isinstance(kernel, AbstractKernel) and not kernel.needs_gradient:
            raise InvalidInputError(
                f"The SDE starts from stage 1's gradients, and {type(kernel).__name__} has none: use MALA or HMC, "
                "or transport='inverse-map'."
            )
        self.corrector = corrector
        default = "exponential" if self._is_affine else "euler-maruyama"
        self.integrator = default if integrator is None else integrator
        self.transport = transport
        if not self._is_affine and self.integrator != "euler-maruyama":
            raise InvalidInputError(
                f"The {self.integrator} integrator needs an affine interpolant; use 'euler-maruyama'."
            )
        if max_langevin_step is not None and not (self._is_affine and max_langevin_step > 0):
            raise InvalidInputError(
                f"max_langevin_step must be positive and needs an affine interpolant, got {max_langevin_step}."
            )
        self.max_langevin_step = None if max_langevin_step is None else jnp.asarray(max_langevin_step)
        self.stages()

    @property
    def _is_affine(self) -> bool:
        return isinstance(self.interpolant, AbstractAffineInterpolant)

    @property
    def t0(self) -> float:
        """The time at which stage 1 hands over to stage 2."""
        return float(self.times[0])

    def stages(self) -> tuple[AbstractStage, ...]:
        """Return stage 1 and the transport, both in the same coordinates."""
        if isinstance(self.interpolant, AbstractAffineInterpolant):
            first = _pulled_back(self.stage1, self.interpolant, self.t0)
            if self.transport == "inverse-map":
                return (first,)  # in target coordinates F⁻¹ has been applied already
            variances = self.variances
            if self.max_langevin_step is not None:
                limit = float(self.max_langevin_step)
                variances = capped_variances(self.interpolant, self.times, variances, limit)
            return first, AffineTransport(self.interpolant, self.times, variances, self.integrator, self.corrector)
        conditional = InPathCoordinates(self.stage1, self.interpolant, self.t0)
        if self.transport == "inverse-map":
            return conditional, InverseMap(self.interpolant, self.t0)
        return conditional, PathTransport(self.interpolant, self.times, self.variances, self.corrector)

    def with_budget(self, budget: int) -> "CDS":
        """Return this sampler with a stage 1 that takes what the transport leaves of the budget."""
        transport = self.cost_of_transport()
        least = transport + self.stage1.cost_init() + self.stage1.cost_step()
        if budget < least:
            raise InvalidInputError(
                f"A budget of {budget} evaluations per sample is too small: CDS needs at least {least} ({transport} "
                f"for the transport and {least - transport} for the first step of stage 1)."
            )
        return eqx.tree_at(lambda s: s.stage1, self, self.stage1.with_budget(budget - transport))

    def with_first_steps(self, n_steps: int) -> "CDS":
        """Return this sampler with another number of steps in stage 1."""
        return eqx.tree_at(lambda s: s.stage1, self, self.stage1.with_steps(n_steps))


def _pulled_back(stage: AbstractStage, interpolant: AbstractAffineInterpolant, t0: float) -> AbstractStage:
    """Return the stage with its reference in target coordinates: τ/b(t0) about z."""
    if not isinstance(stage, NRPT | SMC | ReferenceDraw) or isinstance(
        stage.reference, FlatReference | MixtureReference
    ):
        return stage  # an affine map leaves a flat reference flat, and a mixture is in target coordinates already
    if not isinstance(stage.reference, GaussianReference):
        raise InvalidInputError(
            "Stage 1 of CDS needs a GaussianReference, a MixtureReference or a FlatReference, got "
            f"{type(stage.reference).__name__}."
        )
    _, b = interpolant.coefficients(np.asarray(t0))
    scale = stage.reference.scale / b
    return eqx.tree_at(lambda s: s.reference.scale, stage, scale.astype(stage.reference.scale.dtype))
