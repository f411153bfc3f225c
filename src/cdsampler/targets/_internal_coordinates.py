"""Internal coordinates of a molecule (bond lengths, angles, torsions), each mapped to the whole real line.

A log density that rigid motions leave alone is improper in Cartesian coordinates. In these 3N - 6 coordinates, with
their Jacobian, it is proper up to the periodicity of torsions, which `winding_log_window` takes care of.
"""

import functools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import Array, Float, Position, Scalar
from cdsampler.errors import InvalidInputError
from cdsampler.targets._z_matrix import ZMatrix

TAIL_DEVIATIONS = 9.0  # a Gaussian is below 1e-17 of its peak beyond
SMALLEST_SINE = 1e-4  # of an example's angle: closer to a line, torsions mean nothing
ROOT_FRAMES = np.array([[[-1, 1], [0, 0], [0, 0]], [[0, 0], [1, 1], [0, 0]], [[0, 0], [0, 0], [-1, 1]]])


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
        is_summed = jnp.asarray(self.zmatrix.torsion_sums(), q.dtype)
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
    summed = jnp.matmul(motion, jnp.asarray(zmatrix.branches()[:, atoms], x.dtype), precision="highest")
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
