"""Functions of many samples at once, as metrics and references need them: from and to float64."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array
from cdsampler.targets import AbstractParticleTarget, AbstractTarget, Molecule

ROWS_AT_ONCE = 1000


def by_row(function: Callable[[Array], Array]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the compiled function of many rows, in JAX's default type and some rows at a time."""

    @eqx.filter_jit
    def apply(rows: Array) -> Array:
        return jax.lax.map(function, rows, batch_size=ROWS_AT_ONCE)

    def call(rows: np.ndarray) -> np.ndarray:
        return np.asarray(apply(jnp.asarray(rows, jnp.zeros(()).dtype)), dtype=np.float64)

    return call


def energy_of(target: AbstractTarget) -> Callable[[np.ndarray], np.ndarray]:
    """Return the potential energy in kJ/mol of a molecule's flat positions; of other targets minus the log density.

    Rows of particles are flat positions, whatever the target's coordinates.
    """
    density = target.density()

    def of_row(row: Array) -> Array:
        if isinstance(target, Molecule):
            return target.force_field.energy(row.reshape(-1, 3))
        if isinstance(target, AbstractParticleTarget):
            row = target.from_positions(row.reshape(-1, 3))
        return -density.value(row)[0]

    return by_row(of_row)
