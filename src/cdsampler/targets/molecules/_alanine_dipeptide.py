import dataclasses
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.targets._internal_coordinates import InternalCoordinates
from cdsampler.targets.molecules._force_field import ForceField
from cdsampler.targets.molecules._molecule import (
    AbstractCoordinates,
    CartesianCoordinates,
    Molecule,
    TorsionalCoordinates,
)
from cdsampler.targets.molecules._parameters import ForceFieldParameters

# Ω = (r_N - r_CA)·[(r_C - r_CA) × (r_CB - r_CA)] is positive in the L form.
CHIRAL_CENTRE = (6, 8, 14, 10)
PHI, PSI = (4, 6, 8, 14), (6, 8, 14, 16)
# The hydrogens of the three methyl groups.
METHYLS = ((0, 2, 3), (11, 12, 13), (19, 20, 21))
ENVIRONMENTS = ("vacuum", "implicit")
COORDINATES = ("internal", "cartesian")


def alanine_dipeptide(environment: str = "vacuum", coordinates: str = "internal") -> Molecule:
    """Return alanine dipeptide (22 atoms) at 300 K with the force field ff96, without constraints or cut-off.

    Parameters
    ----------
    environment
        "vacuum", or "implicit" for the OBC1 solvent with its surface term.
    coordinates
        "internal": 60 bonds, angles and torsions; "cartesian": 63 isometric coordinates of the configurations with
        centroid zero, as in the paper but for the translations.

    Raises
    ------
    InvalidInputError
        Another environment or other coordinates.

    Notes
    -----
    The parameters are packaged: OpenMM isn't needed. They were taken from the system of openmmtools'
    `AlanineDipeptideVacuum(constraints=None)` and `AlanineDipeptideImplicit(constraints=None)` (MIT licence).
    """
    for name, value, options in (
        ("environment", environment, ENVIRONMENTS),
        ("coordinates", coordinates, COORDINATES),
    ):
        if value not in options:
            raise InvalidInputError(f"{name} must be one of {', '.join(options)}, got {value!r}.")
    minimum = minimum_positions_nm()
    chosen: AbstractCoordinates = CartesianCoordinates(len(minimum))
    if coordinates == "internal":
        chosen = TorsionalCoordinates(InternalCoordinates(bonds(), minimum), METHYLS)
    suffix = ("" if environment == "vacuum" else "-implicit") + ("" if coordinates == "internal" else "-cartesian")
    return Molecule(f"aldp{suffix}", ForceField(parameters(environment)), chosen, chiral_centres=(CHIRAL_CENTRE,))


def parameters(environment: str) -> ForceFieldParameters:
    """Return the packaged force-field parameters, in vacuum or in the implicit solvent."""
    full = ForceFieldParameters.from_json(_packaged()["force_field"])
    return full if environment == "implicit" else dataclasses.replace(full, solvent=None)


def bonds() -> list[tuple[int, int]]:
    """Return the pairs of bonded atoms."""
    return [(int(i), int(j)) for i, j in _packaged()["force_field"]["bond_atoms"]]


def atom_names() -> tuple[str, ...]:
    """Return the atoms' names, residue by residue (ACE, ALA, NME)."""
    return tuple(_packaged()["atom_names"])


def minimum_positions_nm() -> np.ndarray:
    """Return the nearest minimum of the vacuum energy to the test system's positions, shape (22, 3)."""
    return np.array(_packaged()["minimum_positions_nm"])


def test_positions_nm() -> np.ndarray:
    """Return the positions of openmmtools' test system, at which its energies are known, shape (22, 3)."""
    return np.array(_packaged()["test_positions_nm"])


@cache
def _packaged() -> dict[str, Any]:
    text = files("cdsampler.targets.molecules").joinpath("data/alanine_dipeptide.json").read_text()
    return json.loads(text)
