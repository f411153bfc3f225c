from typing import NamedTuple

import numpy as np


class Draws(NamedTuple):
    """A pilot's draws, in chart coordinates.

    Attributes
    ----------
    positions : ndarray, shape (n_draws, dim)
    log_density : ndarray, shape (n_draws,)
    chains : ndarray of int, shape (n_draws,)
        Which chain each came from.
    groups : ndarray of int, shape (n_draws,)
        Equal numbers mark draws known to come from one mode; -1 is not known.
    roughness : ndarray, shape (n_draws,)
        See `Annealed`; zero where it wasn't looked at.
    """

    positions: np.ndarray
    log_density: np.ndarray
    chains: np.ndarray
    groups: np.ndarray
    roughness: np.ndarray

    def joined(
        self,
        positions: np.ndarray,
        log_density: np.ndarray,
        chains: np.ndarray,
        group: int = -1,
        roughness: np.ndarray | None = None,
    ) -> "Draws":
        """Return these and further draws, whose chains are numbered on from these."""
        first = int(self.chains.max()) + 1 if len(self.chains) else 0
        return Draws(
            np.concatenate([self.positions, positions]),
            np.concatenate([self.log_density, log_density]),
            np.concatenate([self.chains, first + chains]),
            np.concatenate([self.groups, np.full(len(positions), group)]),
            np.concatenate([self.roughness, np.zeros(len(positions)) if roughness is None else roughness]),
        )

    @classmethod
    def none(cls, dim: int) -> "Draws":
        """Return no draws."""
        return cls(np.zeros((0, dim)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
