"""Internal coordinates of a molecule (bond lengths, angles, torsions), each mapped to the whole real line.

A log density that rigid motions leave alone is improper in Cartesian coordinates. In these 3N - 6 coordinates, with
their Jacobian, it is proper up to the periodicity of torsions, which `winding_log_window` takes care of.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Float, Position, Scalar
from cdsampler.errors import InvalidInputError

TAIL_DEVIATIONS = 9.0  # a Gaussian is below 1e-17 of its peak beyond
SMALLEST_SINE = 1e-4  # of an example's angle: closer to a line, torsions mean nothing
ROOT_FRAMES = np.array([[[-1, 1], [0, 0], [0, 0]], [[0, 0], [1, 1], [0, 0]], [[0, 0], [0, 0], [-1, 1]]])


@dataclasses.dataclass(frozen=True)
class ZMatrix:
    """From which atoms each atom of a molecule is placed; hashable, so compiled functions may depend on it.

    Row k places atom `order[k]` at a distance from its parent, to which it is bonded, at an angle to the parent's
    `axis` atom, and at a torsion about that axis relative to its `third` atom. The root and two of its neighbours come
    first. A torsion is proper if the third atom is bonded to the axis atom; else that atom is the first sibling.

    Attributes
    ----------
    order, parent, axis, third : tuple of int
        Atoms, of rows from 0, 1, 2 and 3 on.
    is_proper : tuple of bool
        Of rows from 3 on.
    levels : tuple of (int, int)
        First row, and the one after the last, of atoms that are equally many bonds away from the root's first bond.
    """

    order: tuple[int, ...]
    parent: tuple[int, ...]
    axis: tuple[int, ...]
    third: tuple[int, ...]
    is_proper: tuple[bool, ...]
    levels: tuple[tuple[int, int], ...]

    @classmethod
    def from_bonds(cls, bonds: Sequence[tuple[int, int]] | np.ndarray, n_atoms: int) -> "ZMatrix":
        """Choose an order from the centre of the molecule outwards, longer branches first.

        Raises
        ------
        InvalidInputError
            Fewer than four atoms, or bonds that aren't pairs of different atoms or don't connect all atoms.
        """
        children = _tree(_neighbours(bonds, n_atoms))
        root = next(iter(children))
        first, second = children[root][:2]
        level = _siblings(children[root][1:], root, first, -1) + _siblings(children[first], first, root, second)
        rows: list[tuple[int, int, int, int, bool]] = []
        levels = []
        while level:
            levels.append((2 + len(rows), 2 + len(rows) + len(level)))
            rows += level
            level = [new for k, a, b, *_ in level for new in _siblings(children[k], k, a, b)]
        atoms, parents, axes, thirds, is_proper = zip(*rows, strict=True)
        return cls((root, first, *atoms), (root, *parents), axes, thirds[1:], is_proper[1:], tuple(levels))

    def parent_rows(self) -> np.ndarray:
        """Return the row of each row's parent, from row 1 on."""
        return np.argsort(self.order)[np.array(self.parent)]


def _siblings(children: list[int], parent: int, axis: int, third: int) -> list[tuple[int, int, int, int, bool]]:
    """Return atom, its three references, and whether the torsion is proper, for all children of an atom."""
    return [(k, parent, axis, third if k == children[0] else children[0], k == children[0]) for k in children]


def _tree(neighbours: list[set[int]]) -> dict[int, list[int]]:
    """Return the children of each atom, largest branch first, in the shallowest tree; its root comes first."""
    reached = {atom: _parents_from(atom, neighbours) for atom in range(len(neighbours))}
    missing = sorted(set(reached) - set(reached[0][0]))
    if missing:
        raise InvalidInputError(f"No chain of bonds leads from atom 0 to atom {missing[0]}: connect all atoms.")
    root = min(reached, key=lambda atom: (reached[atom][1], -len(neighbours[atom])))
    parents = reached[root][0]
    size = dict.fromkeys(parents, 1)
    children: dict[int, list[int]] = {atom: [] for atom in parents}
    for atom in reversed(list(parents)[1:]):
        size[parents[atom]] += size[atom]
        children[parents[atom]].append(atom)
    return {atom: sorted(found, key=lambda k: (-size[k], k)) for atom, found in children.items()}


def _parents_from(root: int, neighbours: list[set[int]]) -> tuple[dict[int, int], int]:
    """Return each reachable atom's parent, nearest to the root first, and how deep the tree is."""
    parents, level, depth = {root: root}, [root], -1
    while level:
        before, level, depth = level, [], depth + 1
        for atom in before:
            new = sorted(neighbours[atom] - set(parents))
            parents.update(dict.fromkeys(new, atom))
            level += new
    return parents, depth


