import dataclasses
from collections.abc import Sequence

import numpy as np

from cdsampler.errors import InvalidInputError


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

    def branches(self) -> np.ndarray:
        """Return, for each row but the root's, which rows move with it; shape (N - 1, N)."""
        moves = np.eye(len(self.order))
        for row, parent in enumerate(self.parent_rows(), start=1):
            moves[:, row] += moves[:, parent]
        return moves[1:]

    def torsion_sums(self) -> np.ndarray:
        """Return which torsions add up to each row's turn about its axis, shape (N - 3, N - 2)."""
        sums = np.eye(len(self.order))[3:, 2:]
        for row, first in enumerate(np.argsort(self.order)[np.array(self.third)], start=3):
            # The plane of the root's first two neighbours is fixed, so what is relative to it needs no sum.
            if not self.is_proper[row - 3] and first >= 3:
                sums[first - 3, row - 2] = 1
        return sums


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
