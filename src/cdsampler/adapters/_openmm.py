from typing import Any

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.host import HostLogDensity
from cdsampler.parameters import Model

# Boltzmann's constant times Avogadro's, in kJ/(mol K).
GAS_CONSTANT = 0.00831446261815324


def from_openmm(context: Any, temperature: float, *, centroid_scale: float = 0.1) -> Model:
    """Return the Boltzmann distribution of an OpenMM context's potential as a target.

    Energies and forces are OpenMM's, of one point at a time. Coordinates are Cartesian, atom by atom, in nanometres. A
    potential in free space doesn't hold the centroid, so it gets a Gaussian of its own, which leaves shapes as they
    are. For small molecules `cdsampler.targets.Molecule` is far cheaper: it compiles the force field, and samples
    internal coordinates.

    Parameters
    ----------
    context
        An `openmm.Context`; periodic boxes aren't supported. It is used as long as the target is.
    temperature
        In kelvin.
    centroid_scale
        Standard deviation of the centroid, in nanometres.

    Returns
    -------
    Model
        Its variable is `positions`, shape (n_atoms, 3).

    Raises
    ------
    ImportError
        OpenMM is missing.
    InvalidInputError
        A periodic system, one with massless or constrained particles, or a number that isn't positive.
    """
    try:
        from openmm import unit
    except ImportError as error:
        raise ImportError("from_openmm needs OpenMM: pip install 'cdsampler[molecules]'.") from error
    for name, given in (("temperature", temperature), ("centroid_scale", centroid_scale)):
        if not (np.isfinite(given) and given > 0):
            raise InvalidInputError(f"{name} must be positive and finite, got {given!r}.")
    system = context.getSystem()
    _check(system)
    n_atoms, beta = system.getNumParticles(), 1 / (GAS_CONSTANT * temperature)
    force_unit = unit.kilojoule_per_mole / unit.nanometer

    def state(x: np.ndarray, with_forces: bool) -> tuple[float, np.ndarray]:
        positions = x.reshape(n_atoms, 3)
        centroid = positions.mean(axis=0)
        context.setPositions(positions - centroid)
        found = context.getState(getEnergy=True, getForces=with_forces)
        energy = found.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
        value = -beta * energy - 0.5 * float(np.sum((centroid / centroid_scale) ** 2))
        if not with_forces:
            return value, np.zeros(0)
        forces = np.asarray(found.getForces(asNumpy=True).value_in_unit(force_unit))
        pull = np.broadcast_to(centroid / (n_atoms * centroid_scale**2), (n_atoms, 3))
        return value, (beta * forces - pull).ravel()

    density = HostLogDensity(
        lambda x: state(x, False)[0],
        3 * n_atoms,
        value_and_grad=lambda x: state(x, True),
        names=tuple(f"atom{i}.{axis}" for i in range(n_atoms) for axis in "xyz"),
    )
    return Model(
        density,
        lambda positions: {"positions": positions.reshape(len(positions), n_atoms, 3)},
        lambda values: np.ravel(np.asarray(values["positions"], dtype=np.float64)),
        dims={"positions": ["atom", "axis"]},
        coords={"atom": list(range(n_atoms)), "axis": ["x", "y", "z"]},
    )


def _check(system: Any) -> None:
    if system.usesPeriodicBoundaryConditions():
        raise InvalidInputError("The system is periodic: its centroid has no meaning. Use a cluster, or no cutoff.")
    if system.getNumConstraints():
        raise InvalidInputError(
            f"The system has {system.getNumConstraints()} constraints, and Cartesian coordinates are free: create it "
            "with constraints=None and rigidWater=False."
        )
    if any(system.isVirtualSite(i) for i in range(system.getNumParticles())):
        raise InvalidInputError("The system has virtual sites, whose positions aren't coordinates.")