def _neighbours(bonds: Sequence[tuple[int, int]] | np.ndarray, n_atoms: int) -> list[set[int]]:
    if n_atoms < 4:
        raise InvalidInputError(f"Internal coordinates need at least 4 atoms, and the molecule has {n_atoms}.")
    pairs = np.asarray(bonds)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidInputError(f"Bonds are pairs of atom numbers, got shape {pairs.shape} of {pairs.dtype}.")
    neighbours: list[set[int]] = [set() for _ in range(n_atoms)]
    for i, j in pairs.tolist():
        if i == j or not (0 <= i < n_atoms and 0 <= j < n_atoms):
            raise InvalidInputError(f"Bond ({i}, {j}) must join two different atoms of 0 to {n_atoms - 1}.")
        neighbours[i].add(j)
        neighbours[j].add(i)
    return neighbours


class InternalCoordinates(eqx.Module):
    """Real coordinates of a molecule's shape, relative to an example configuration.

    A vector q holds, in the row order of `zmatrix`, N - 1 bonds as `log(b / b₀)`, N - 2 angles as
    `log tan(θ/2) - log tan(θ₀/2)` and N - 3 torsions as `τ - τ₀`; the example is q = 0. The torsion of an atom that
    isn't the first on its parent is relative to that first sibling, so one torsion turns everything beyond a bond.

    Parameters
    ----------
    bonds : array_like of int, shape (n_bonds, 2)
        Pairs of bonded atoms. A ring is opened at the bonds that aren't needed to connect it.
    example : array_like, shape (N, 3)
        Positions in nm of a typical configuration; its handedness and its lengths are q = 0.

    Raises
    ------
    InvalidInputError
        Fewer than four atoms, bonds that don't connect all atoms, positions that aren't finite, or atoms of the example
        that coincide or lie on a line where an angle is needed.
    """

    zmatrix: ZMatrix = eqx.field(static=True)
    bonds: Float[Array, " n_bonds"]
    angles: Float[Array, " n_angles"]
    torsions: Float[Array, " n_torsions"]

    def __init__(self, bonds: Sequence[tuple[int, int]] | np.ndarray, example: np.ndarray):
        x = np.asarray(example, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != 3:
            raise InvalidInputError(f"An example configuration has shape (N, 3), got {x.shape}.")
        if not np.all(np.isfinite(x)):
            raise InvalidInputError(f"The example position of atom {np.argwhere(~np.isfinite(x))[0][0]} isn't finite.")
        self.zmatrix = ZMatrix.from_bonds(bonds, len(x))
        _check_example(self.zmatrix, x)
        lengths, stretched, self.torsions = _measure(self.zmatrix, jnp.asarray(x, jnp.zeros(()).dtype))
        self.bonds, self.angles = lengths, 2 * jnp.arctan(jnp.exp(stretched))

    @property
    def n_atoms(self) -> int:
        """Number of atoms, N."""
        return len(self.zmatrix.order)

    @property
    def dim(self) -> int:
        """Number of internal coordinates, 3N - 6."""
        return 3 * self.n_atoms - 6

    def split(self, q: Position) -> tuple[Array, Array, Array]:
        """Return the parts of q that belong to the N - 1 bonds, N - 2 angles and N - 3 torsions."""
        n = self.n_atoms
        return q[: n - 1], q[n - 1 : 2 * n - 3], q[2 * n - 3 :]

    def from_positions(self, x: Float[Array, "n_atoms 3"]) -> Position:
        """Return the internal coordinates of a configuration, torsions in (-π, π].

        Parameters
        ----------
        x : Array, shape (N, 3)
            Positions in nm.

        Returns
        -------
        q : Array, shape (3N - 6,)
            Infinite or NaN where bonded atoms coincide or the three atoms of an angle lie on a line.
        """
        bonds, stretched, torsions = _measure(self.zmatrix, x)
        turn = torsions - self.torsions.astype(x.dtype)
        return jnp.concatenate(
            [jnp.log(bonds / self.bonds.astype(x.dtype)), stretched - self._stretched(x.dtype), _wrap(turn)]
        )

    def to_positions(self, q: Position) -> tuple[Float[Array, "n_atoms 3"], Scalar]:
        """Return the configuration with these internal coordinates, and the log volume element.

        Parameters
        ----------
        q : Array, shape (3N - 6,)
            Any real numbers; torsions are periodic.

        Returns
        -------
        x : Array, shape (N, 3)
            Positions in nm with their centroid at zero, in a fixed orientation.
        log_jacobian : Array, shape ()
            `log(d^{3N}x / (dq · d(translation) · d(rotation)))`: all factors b² sin θ, and those of the logarithms. A
            whole turn of the molecule counts 8π² in d(rotation).
        """
        log_ratios, bends, turns = self.split(q)
        stretched = bends + self._stretched(q.dtype)
        log_bonds = log_ratios + jnp.log(self.bonds.astype(q.dtype))
        is_summed = jnp.asarray(_torsion_sums(self.zmatrix), q.dtype)
        torsions = jnp.matmul(turns + self.torsions.astype(q.dtype), is_summed, precision="highest")
        x = _place(self.zmatrix, jnp.exp(log_bonds), stretched, torsions)
        # b² · db/dq = b³ and sin θ · dθ/dq = sin² θ; the root's first neighbour has no angle.
        log_jacobian = 3 * jnp.sum(log_bonds) + 2 * jnp.sum(_log_sine(stretched))
        return (x - jnp.mean(x, axis=1, keepdims=True)).T, log_jacobian

    def _stretched(self, dtype: np.dtype) -> Array:
        return jnp.log(jnp.tan(self.angles / 2)).astype(dtype)


def winding_log_window(torsions: Float[Array, " n_torsions"], spread: float) -> Scalar:
    """Return the log of a window that makes a periodic density of torsions a proper one on the real line.

    `w(τ) = N(τ; 0, s²) / Σ_k N(τ + 2πk; 0, s²)` sums to one over the turns of τ. So a periodic density times w has the
    same normalising constant, and its samples, wrapped, are exactly those of the periodic density.

    Parameters
    ----------
    torsions : Array, shape (n_torsions,)
        In radians, any real numbers.
    spread
        Standard deviation s in radians; the cost grows as s.

    Returns
    -------
    Array, shape ()
        `Σ log w(τ)` over the torsions, smooth everywhere.

    Raises
    ------
    InvalidInputError
        The spread isn't a positive finite number.
    """
    if not (math.isfinite(spread) and spread > 0):
        raise InvalidInputError(f"The spread of a winding window must be positive and finite, got {spread!r}.")
    n_turns = math.ceil(TAIL_DEVIATIONS * spread / (2 * math.pi))
    turns = jnp.asarray(2 * math.pi * np.arange(-n_turns, n_turns + 1), torsions.dtype)
    images = _wrap(torsions)[:, None] + turns[None, :]
    log_total = jax.nn.logsumexp(-0.5 * (images / spread) ** 2, axis=1)
    return jnp.sum(-0.5 * (torsions / spread) ** 2 - log_total)


def _wrap(angle: Array) -> Array:
    """Return the same angle in (-π, π]."""
    return angle - 2 * jnp.pi * jnp.ceil((angle - jnp.pi) / (2 * jnp.pi))


def _log_sine(stretched: Array) -> Array:
    """Return `log sin θ` where `stretched = log tan(θ/2)`."""
    return math.log(2) - jnp.logaddexp(stretched, -stretched)


def _measure(zmatrix: ZMatrix, x: Array) -> tuple[Array, Array, Array]:
    """Return bond lengths, `log tan(θ/2)` of the angles, and torsions in (-π, π]."""
    columns = (zmatrix.order, zmatrix.parent, zmatrix.axis, zmatrix.third)
    atom, parent, axis, third = (x[np.array(column)].T for column in columns)
    bond = atom[:, 1:] - parent
    arm = axis - parent[:, 1:]
    cosine, sine = jnp.sum(bond[:, 1:] * arm, axis=0), _norm(_cross(bond[:, 1:], arm))
    axis_of_turn = -arm[:, 1:] / _norm(arm[:, 1:])[None, :]
    normal = _cross(axis[:, 1:] - third, axis_of_turn)  # not of unit length, as only a ratio counts below
    across = _cross(normal, axis_of_turn)
    torsion = jnp.arctan2(jnp.sum(bond[:, 2:] * normal, axis=0), jnp.sum(bond[:, 2:] * across, axis=0))
    return _norm(bond), -jnp.arcsinh(cosine / sine), torsion


def _norm(v: Array) -> Array:
    return jnp.sqrt(jnp.sum(v * v, axis=0))


def _cross(a: Array, b: Array) -> Array:
    """Return the cross products of vectors along the first axis."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _place(zmatrix: ZMatrix, bonds: Array, stretched: Array, torsions: Array) -> Array:
    """Return positions, shape (3, N), in the order of the atoms, with the root at the origin.

    `torsions` has N - 2 entries: the first is that of the third atom, which spans the plane that others refer to.
    """
    x, _, _ = _build(zmatrix, bonds, stretched, torsions)
    return x[:, np.argsort(zmatrix.order)]


@_place.defjvp
def _place_jvp(zmatrix: ZMatrix, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # A change of row k moves the branch from k on as a rigid body. Summed over rows by one matrix product, this is much
    # faster to transpose than the recursion, whose look-ups become scattered additions.
    (_, stretched, _), (d_bonds, d_stretched, d_torsions) = primals, tangents
    x, along, normal = _build(zmatrix, *primals)
    parent = zmatrix.parent_rows()
    d_angles = jnp.exp(_log_sine(stretched)) * d_stretched
    spin = along[:, parent[1:]] * d_torsions[None, :] - normal[:, 2:] * d_angles[None, :]
    spin = jnp.pad(spin, ((0, 0), (1, 0)))  # row 1 has no angle
    shift = along[:, 1:] * d_bonds[None, :] - _cross(spin, x[:, parent])
    motion = jnp.concatenate([shift, spin])
    atoms = np.argsort(zmatrix.order)
    summed = jnp.matmul(motion, jnp.asarray(_branches(zmatrix)[:, atoms], x.dtype), precision="highest")
    return x[:, atoms], summed[:3] + _cross(summed[3:], x[:, atoms])


def _build(zmatrix: ZMatrix, bonds: Array, stretched: Array, torsions: Array) -> tuple[Array, Array, Array]:
    """Return, in row order, positions and the first and third vectors of each row's frame, all of shape (3, N).

    The frame of an atom has its first vector along the bond from the atom before, and its third normal to the plane of
    the last three atoms. Composing frames needs no division, so no configuration yields NaN.
    """
    cosine, sine = -jnp.tanh(stretched), jnp.exp(_log_sine(stretched))
    turn_cos, turn_sin = jnp.cos(torsions), jnp.sin(torsions)
    frames = [jnp.asarray(ROOT_FRAMES, bonds.dtype)]
    x = [jnp.zeros((3, 2), bonds.dtype).at[0, 1].set(bonds[0])]
    parent, previous = zmatrix.parent_rows(), 0
    for start, stop in zmatrix.levels:
        before = parent[start - 1 : stop - 1] - previous
        rows = slice(start - 2, stop - 2)
        frames.append(
            _next_frames(frames[-1][:, :, before], *(a[rows][None, :] for a in (cosine, sine, turn_cos, turn_sin)))
        )
        x.append(x[-1][:, before] + bonds[None, start - 1 : stop - 1] * frames[-1][0])
        previous = start
    along, normal = (jnp.concatenate([frame[i] for frame in frames], axis=1) for i in (0, 2))
    return jnp.concatenate(x, axis=1), along, normal


def _next_frames(frames: Array, cosine: Array, sine: Array, turn_cos: Array, turn_sin: Array) -> Array:
    outwards = turn_cos * frames[1] + turn_sin * frames[2]
    return jnp.stack(
        [
            sine * outwards - cosine * frames[0],
            -cosine * outwards - sine * frames[0],
            turn_cos * frames[2] - turn_sin * frames[1],
        ]
    )


def _branches(zmatrix: ZMatrix) -> np.ndarray:
    """Return, for each row but the root's, which rows move with it; shape (N - 1, N)."""
    moves = np.eye(len(zmatrix.order))
    for row, parent in enumerate(zmatrix.parent_rows(), start=1):
        moves[:, row] += moves[:, parent]
    return moves[1:]


def _torsion_sums(zmatrix: ZMatrix) -> np.ndarray:
    """Return which torsions add up to each row's turn about its axis, shape (N - 3, N - 2)."""
    sums = np.eye(len(zmatrix.order))[3:, 2:]
    for row, first in enumerate(np.argsort(zmatrix.order)[np.array(zmatrix.third)], start=3):
        # The plane of the root's first two neighbours is fixed, so what is relative to it needs no sum.
        if not zmatrix.is_proper[row - 3] and first >= 3:
            sums[first - 3, row - 2] = 1
    return sums


def _check_example(zmatrix: ZMatrix, x: np.ndarray) -> None:
    for row, (atom, parent) in enumerate(zip(zmatrix.order[1:], zmatrix.parent, strict=True), start=1):
        bond = x[atom] - x[parent]
        if not np.linalg.norm(bond) > 0:
            raise InvalidInputError(f"Bonded atoms {parent} and {atom} of the example coincide: move them apart.")
        if row < 2:
            continue
        arm = x[zmatrix.axis[row - 2]] - x[parent]
        if not np.linalg.norm(np.cross(bond, arm)) > SMALLEST_SINE * np.linalg.norm(bond) * np.linalg.norm(arm):
            raise InvalidInputError(
                f"Atoms {atom}, {parent} and {zmatrix.axis[row - 2]} of the example lie on a line, where torsions are "
                "undefined: bend the example there; linear groups aren't supported."
            )
