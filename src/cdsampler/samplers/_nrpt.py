from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.kernels import AbstractKernel, Noise, draw_noise
from cdsampler.paths import AbstractReference, AnnealingPath, check_schedule
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count
from cdsampler.samplers._swap import draw_swaps, swap_acceptance, swap_records

FROM_NOWHERE, FROM_REFERENCE, FROM_TARGET = 0, 1, 2


class TemperingStatistics(NamedTuple):
    """Sums over one chain's steps; the driver stacks them over chains.

    Attributes
    ----------
    rejection : Array, shape (n_replicas - 1,)
        Sum of `1 - min(1, α)` of every neighbouring pair.
    acceptance : Array, shape (n_replicas,)
        Sum of the local kernel's acceptance probability (1 where the reference is drawn from).
    log_stones : Array, shape (4, n_replicas - 1)
        Logs of the sums of `exp(Δβ r/2)`, `exp(-Δβ r/2)`, `exp(Δβ r)` and `exp(-Δβ r)` over the hotter, colder, hotter
        and colder replica of each pair: what log Z is estimated from.
    inside : Array, shape ()
        Steps in which the hottest replica was inside the target's support.
    n_recorded : Array, shape ()
        Steps that the sums run over.
    restarts : Array, shape ()
        Reference draws that reached the coldest replica.
    round_trips : Array, shape ()
        Walks from the reference to the target and back.
    """

    rejection: Array
    acceptance: Array
    log_stones: Array
    inside: Array
    n_recorded: Array
    restarts: Array
    round_trips: Array


class TemperingState(AbstractState):
    """One chain's replicas (points and the end of the ladder that each visited last) and its sums."""

    points: Point
    origin: Array
    statistics: TemperingStatistics
    evaluations: Evaluations


class TemperingInfo(NamedTuple):
    """What one step tells.

    Attributes
    ----------
    acceptance : Array, shape (n_replicas,)
        Of each replica's local move.
    rejection : Array, shape (n_replicas - 1,)
        Of each pair.
    jump : Array, shape (n_replicas,)
        Squared distance of each local move; zero where the reference is drawn from.
    is_swapped : Array of bool, shape (n_replicas - 1,)
        Pairs that changed places.
    """

    acceptance: Array
    rejection: Array
    jump: Array
    is_swapped: Array


