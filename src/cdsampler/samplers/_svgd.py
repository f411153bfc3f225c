from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from cdsampler._typing import Array, IntScalar, Position, PRNGKey
from cdsampler.density import AbstractLogDensity, Evaluations, Point
from cdsampler.errors import InvalidInputError
from cdsampler.paths import AbstractReference, AnnealingPath, FlatReference
from cdsampler.samplers._base import AbstractStage, AbstractState, as_count
from cdsampler.samplers._blackjax import import_blackjax

SteinOptimizer = Literal["adam", "adagrad", "sgd"]
SteinStart = Literal["reference", "anchor"]

OPTIMIZERS = {"adam": optax.scale_by_adam, "adagrad": optax.scale_by_rss, "sgd": optax.identity}


class SVGDStatistics(NamedTuple):
    """Whether one group has settled.

    Attributes
    ----------
    update : Array, shape ()
        Root mean square distance that particles moved in the last step, relative to the kernel's length scale. Small
        when the group has settled, or when the learning rate is small.
    is_coincident : Array, shape ()
        1 if two particles are at the same place, from which they never part; else 0.
    """

    update: Array
    is_coincident: Array


class SVGDState(AbstractState):
    """A group's particles, the optimizer's memory and the last step's relative length."""

    particles: Point
    memory: Any
    update: Array
    evaluations: Evaluations


