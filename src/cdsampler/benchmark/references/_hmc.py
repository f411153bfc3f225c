import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, IntScalar, PRNGKey
from cdsampler.benchmark.references import _autocorrelation
from cdsampler.benchmark.references._recipe import AbstractRecipe, Block, Draws
from cdsampler.density import AbstractLogDensity, Point
from cdsampler.kernels import HMC
from cdsampler.kernels._base import draw_noise
from cdsampler.paths import AnnealingPath, FlatReference

# Draws whose energies are less correlated than that count as independent, unless the recipe has a caveat.
INDEPENDENT_BELOW = 1.1


class Starts(NamedTuple):
    """Where the chains of a block start.

    Attributes
    ----------
    positions : Array, shape (n_chains, dim)
    group : ndarray of int, shape (n_chains,)
        Which of the kinds of starts each has: index into the recipe's `groups`.
    """

    positions: Array
    group: np.ndarray


@dataclass(frozen=True)
class AbstractHMCRecipe(AbstractRecipe):
    """Many chains of Hamiltonian Monte Carlo in float32, from starts of two kinds that must end up the same.

    Parameters
    ----------
    name
    n
    step_size
        Leapfrog step.
    leapfrog_steps
        Mean number in a transition; each transition has its own, uniform between half and one and a half of it, which
        no periodic orbit can resonate with.
    burn_in
        Transitions before the first draw.
    spacing
        Transitions between draws.
    chains_per_block
        Even: half of the chains have either start, unless the recipe says otherwise.
    draws_per_chain
    """

    step_size: float
    leapfrog_steps: int
    burn_in: int
    spacing: int
    chains_per_block: int
    draws_per_chain: int
    groups: ClassVar[tuple[str, str]]
    # What the provenance must say beside its figures.
    caveat: ClassVar[str] = ""
    # Draws of the second kind may serve for the comparison only.
    keeps_second_group: ClassVar[bool] = True

    @abc.abstractmethod
    def density(self) -> AbstractLogDensity:
        """Return the log density that is sampled, in float32."""

    @abc.abstractmethod
    def starts(self, rng_key: PRNGKey) -> Starts:
        """Return the starts of one block."""

    @abc.abstractmethod
    def to_samples(self, rng: np.random.Generator, positions: np.ndarray) -> np.ndarray:
        """Return samples of shape (n, dim of the reference) for draws of shape (n, dim of the density)."""

    @property
    def n_blocks(self) -> int:
        """As many as make up the samples."""
        kept = self.chains_per_block if self.keeps_second_group else self.chains_per_block - self.n_second
        return -(-self.n // (kept * self.draws_per_chain))

    @property
    def n_second(self) -> int:
        """Chains of a block that have the second kind of start."""
        return self.chains_per_block // 2

    def block(self, seed: int, index: int, previous: Block | None) -> Block:
        """Run a block of chains."""
        key_starts, key_run = jax.random.split(jax.random.fold_in(jax.random.key(seed), index))
        starts = self.starts(key_starts)
        positions, log_density, acceptance, evaluations = _run(
            self.density(),
            key_run,
            starts.positions,
            jnp.asarray(self.step_size, jnp.float32),
            (self.leapfrog_steps, self.burn_in, self.spacing, self.draws_per_chain),
        )
        # Draws of a chain follow one another.
        draws = np.asarray(jnp.swapaxes(positions, 0, 1), dtype=np.float64)
        is_kept = (starts.group == 0) | self.keeps_second_group
        rng = np.random.Generator(np.random.PCG64([seed, index]))
        samples = self.to_samples(rng, draws[is_kept].reshape(-1, draws.shape[-1]))
        return {
            "samples": samples.astype(np.float32),
            "energy": -np.asarray(log_density, dtype=np.float64).T,
            "group": starts.group,
            "acceptance": np.asarray(acceptance, dtype=np.float64),
            "evaluations": np.asarray(int(evaluations) * self.chains_per_block),
        }

    def assemble(self, blocks: Sequence[Block]) -> Draws:
        """Join the blocks, measure the autocorrelation, and compare the two kinds of starts."""
        samples = np.concatenate([block["samples"] for block in blocks])[: self.n]
        energy = np.concatenate([block["energy"] for block in blocks])
        group = np.concatenate([block["group"] for block in blocks])
        kept = energy[(group == 0) | self.keeps_second_group]
        tau = _autocorrelation.of_chains(kept)
        means = [energy[group == g].mean(axis=1) for g in (0, 1)]
        facts: dict[str, Any] = {
            "evaluations": int(sum(block["evaluations"] for block in blocks)),
            "acceptance": float(np.mean([block["acceptance"] for block in blocks])),
            "n_chains": len(kept),
            "energy_mean": float(kept.mean()),
            "energy_standard_error": _standard_error(kept.mean(axis=1)),
            "energy_sd": float(kept.std()),
            "energy_autocorrelation_draws": tau,
            **{
                f"energy_of_{name}_starts": [float(m.mean()), _standard_error(m)]
                for name, m in zip(self.groups, means, strict=True)
                if len(m)
            },
            "starts_z": _z_score(*means),
        }
        if self.caveat:
            facts["caveat"] = self.caveat
        is_independent = tau < INDEPENDENT_BELOW and not self.caveat
        return Draws(samples, is_independent, 1.0 if is_independent else tau, facts)


def _standard_error(chain_means: np.ndarray) -> float | None:
    return float(chain_means.std(ddof=1) / np.sqrt(len(chain_means))) if len(chain_means) > 1 else None


def _z_score(first: np.ndarray, second: np.ndarray) -> float | None:
    """Return how far two groups' mean energies differ, in standard errors; None if that can't be said."""
    errors = _standard_error(first), _standard_error(second)
    if errors[0] is None or errors[1] is None or not errors[0] + errors[1] > 0:
        return None
    return float((first.mean() - second.mean()) / np.hypot(errors[0], errors[1]))


@eqx.filter_jit
def _run(
    density: AbstractLogDensity, key: PRNGKey, starts: Array, step_size: Array, counts: tuple[int, int, int, int]
) -> tuple[Array, Array, Array, IntScalar]:
    """Return draws (n_draws, n_chains, dim), log densities, mean acceptance, and evaluations of one chain.

    Parameters
    ----------
    density
    key
    starts : Array, shape (n_chains, dim)
    step_size : Array, shape ()
    counts
        Leapfrog steps, transitions of the burn-in, those between draws, and draws.
    """
    leapfrog_steps, burn_in, spacing, n_draws = counts
    path = AnnealingPath(FlatReference(), density, starts[0])
    tempered = path.at(jnp.ones((), starts.dtype))

    def transition(index: IntScalar, carry: tuple[Point, Array, Array]) -> tuple[Point, Array, Array]:
        points, acceptance, evaluations = carry
        key_length, key_noise = jax.random.split(jax.random.fold_in(key, index))
        # The length is shared by all chains: they then run in step, and it knows nothing of where they are.
        length = jax.random.randint(key_length, (), (leapfrog_steps + 1) // 2, leapfrog_steps + leapfrog_steps // 2 + 1)
        kernel = HMC(step_size, length)
        noise = draw_noise(key_noise, starts.shape[:1], starts.shape[1], starts.dtype)
        points, info = jax.vmap(lambda n, p: kernel.move(n, p, tempered))(noise, points)
        return points, acceptance + jnp.mean(info.acceptance_prob), evaluations + length.astype(jnp.int32)

    def draw(carry: tuple[Point, Array, Array], index: Array) -> tuple[tuple[Point, Array, Array], tuple[Array, Array]]:
        first = burn_in + index * spacing
        carry = jax.lax.fori_loop(first, first + spacing, transition, carry)
        return carry, (carry[0].position, carry[0].target.log_density)

    points, _ = jax.vmap(path.evaluate)(starts)
    begin = (points, jnp.zeros((), starts.dtype), jnp.ones((), jnp.int32))
    points, _, evaluations = jax.lax.fori_loop(0, burn_in, transition, begin)
    carry = (points, jnp.zeros((), starts.dtype), evaluations)
    (_, acceptance, evaluations), draws = jax.lax.scan(draw, carry, jnp.arange(n_draws, dtype=jnp.int32))
    return *draws, acceptance / (n_draws * spacing), evaluations
