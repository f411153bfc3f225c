import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Float, Scalar
from cdsampler.targets.molecules._parameters import GeneralisedBornParameters
from cdsampler.targets.molecules._vectors import dot

PROBE_RADIUS_NM = 0.14


class GeneralisedBorn(eqx.Module):
    """Solvation energy of a molecule in the OBC model, with the surface-area term of Schaefer et al.

    Parameters
    ----------
    parameters : GeneralisedBornParameters

    Notes
    -----
    Onufriev, Bashford and Case 2004; radii of influence after Hawkins, Cramer and Truhlar 1995. Every pair of atoms
    counts, bonded or not.
    """

    n_atoms: int = eqx.field(static=True)
    tanh_coefficients: tuple[float, float, float] = eqx.field(static=True)
    first: Array
    second: Array
    charge: Array
    offset_radius: Array
    scaled_radius: Array
    radius: Array
    factor: Array
    surface_energy: Array

    def __init__(self, parameters: GeneralisedBornParameters):
        p = parameters
        self.n_atoms = len(p.charge)
        self.tanh_coefficients = tuple(map(float, p.tanh_coefficients))  # type: ignore[assignment]
        one_hot = np.eye(self.n_atoms)[self.pairs()]
        self.first, self.second = jnp.asarray(one_hot[:, 0].T), jnp.asarray(one_hot[:, 1].T)
        self.charge = jnp.asarray(p.charge)
        self.offset_radius = jnp.asarray(p.offset_radius_nm)
        self.scaled_radius = jnp.asarray(p.scaled_radius_nm)
        self.radius = self.offset_radius + p.offset_nm
        self.factor = jnp.asarray(p.coulomb_constant * (1 / p.solute_dielectric - 1 / p.solvent_dielectric))
        self.surface_energy = jnp.asarray(p.surface_energy)

    def pairs(self) -> np.ndarray:
        """Return all pairs of atoms, shape (n_pairs, 2)."""
        return np.stack(np.triu_indices(self.n_atoms, 1), axis=1)

    def energy(self, difference: Float[Array, "3 pairs"]) -> Scalar:
        """Return the solvation energy in kJ/mol from the differences of all pairs in nm."""
        squared = dot(difference, difference)
        born = self._born_radii(jnp.sqrt(squared))
        self_energy = -0.5 * self.factor * jnp.sum(self.charge * self.charge / born)
        exposed = self.radius + PROBE_RADIUS_NM
        surface = self.surface_energy * jnp.sum(exposed * exposed * (self.radius / born) ** 6)
        product = _spread(born, self.first) * _spread(born, self.second)
        effective = jnp.sqrt(squared + product * jnp.exp(-squared / (4 * product)))
        charges = _spread(self.charge, self.first) * _spread(self.charge, self.second)
        return self_energy + surface - self.factor * jnp.sum(charges / effective)

    def _born_radii(self, distance: Array) -> Array:
        own, scaled = self.offset_radius, self.scaled_radius
        on_first = _descreening(distance, _spread(own, self.first), _spread(scaled, self.second))
        on_second = _descreening(distance, _spread(own, self.second), _spread(scaled, self.first))
        psi = own * (_spread(on_first, self.first.T) + _spread(on_second, self.second.T))
        alpha, beta, gamma = self.tanh_coefficients
        return 1 / (1 / own - jnp.tanh(psi * (alpha - psi * (beta - psi * gamma))) / self.radius)


def _spread(values: Array, chosen: Array) -> Array:
    # Some accelerators would round the values to ten bits by default.
    return jnp.matmul(values, chosen, precision=jax.lax.Precision.HIGHEST)


def _descreening(r: Array, own: Array, scaled: Array) -> Array:
    """Return the integral by which a sphere of radius `scaled` at distance r screens an atom of radius `own`."""
    is_outside = r + scaled > own
    upper = jnp.where(is_outside, r + scaled, own + 1)
    lower = jnp.where(is_outside, jnp.maximum(own, jnp.abs(r - scaled)), own)
    inverse_upper, inverse_lower = 1 / upper, 1 / lower
    shell = 0.25 * (r - scaled * scaled / r) * (inverse_upper * inverse_upper - inverse_lower * inverse_lower)
    integral = 0.5 * (inverse_lower - inverse_upper + shell + 0.5 * jnp.log(lower * inverse_upper) / r)
    return jnp.where(is_outside, integral, 0)
