import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array
from cdsampler.density import AbstractLogDensity, Evaluations, check_position, coordinate_names
from cdsampler.errors import InvalidInputError
from cdsampler.host import original_errors
from cdsampler.samplers import AbstractSampler, Harvest
from cdsampler.sampling._assembly import Accounts, assemble
from cdsampler.sampling._compilation import compilation_seconds
from cdsampler.sampling._groups import Groups
from cdsampler.sampling._result import Result, Timing
from cdsampler.sampling._sharing import run_shared
from cdsampler.sampling._team import team_of

# A group's replicas should stay in the processor's cache between the operations of a step.
GROUP_BYTES = 1_000_000
MAX_WIDTH = 4096
WIDTH_OF_LONG_CHAINS = 32


class Progress(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    evaluations : int
        Made so far.
    total : int
        Of the whole run.
    finished : int
        Samples that are complete (to within a chunk).
    """

    evaluations: int
    total: int
    finished: int


@original_errors
def run(
    sampler: AbstractSampler,
    density: AbstractLogDensity,
    n_samples: int,
    *,
    anchor: np.ndarray,
    anchor_scale: float = 0.0,
    seed: int = 0,
    tuning_evaluations: Evaluations | None = None,
    chunk_size: int | None = None,
    harvest: Harvest = Harvest(),  # noqa: B008 - immutable
    on_progress: Callable[[Progress], None] | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Result:
    """Draw samples with a frozen sampler: by default independent ones, one chain each.

    Parameters
    ----------
    sampler
        With its numbers of steps set, e.g. by `with_budget`. It costs `n_samples * sampler.cost()` evaluations, and
        `n_samples * (n_draws - 1)` times the cost of its later stages more. Groups of P particles take that for P
        samples.
    density
        Target.
    n_samples
        Chains to run; each gives `harvest.n_draws` samples. Of samplers whose chains are groups of particles, the
        samples to return.
    anchor : array_like, shape (dim,) or (n_anchors, dim)
        Where the reference is centred, e.g. a mode, or where local chains start. Chains take several in turn.
    anchor_scale
        If positive, each chain has its own anchor, drawn from `N(anchor, anchor_scale² I)` (the paper's `z ~ ν_ref`
        with τ); by default all share the anchor.
    seed
        Same seed and number of samples, same samples bit for bit on one kind of device, whatever the chunk size and
        the number of devices and processes.
    tuning_evaluations
        What mode search and pilot cost, for the accounts.
    chunk_size
        Most chains in flight at once in a process, at least one group; default as many groups as there are cores or
        devices. Chains are compiled in groups of a width that depends on the problem and `n_samples` alone: XLA rounds
        differently in programs of different widths, so this is what keeps results independent of the chunk size.
    harvest
        More draws per chain, and how far apart.
    on_progress
        Called several times a second, in the caller's thread; of several processes only the first calls it.
    devices
        Devices that the chains are spread over, by default all. With `jax.distributed` every process has to make the
        same call; it runs its devices' share and returns the whole result. A list of the process's own devices keeps
        the run to itself.

    Returns
    -------
    Result
        After an interrupt (Ctrl-C) the finished chains, marked as partial.

    Raises
    ------
    InvalidInputError
        A bad count, seed, anchor, chunk size or devices, or groups of more particles than samples.
    DensityError
        The log density was plus infinity somewhere.
    ProcessError
        Another process has failed, is silent, or was called with something else.
    KeyboardInterrupt
        Interrupted before any chain was complete.
    """
    check_counts(n_samples, seed, chunk_size)
    team = team_of(devices)
    centres = _checked(density, anchor, anchor_scale)
    began, compiled = time.perf_counter(), compilation_seconds()
    n_points = check_group(sampler, n_samples, harvest)
    n_chains = -(-n_samples // n_points)
    width, n_groups = grouping(sampler, density, n_chains, harvest)
    key_chains, key_anchors = jax.random.split(jax.random.key(seed))
    groups = Groups(sampler, density, (key_chains, key_anchors), centres, anchor_scale, width, n_chains, harvest)
    total = harvest_cost(sampler, harvest) * width * n_groups

    def report(made: int, n_finished: int) -> None:
        if on_progress is not None and team.is_first:
            finished = min(min(n_finished * width, n_chains) * n_points, n_samples)
            on_progress(Progress(made, total, finished * harvest.n_draws))

    n_at_once = n_groups if chunk_size is None else max(1, chunk_size // width)
    if density.is_on_host:
        # Several computations that wait for Python at once can hold all of JAX's threads, which deadlocks functions
        # that call JAX themselves.
        n_at_once = 1
    outcomes, made, is_partial = run_shared(groups, n_groups, team, n_at_once, seed, report)
    timing = Timing(time.perf_counter() - began, compilation_seconds() - compiled)
    tuning = Evaluations.zero().total() if tuning_evaluations is None else tuning_evaluations.total()
    kept = sum(int(outcome.evaluations.total().count) for outcome in outcomes)
    accounts = Accounts(tuning, made - kept, sum(outcome.executed for outcome in outcomes))
    names = coordinate_names(density)
    return assemble(sampler, outcomes, accounts, n_samples, seed, names, timing, is_partial)


def check_group(sampler: AbstractSampler, n_samples: int, harvest: Harvest = Harvest()) -> int:  # noqa: B008 - immutable
    """Return the samples that a chain gives at once; raise `InvalidInputError` if they are more than asked for."""
    n_points = sampler.stages()[0].n_points
    if n_points > n_samples:
        raise InvalidInputError(
            f"n_samples is {n_samples}, and {type(sampler).__name__} makes {n_points} particles at once: ask for at "
            f"least {n_points} samples, or use fewer particles."
        )
    if n_points > 1 and harvest.n_draws > 1:
        raise InvalidInputError(f"A group of particles gives all its draws at once, not n_draws={harvest.n_draws}.")
    return n_points


def harvest_cost(sampler: AbstractSampler, harvest: Harvest) -> int:
    """Return the evaluations of one chain with all its draws."""
    return sampler.cost() + (harvest.n_draws - 1) * sampler.cost_of_transport()


def grouping(sampler: AbstractSampler, density: AbstractLogDensity, n_chains: int, harvest: Harvest) -> tuple[int, int]:
    """Return the width and number of the groups that `run` executes; their product counts spare chains, too."""
    widest = cache_width(sampler, density)
    # Few long chains are shared out between cores, too.
    return group_width(n_chains, widest if harvest.n_draws == 1 else min(widest, WIDTH_OF_LONG_CHAINS))


def group_width(n_samples: int, widest: int) -> tuple[int, int]:
    """Return the width and number of equal groups that hold the samples, with as few spare chains as possible.

    Parameters
    ----------
    n_samples
    widest
        Greatest width allowed.
    """
    least = -(-n_samples // widest)
    # Up to a quarter more groups are cheaper than spare chains.
    candidates = range(least, least + least // 4 + 1)
    n_groups = min(candidates, key=lambda n: (-(-n_samples // n) * n - n_samples, n))
    return -(-n_samples // n_groups), n_groups


def cache_width(sampler: AbstractSampler, density: AbstractLogDensity) -> int:
    """Return how many chains fit the cache, from the size of one chain's state in the first stage."""
    stage = sampler.stages()[0].compiled_part()
    anchor = jax.ShapeDtypeStruct((density.dim,), density.dtype)
    key = jax.random.key(0)
    state = eqx.filter_eval_shape(lambda z: stage.init(key, stage.path(density, z), None), anchor)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    return int(np.clip(GROUP_BYTES // size, 32, MAX_WIDTH))


def check_counts(n_samples: int, seed: int, chunk_size: int | None) -> None:
    """Raise `InvalidInputError` for a bad number of samples, seed or chunk size."""
    if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
        raise InvalidInputError(f"n_samples must be a positive integer, got {n_samples!r}.")
    if chunk_size is not None and chunk_size < 1:
        raise InvalidInputError(f"chunk_size must be at least 1, got {chunk_size}.")
    if not 0 <= seed < 2**63:
        raise InvalidInputError(f"seed must lie in [0, 2^63), got {seed}.")


def _checked(density: AbstractLogDensity, anchor: Any, anchor_scale: float) -> Array:
    if not (np.isfinite(anchor_scale) and anchor_scale >= 0):
        raise InvalidInputError(f"anchor_scale must be finite and not negative, got {anchor_scale}.")
    is_several = isinstance(anchor, np.ndarray) and anchor.ndim == 2 and len(anchor) > 0
    several = anchor if is_several else [anchor]
    return jnp.asarray([check_position(density, "anchor", one) for one in several], density.dtype)
