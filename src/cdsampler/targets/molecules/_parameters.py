"""What a force field is made of, in OpenMM's units, and its file."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from cdsampler.errors import InvalidInputError

# 1/(4π ε0) in kJ/mol·nm/e², as in OpenMM 8.
COULOMB_CONSTANT = 138.93545764438198
INDICES = {"bond_atoms": 2, "angle_atoms": 3, "torsion_atoms": 4, "pair_atoms": 2}


@dataclass(frozen=True)
class GeneralisedBornParameters:
    """A generalised Born solvent of Onufriev, Bashford and Case (OBC) with a surface-area term.

    Attributes
    ----------
    charge, offset_radius_nm, scaled_radius_nm : ndarray, shape (n_atoms,)
        The offset radius is the atom's radius minus `offset_nm`; the scaled one is that times the screening factor.
    tanh_coefficients : tuple of three floats
        (α, β, γ) of `tanh(α ψ - β ψ² + γ ψ³)`: (.8, 0, 2.909125) for OBC1, (1, .8, 4.85) for OBC2.
    solvent_dielectric, solute_dielectric : float
    surface_energy : float
        kJ/mol/nm², with 4π included; multiplies `(r + 0.14 nm)² (r/B)⁶`.
    offset_nm : float
    coulomb_constant : float
        kJ/mol·nm/e²; the default is what OpenMM's force-field files write.
    """

    charge: np.ndarray
    offset_radius_nm: np.ndarray
    scaled_radius_nm: np.ndarray
    tanh_coefficients: tuple[float, float, float]
    solvent_dielectric: float = 78.5
    solute_dielectric: float = 1.0
    surface_energy: float = 28.3919551
    offset_nm: float = 0.009
    coulomb_constant: float = 138.935485

    def __post_init__(self) -> None:
        _convert(self, {})
        for name in ("offset_radius_nm", "scaled_radius_nm"):
            shape = getattr(self, name).shape
            if shape != self.charge.shape:
                raise InvalidInputError(
                    f"{name} must have one entry per charge, shape {self.charge.shape}, got {shape}."
                )
        if np.any(self.offset_radius_nm <= 0):
            raise InvalidInputError(f"offset_radius_nm must be positive, got {self.offset_radius_nm.min()}.")


@dataclass(frozen=True)
class ForceFieldParameters:
    """Parameters of a molecule without cut-off: harmonic bonds and angles, periodic torsions, pairs, and a solvent.

    Attributes
    ----------
    n_atoms : int
    bond_atoms : ndarray of int, shape (n_bonds, 2)
    bond_length_nm, bond_stiffness : ndarray, shape (n_bonds,)
        `½ k (r - r0)²`, k in kJ/mol/nm².
    angle_atoms : ndarray of int, shape (n_angles, 3)
    angle_rad, angle_stiffness : ndarray, shape (n_angles,)
        `½ k (θ - θ0)²`, k in kJ/mol/rad².
    torsion_atoms : ndarray of int, shape (n_torsions, 4)
    torsion_periodicity : ndarray of int, shape (n_torsions,)
    torsion_phase_rad, torsion_barrier : ndarray, shape (n_torsions,)
        `k (1 + cos(n φ - φ0))`, k in kJ/mol.
    pair_atoms : ndarray of int, shape (n_pairs, 2)
        Every pair that interacts, exceptions included.
    pair_charge_product : ndarray, shape (n_pairs,)
        Product of charges, in squared elementary charges.
    pair_sigma_nm, pair_epsilon : ndarray, shape (n_pairs,)
        `4 ε ((σ/r)¹² - (σ/r)⁶)`, ε in kJ/mol.
    solvent : GeneralisedBornParameters or None

    Raises
    ------
    InvalidInputError
        Shapes don't fit, a number isn't finite, or an atom's index is out of range.
    """

    n_atoms: int
    bond_atoms: np.ndarray
    bond_length_nm: np.ndarray
    bond_stiffness: np.ndarray
    angle_atoms: np.ndarray
    angle_rad: np.ndarray
    angle_stiffness: np.ndarray
    torsion_atoms: np.ndarray
    torsion_periodicity: np.ndarray
    torsion_phase_rad: np.ndarray
    torsion_barrier: np.ndarray
    pair_atoms: np.ndarray
    pair_charge_product: np.ndarray
    pair_sigma_nm: np.ndarray
    pair_epsilon: np.ndarray
    solvent: GeneralisedBornParameters | None = None

    def __post_init__(self) -> None:
        _convert(self, INDICES)
        for name, width in INDICES.items():
            atoms = getattr(self, name)
            outside = atoms[(atoms < 0) | (atoms >= self.n_atoms)]
            if outside.size:
                raise InvalidInputError(f"{name} names atom {outside[0]}: atoms are 0 to {self.n_atoms - 1}.")
            prefix = name.removesuffix("atoms")
            for field in fields(self):
                shape = np.shape(getattr(self, field.name))
                if field.name.startswith(prefix) and field.name != name and shape != (len(atoms),):
                    raise InvalidInputError(
                        f"{field.name} must have {len(atoms)} entries, one for each of {name}, got shape {shape}."
                    )
            twice = [row for row in atoms.tolist() if len(set(row)) < width]
            if twice:
                raise InvalidInputError(f"{name} names an atom twice in {twice[0]}: give different atoms.")
        if self.solvent is not None and len(self.solvent.charge) != self.n_atoms:
            raise InvalidInputError(
                f"The solvent has {len(self.solvent.charge)} atoms and the molecule {self.n_atoms}."
            )

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return json.loads(json.dumps(asdict(self), default=np.ndarray.tolist))

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> "ForceFieldParameters":
        """Invert `to_json`."""
        solvent = plain.get("solvent")
        return cls(**{**plain, "solvent": None if solvent is None else GeneralisedBornParameters(**solvent)})

    @classmethod
    def load(cls, path: str | Path) -> "ForceFieldParameters":
        """Read a file that holds what `to_json` returns.

        Raises
        ------
        InvalidInputError
            The file can't be read or holds something else.
        """
        try:
            return cls.from_json(json.loads(Path(path).read_text()))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"Can't read force-field parameters from {path}: {error}") from error


def _convert(parameters: Any, indices: dict[str, int]) -> None:
    """Make arrays of a frozen dataclass's array fields, and check that they are finite."""
    for field in fields(parameters):
        if field.type is not np.ndarray:
            continue
        is_whole = field.name in indices or field.name == "torsion_periodicity"
        try:
            array = np.asarray(getattr(parameters, field.name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"{field.name} must be an array of numbers: {error}") from error
        if not np.all(np.isfinite(array)):
            raise InvalidInputError(f"{field.name} holds {array[~np.isfinite(array)][0]}: give finite numbers.")
        if is_whole and np.any(array != np.round(array)):
            raise InvalidInputError(f"{field.name} holds {array[array != np.round(array)][0]}: give whole numbers.")
        if field.name in indices:
            width = indices[field.name]
            if array.size and (array.ndim != 2 or array.shape[1] != width):
                raise InvalidInputError(f"{field.name} must have shape (n, {width}), got {array.shape}.")
            array = array.reshape(-1, width)
        object.__setattr__(parameters, field.name, array.astype(np.int64) if is_whole else array)