class NRPT(AbstractStage):
    """Non-reversible parallel tempering of one chain (Syed et al. 2022), all swaps free.

    A step moves every replica locally, draws replica 0 afresh from a proper reference, then proposes to swap the even
    or the odd neighbouring pairs in turn. Points move whole, with every cached value.

    Parameters
    ----------
    reference
        Distribution at β = 0, about the anchor.
    betas : array_like, shape (n_replicas,)
        Schedule. Starts at 0 for a proper reference, above 0 for a flat one.
    kernel
        Local kernel. Its step size may be a scalar or have one value per replica.
    n_steps
        Steps, the ramp included. Each costs `(n_replicas - 1) · c + 1` evaluations with a proper reference and
        `n_replicas · c` with a flat one, where c is the kernel's own cost.
    start
        "reference": every replica starts from its own reference draw and is annealed down to its β, one level every
        `ramp_steps` steps, before swaps begin (costs n_replicas evaluations to start). "anchor": every replica
        starts at the anchor (one evaluation).
    ramp_steps
        Steps at each level of the ramp.
    is_reversible
        Choose the parity of the swaps at random instead of alternating: the classical, slower scheme.

    Raises
    ------
    InvalidInputError
        Bad schedule, start, or number of step sizes.
    """

    reference: AbstractReference
    betas: Array
    kernel: AbstractKernel
    n_steps: Array
    ramp_steps: Array
    start: str = eqx.field(static=True)
    is_reversible: bool = eqx.field(static=True)

    def __init__(
        self,
        reference: AbstractReference,
        betas: Any,
        kernel: AbstractKernel,
        n_steps: int = 0,
        *,
        start: str = "reference",
        ramp_steps: int = 1,
        is_reversible: bool = False,
    ):
        if start not in ("reference", "anchor"):
            raise InvalidInputError(f"start must be 'reference' or 'anchor', got {start!r}.")
        if start == "reference" and not reference.is_proper:
            raise InvalidInputError("A flat reference can't be drawn from: use start='anchor'.")
        if ramp_steps < 1:
            raise InvalidInputError(f"ramp_steps must be at least 1, got {ramp_steps}.")
        values = check_schedule(np.asarray(betas), proper_reference=reference.is_proper)
        if kernel.step_size.shape not in ((), values.shape):
            raise InvalidInputError(
                f"The kernel has step sizes of shape {kernel.step_size.shape}; give one, or one for each of the "
                f"{len(values)} replicas."
            )
        self.reference = reference
        self.betas = jnp.asarray(values, jnp.zeros(()).dtype)
        step_sizes = jnp.broadcast_to(kernel.step_size, values.shape)
        self.kernel = eqx.tree_at(lambda k: k.step_size, kernel, step_sizes)
        self.n_steps = as_count(n_steps)
        self.ramp_steps = as_count(ramp_steps)
        self.start = start
        self.is_reversible = is_reversible

    @property
    def n_replicas(self) -> int:
        """Number of replicas."""
        return self.betas.shape[0]

    @property
    def ramp_length(self) -> Array:
        """Steps before swaps begin."""
        return self.ramp_steps * (self.n_replicas - 1) if self.start == "reference" else jnp.zeros((), jnp.int32)

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return the annealing path about the anchor."""
        return AnnealingPath(self.reference, density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> TemperingState:
        """Return replicas at reference draws or all at the anchor (or at the point handed over)."""
        n = self.n_replicas
        if self.start == "reference":
            positions = jax.vmap(path.sample_reference)(jax.random.split(rng_key, n))
            points, costs = jax.vmap(lambda y: self._evaluate(path, y))(positions)
            evaluations = costs.sum()
        else:
            point, evaluations = self._evaluate(path, path.anchor) if start is None else (start, Evaluations.zero())
            points = jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), point)
        # The draws that the ramp begins with are no restarts: those count from the first fresh draw at replica 0.
        origin = jnp.full((n,), FROM_NOWHERE, jnp.int32).at[0].set(FROM_REFERENCE).at[-1].set(FROM_TARGET)
        return TemperingState(
            points=points, origin=origin, statistics=_no_statistics(n, path.anchor.dtype), evaluations=evaluations
        )

    def step(
        self, rng_key: PRNGKey, state: TemperingState, index: IntScalar, row: Any, path: AnnealingPath
    ) -> TemperingState:
        """Explore, then communicate."""
        return self.step_with_info(rng_key, state, index, path)[0]

    def step_with_info(
        self, rng_key: PRNGKey, state: TemperingState, index: IntScalar, path: AnnealingPath
    ) -> tuple[TemperingState, TemperingInfo]:
        """Explore, then communicate; also return the rates of this step."""
        key_explore, key_communicate = jax.random.split(rng_key)
        points, acceptance, jump, cost = self._explore(key_explore, state.points, index, path)
        swapped, origin, rejection, is_swapped, n_arrived, n_returned = self._communicate(
            key_communicate, points, state.origin, index
        )
        statistics = self._record(state.statistics, points, acceptance, rejection, n_arrived, n_returned, index)
        new = TemperingState(points=swapped, origin=origin, statistics=statistics, evaluations=state.evaluations + cost)
        return new, TemperingInfo(acceptance, rejection, jump, is_swapped)

    def level(self, index: IntScalar) -> Array:
        """Return the rung of the ladder that each replica is on: its own, or lower during the ramp."""
        own = jnp.arange(self.n_replicas)
        return jnp.minimum(own, 1 + index // self.ramp_steps) if self.start == "reference" else own

    def _evaluate(self, path: AnnealingPath, position: Position) -> tuple[Point, Evaluations]:
        return path.evaluate(position) if self.kernel.needs_gradient else path.evaluate_value(position)

    def _explore(
        self, rng_key: PRNGKey, points: Point, index: IntScalar, path: AnnealingPath
    ) -> tuple[Point, Array, Array, Evaluations]:
        level = self.level(index)
        betas = self.betas.astype(path.anchor.dtype)[level]
        step_sizes = self.kernel.step_size[level]
        key_noise, key_fresh = jax.random.split(rng_key)

        def move(noise: Noise, point: Point, beta: Array, step_size: Array) -> Any:
            kernel = eqx.tree_at(lambda k: k.step_size, self.kernel, step_size)
            return kernel.move(noise, point, path.at(beta))

        first = 1 if self.reference.is_proper else 0
        noise = draw_noise(
            key_noise,
            (self.n_replicas - first,),
            path.anchor.shape[0],
            path.anchor.dtype,
            is_jittered=self.kernel.is_jittered,
        )
        moving = jax.tree.map(lambda a: a[first:], points)
        moved, info = jax.vmap(move)(noise, moving, betas[first:], step_sizes[first:])
        jump = jnp.sum((moved.position - moving.position) ** 2, axis=1)
        if not self.reference.is_proper:
            return moved, info.acceptance_prob, jump, info.evaluations.sum()
        fresh, fresh_cost = self._evaluate(path, path.sample_reference(key_fresh))
        joined = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), fresh, moved)
        acceptance = jnp.concatenate([jnp.ones((1,), info.acceptance_prob.dtype), info.acceptance_prob])
        jump = jnp.concatenate([jnp.zeros((1,), jump.dtype), jump])
        return joined, acceptance, jump, info.evaluations.sum() + fresh_cost

    def _communicate(
        self, rng_key: PRNGKey, points: Point, origin: Array, index: IntScalar
    ) -> tuple[Point, Array, Array, Array, Array, Array]:
        acceptance = swap_acceptance(self.betas.astype(points.position.dtype), points.log_ratio)
        key_parity, key_swap = jax.random.split(rng_key)
        parity = jax.random.bernoulli(key_parity).astype(jnp.int32) if self.is_reversible else index % 2
        is_swapped = draw_swaps(key_swap, acceptance, parity, index >= self.ramp_length)
        swapped, origin = swap_records((points, origin), is_swapped)
        n_arrived = (origin[-1] == FROM_REFERENCE).astype(jnp.int32)
        n_returned = (origin[0] == FROM_TARGET).astype(jnp.int32)
        origin = origin.at[-1].set(FROM_TARGET).at[0].set(FROM_REFERENCE)
        return swapped, origin, 1 - acceptance, is_swapped, n_arrived, n_returned

    def _record(
        self,
        old: TemperingStatistics,
        points: Point,
        acceptance: Array,
        rejection: Array,
        n_arrived: Array,
        n_returned: Array,
        index: IntScalar,
    ) -> TemperingStatistics:
        # The first half, in which the replicas still forget their start, would bias rates and log Z.
        is_recorded = index >= jnp.maximum(self.ramp_length, self.n_steps // 2)

        def record(sums: TemperingStatistics) -> TemperingStatistics:
            gap = jnp.diff(self.betas).astype(rejection.dtype)
            up = jnp.where(gap > 0, gap * points.log_ratio[:-1], 0)
            # A colder replica that hasn't found the support yet isn't a draw of its density: leave it out.
            colder = jnp.where(points.log_ratio[1:] > -jnp.inf, points.log_ratio[1:], jnp.inf)
            down = jnp.where(gap > 0, -gap * colder, 0)
            return sums._replace(
                rejection=sums.rejection + rejection,
                acceptance=sums.acceptance + acceptance,
                log_stones=jnp.logaddexp(sums.log_stones, jnp.stack([0.5 * up, 0.5 * down, up, down])),
                inside=sums.inside + (points.log_ratio[0] > -jnp.inf).astype(jnp.int32),
                n_recorded=sums.n_recorded + 1,
            )

        sums = jax.lax.cond(is_recorded, record, lambda sums: sums, old)
        return sums._replace(restarts=sums.restarts + n_arrived, round_trips=sums.round_trips + n_returned)

    def point(self, state: TemperingState) -> Point:
        """Return the coldest replica's point."""
        return jax.tree.map(lambda a: a[-1], state.points)

    def statistics(self, state: TemperingState) -> TemperingStatistics:
        """Return the sums."""
        return state.statistics

    def cost_init(self) -> int:
        """One evaluation per replica from the reference, one in all from the anchor."""
        return self.n_replicas if self.start == "reference" else 1

    def cost_step(self) -> int:
        """Return the kernel's cost for every moving replica, and one for the reference draw."""
        per_replica = self.kernel.evaluations_per_step
        if self.reference.is_proper:
            return (self.n_replicas - 1) * per_replica + 1
        return self.n_replicas * per_replica


def _no_statistics(n_replicas: int, dtype: np.dtype) -> TemperingStatistics:
    count = jnp.zeros((), jnp.int32)
    return TemperingStatistics(
        rejection=jnp.zeros((n_replicas - 1,), dtype),
        acceptance=jnp.zeros((n_replicas,), dtype),
        log_stones=jnp.full((4, n_replicas - 1), -jnp.inf, dtype),
        inside=count,
        n_recorded=count,
        restarts=count,
        round_trips=count,
    )
