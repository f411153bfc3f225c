from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.benchmark import _symmetries as symmetries
from cdsampler.benchmark._dihedrals import c7ax_weight, ramachandran_metrics
from cdsampler.benchmark._rows import by_row, energy_of
from cdsampler.benchmark.references import Reference, load_reference
from cdsampler.errors import InvalidInputError
from cdsampler.metrics import (
    ExactReference,
    kabsch_wasserstein_1_and_2,
    negative_log_likelihoods,
    pair_distance_total_variation,
    sorted_radius_wasserstein_2,
)
from cdsampler.targets import (
    AbstractExactTarget,
    AbstractParticleTarget,
    AbstractTarget,
    BayesianNeuralNetwork,
    LennardJones,
    Molecule,
)
from cdsampler.targets.molecules import TorsionalCoordinates

Transformation = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def exact_reference(target: AbstractTarget, reference: Reference | None = None) -> ExactReference:
    """Return what metrics need of a target; none of it is charged to a sampler.

    A mixture is sampled exactly. Every other target has a finite pool of reference samples, from which draws are
    without replacement; each draw is turned at random by the symmetries that the target has exactly (rotations,
    reflections and relabellings of a cluster, rotations of a molecule in Cartesian coordinates, relabellings of a
    network's hidden units), so that no chain that made the pool need have found them.

    Parameters
    ----------
    target
        Of the catalog.
    reference
        The pool; default what `load_reference` returns, which may make it. A mixture needs none.

    Returns
    -------
    ExactReference
        Of rows as `metric_rows` returns them.

    Raises
    ------
    InvalidInputError
        A target of another kind, a pool with weights, or there is no pool and making one takes long.
    """
    if isinstance(target, AbstractExactTarget):
        return _of_exact(target)
    if isinstance(target, LennardJones):
        return _of_cluster(target, _pool(target, reference))
    if isinstance(target, Molecule):
        return _of_molecule(target, _pool(target, reference))
    if isinstance(target, BayesianNeuralNetwork):
        return _of_network(target, _pool(target, reference))
    raise InvalidInputError(f"There is no reference for {target.name}: write an ExactReference of your own.")


def metric_rows(target: AbstractTarget, positions: np.ndarray) -> np.ndarray:
    """Return samples as metrics compare them: those of particles as flat Cartesian positions, others as they are.

    Parameters
    ----------
    target
    positions : ndarray, shape (n, dim)
        Samples in the target's coordinates.

    Returns
    -------
    ndarray of float64, shape (n, dim) or (n, 3 n_particles)
        Particles have centroid zero; of a molecule's equivalent orientations, which are one state with other labels,
        each sample has a random one.
    """
    if not isinstance(target, AbstractParticleTarget):
        return np.asarray(positions, dtype=np.float64)
    rows = by_row(lambda q: target.to_positions(q).reshape(-1))(positions)
    if not isinstance(target, Molecule):
        return rows
    return symmetries.relabelled(np.random.default_rng(0), rows, rotors=target.coordinates.rotors)


def _of_exact(target: AbstractExactTarget) -> ExactReference:
    density, energy = target.density(), energy_of(target)

    def sample(seed: int, n: int) -> np.ndarray:
        return np.asarray(target.sample(jax.random.key(seed), n), dtype=np.float64)

    return ExactReference(
        sample=sample,
        log_density=lambda rows: -energy(rows),
        responsibilities=lambda x: np.asarray(target.responsibilities(jnp.asarray(x, density.dtype)), dtype=np.float64),
        weights=np.asarray(target.mode_weights, dtype=np.float64),
    )


def _of_cluster(target: LennardJones, pool: np.ndarray) -> ExactReference:
    energy = energy_of(target)
    return ExactReference(
        sample=partial(_draw, pool, symmetries.of_cluster),
        log_density=lambda rows: -energy(rows),
        size=len(pool),
        transport=_kabsch_transport,
        extra={
            "sorted_radius_wasserstein_2": sorted_radius_wasserstein_2,
            "pair_distance_total_variation": pair_distance_total_variation,
        },
    )


def _of_molecule(target: Molecule, pool: np.ndarray) -> ExactReference:
    energy = energy_of(target)
    beta = float(target.beta)
    turn: Transformation = symmetries.rotated
    if isinstance(target.coordinates, TorsionalCoordinates):
        # Internal coordinates have one orientation for each shape: the pool's rows get the same.
        pool = by_row(lambda row: target.to_positions(target.from_positions(row.reshape(-1, 3))).reshape(-1))(pool)
        turn = partial(symmetries.relabelled, rotors=target.coordinates.rotors)
    return ExactReference(
        sample=partial(_draw, pool, turn),
        log_density=lambda rows: -beta * energy(rows),
        size=len(pool),
        energy=energy,
        transport=_kabsch_transport,
        extra=ramachandran_metrics(target.temperature_kelvin),
        quantities={"c7ax_weight": c7ax_weight},
    )


def _of_network(target: BayesianNeuralNetwork, pool: np.ndarray) -> ExactReference:
    density, energy = target.density(), energy_of(target)

    def likelihoods(rows: np.ndarray) -> np.ndarray:
        return np.asarray(target.test_log_likelihood(jnp.asarray(rows, density.dtype)), dtype=np.float64)

    return ExactReference(
        sample=partial(_draw, pool, symmetries.of_network),
        log_density=lambda rows: -energy(rows),
        size=len(pool),
        quantities={
            "mean_nll": lambda rows: negative_log_likelihoods(likelihoods(rows)).mean_nll,
            "predictive_nll": lambda rows: negative_log_likelihoods(likelihoods(rows)).predictive_nll,
        },
    )


def _pool(target: AbstractTarget, reference: Reference | None) -> np.ndarray:
    found = load_reference(target.name) if reference is None else reference
    if found.log_weights is not None:
        raise InvalidInputError(
            f"The reference of {target.name} has weights, and metrics take equal ones: resample it."
        )
    return np.asarray(found.samples, dtype=np.float64)


def _draw(pool: np.ndarray, turn: Transformation, seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return turn(rng, pool[rng.choice(len(pool), n, replace=False)])


def _kabsch_transport(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    first, second = kabsch_wasserstein_1_and_2(x, y)
    return {"kabsch_wasserstein_2": second, "kabsch_wasserstein_1": first}