class SVGD(AbstractStage):
    """Stein variational gradient descent: a chain is a group of particles that a deterministic flow moves together.

    Each particle climbs the log density, averaged over its neighbours with a Gaussian kernel, and is repelled by
    them. The kernel's length scale follows the median of the particles' distances.

    Parameters
    ----------
    n_particles
        Particles in a group, at least 2. A step takes memory and arithmetic of their number squared.
    learning_rate
        Scales the optimizer's steps. With Adam it is about the distance that a particle moves per step, at first.
    n_steps
        Steps.
    optimizer
        Adam, AdaGrad (which the authors use) or plain gradient descent.
    start
        Where the particles come from: draws from the reference, or the anchor with Gaussian noise.
    reference
        Proper, about the anchor; for `start="reference"`.
    jitter
        The noise's standard deviation, for `start="anchor"`.

    Raises
    ------
    InvalidInputError
        A number is out of range, a name is unknown, the reference isn't proper, or the jitter isn't positive:
        particles at the same place feel the same force and never part, and the median of their distances is 0.
    MissingExtraError
        BlackJAX isn't installed.

    Notes
    -----
    Costs `n_particles` value-and-gradient evaluations to start and as many per step; they are made where the
    particles end up, so that the final ones carry theirs.

    This is variational inference, not Markov chain Monte Carlo: with few particles it is biased for any number of
    steps. The particles of a group are not independent; groups are. Variances are underestimated in high dimension
    (Ba et al. 2021, "Understanding the variance collapse of SVGD in high dimensions"), and no mass moves between
    distant modes: their shares stay what the start made them. Particles outside the support feel only the others.

    Liu and Wang 2016, "Stein variational gradient descent".
    """

    learning_rate: Array
    jitter: Array
    n_steps: Array
    reference: AbstractReference
    n_particles: int = eqx.field(static=True)
    optimizer: SteinOptimizer = eqx.field(static=True)
    start: SteinStart = eqx.field(static=True)

    def __init__(
        self,
        n_particles: int,
        learning_rate: float | Array,
        n_steps: int = 0,
        *,
        optimizer: SteinOptimizer = "adam",
        start: SteinStart = "reference",
        reference: AbstractReference | None = None,
        jitter: float | Array = 0.0,
    ):
        import_blackjax()
        if isinstance(n_particles, bool) or not isinstance(n_particles, int | np.integer) or n_particles < 2:
            raise InvalidInputError(f"n_particles must be an integer of at least 2, got {n_particles!r}.")
        if optimizer not in OPTIMIZERS:
            raise InvalidInputError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {optimizer!r}.")
        if start not in get_args(SteinStart):
            raise InvalidInputError(f"start must be one of {', '.join(get_args(SteinStart))}, got {start!r}.")
        if start == "reference" and (reference is None or not reference.is_proper):
            raise InvalidInputError(
                f"start='reference' needs a proper reference to draw from, got {reference!r}: give a "
                "GaussianReference, or use start='anchor' with a jitter."
            )
        is_known = not isinstance(learning_rate, jax.core.Tracer)
        if is_known and not (np.isfinite(learning_rate) and np.asarray(learning_rate) > 0):
            raise InvalidInputError(f"learning_rate must be positive and finite, got {learning_rate}.")
        is_known = not isinstance(jitter, jax.core.Tracer)
        if start == "anchor" and is_known and not (np.isfinite(jitter) and np.asarray(jitter) > 0):
            raise InvalidInputError(
                f"jitter must be positive and finite for start='anchor', got {jitter}: particles that start at the "
                "same place never part."
            )
        default = jnp.zeros(()).dtype
        self.n_particles = int(n_particles)
        self.learning_rate = jnp.asarray(learning_rate, default)
        self.n_steps = as_count(n_steps)
        self.optimizer = optimizer
        self.start = start
        self.reference = FlatReference() if reference is None else reference
        self.jitter = jnp.asarray(jitter, default)

    @property
    def n_points(self) -> int:
        """The particles of a group."""
        return self.n_particles

    def path(self, density: AbstractLogDensity, anchor: Position) -> AnnealingPath:
        """Return a path with the reference that the particles may start from."""
        return AnnealingPath(self.reference, density, anchor)

    def init(self, rng_key: PRNGKey, path: AnnealingPath, start: Point | None) -> SVGDState:
        """Return particles from the reference or about the anchor, or about a point handed over."""
        if start is not None:
            path = AnnealingPath(path.reference, path.density, start.position)
        if self.start == "reference":
            positions = jax.vmap(path.sample_reference)(jax.random.split(rng_key, self.n_particles))
        else:
            anchor = path.anchor
            noise = jax.random.normal(rng_key, (self.n_particles, *anchor.shape), anchor.dtype)
            positions = anchor[None] + self.jitter.astype(anchor.dtype) * noise
        particles, costs = jax.vmap(path.evaluate)(positions)
        memory = self._optimizer(positions.dtype).init(_leaves(particles))
        return SVGDState(
            particles=particles,
            memory=memory,
            update=jnp.asarray(jnp.inf, positions.dtype),
            evaluations=costs.sum(),
        )

    def step(self, rng_key: PRNGKey, state: SVGDState, index: IntScalar, row: Any, path: AnnealingPath) -> SVGDState:
        """Move all particles once."""
        svgd = import_blackjax().vi.svgd
        old = state.particles.position
        # On positions alone: the heuristic takes distances between all that a particle has.
        scales = svgd.update_median_heuristic(svgd.SVGDState(old, {}, None)).kernel_parameters
        move = svgd.build_kernel(self._optimizer(old.dtype))
        moved = move(
            svgd.SVGDState(_leaves(state.particles), scales, state.memory),
            # The gradient is data that travels with the position, so that none is evaluated twice.
            lambda one: {"position": one["gradient"], "gradient": jnp.zeros_like(one["gradient"])},
            lambda one, other, length_scale: svgd.rbf_kernel(one["position"], other["position"], length_scale),
        )
        new = moved.particles["position"]
        particles, costs = jax.vmap(path.evaluate)(new)
        squared = jnp.mean(jnp.sum((new - old) ** 2, axis=1))
        return SVGDState(
            particles=particles,
            memory=moved.opt_state,
            update=jnp.sqrt(squared / scales["length_scale"]),
            evaluations=state.evaluations + costs.sum(),
        )

    def _optimizer(self, dtype: np.dtype) -> optax.GradientTransformation:
        # The rate as an array of the program: another one compiles nothing anew.
        rate = optax.scale(-self.learning_rate.astype(dtype))
        return optax.chain(OPTIMIZERS[self.optimizer](), rate)

    def point(self, state: SVGDState) -> Point:
        """Return all particles, shape (n_particles, ...)."""
        return state.particles

    def statistics(self, state: SVGDState) -> SVGDStatistics:
        """Return whether the group has settled."""
        position = state.particles.position
        is_same = jnp.all(position[:, None] == position[None, :], axis=-1)
        n_pairs = jnp.sum(is_same) - self.n_particles
        return SVGDStatistics(state.update, (n_pairs > 0).astype(position.dtype))

    def cost_init(self) -> int:
        """One evaluation of each particle."""
        return self.n_particles

    def cost_step(self) -> int:
        """One evaluation of each particle."""
        return self.n_particles


def _leaves(particles: Point) -> dict[str, Array]:
    return {"position": particles.position, "gradient": particles.target.gradient}
