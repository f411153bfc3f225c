"""Dihedral angles of molecules, and the basin of alanine dipeptide that samplers miss first."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows


def dihedral_angles(positions: ArrayLike, quadruples: ArrayLike) -> FloatArray:
    """Dihedral angles of quadruples of atoms, by the IUPAC sign: positive if the far bond turns clockwise.

    Parameters
    ----------
    positions : array_like, [n, n_atoms, 3]
        Coordinates, in any unit.
    quadruples : array_like of int, [k, 4]
        Indices i, j, k, l of the atoms: the angle between the planes ijk and jkl, seen along j to k.

    Returns
    -------
    ndarray, [n, k]
        Radians in (−π, π]; 0 is cis and π trans.

    Raises
    ------
    InvalidInputError
        If a shape is wrong, an index is out of range, a coordinate is not finite, or three consecutive atoms of
        a quadruple lie on a line, where the angle is undefined.
    """
    coordinates = np.asarray(positions, dtype=np.float64)
    if coordinates.ndim != 3 or coordinates.shape[2] != 3 or coordinates.size == 0:
        raise InvalidInputError(f"positions has shape {coordinates.shape}; pass a non-empty array [n, n_atoms, 3].")
    as_finite_rows("positions", coordinates.reshape(len(coordinates), -1))
    atoms = coordinates[:, _require_quadruples(quadruples, coordinates.shape[1])]  # [n, k, 4, 3]
    first, middle, last = np.moveaxis(np.diff(atoms, axis=2), 2, 0)
    near, far = np.cross(first, middle), np.cross(middle, last)
    flat = int(np.count_nonzero(~(near.any(axis=2) & far.any(axis=2))))
    if flat:
        raise InvalidInputError(
            f"{flat} of {near.shape[0] * near.shape[1]} dihedral angles are undefined, as three consecutive atoms "
            "lie on a line or coincide; check quadruples, or drop those configurations."
        )
    sines = (first * far).sum(axis=2) * np.linalg.norm(middle, axis=2)
    angles = np.arctan2(sines, (near * far).sum(axis=2))
    return np.where(angles == -np.pi, np.pi, angles)  # a sine of -0.0 gives −π


def c7ax_indicator(phi: ArrayLike) -> NDArray[np.bool_]:
    """Whether each draw of alanine dipeptide is in the C7ax basin, the side of positive φ.

    Parameters
    ----------
    phi : array_like, any shape
        The dihedral angle φ in radians, modulo 2π.

    Returns
    -------
    ndarray of bool, the same shape
        Whether φ is in (0, π).

    Raises
    ------
    InvalidInputError
        If an angle is not finite.
    """
    angles = np.asarray(phi, dtype=np.float64)
    bad = int(np.count_nonzero(~np.isfinite(angles)))
    if bad:
        raise InvalidInputError(f"phi: {bad} of {angles.size} angles are not finite; drop those draws and say so.")
    wrapped = np.mod(angles, 2 * np.pi)
    return (wrapped > 0) & (wrapped < np.pi)


def _require_quadruples(quadruples: ArrayLike, n_atoms: int) -> NDArray[np.int64]:
    indices = np.asarray(quadruples)
    if indices.ndim != 2 or indices.shape[1] != 4 or indices.size == 0 or indices.dtype.kind not in "iu":
        raise InvalidInputError(
            f"quadruples has shape {indices.shape} and type {indices.dtype}; pass whole numbers [k, 4]."
        )
    if indices.min() < 0 or indices.max() >= n_atoms:
        raise InvalidInputError(
            f"quadruples names atoms {indices.min()} to {indices.max()}; indices must be in 0 to {n_atoms - 1}."
        )
    return indices.astype(np.int64)
