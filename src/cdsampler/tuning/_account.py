from cdsampler.density import Evaluations
from cdsampler.journal import AbstractJournal, NoJournal


class Account:
    """What tuning has spent, and may still spend.

    Parameters
    ----------
    limit
        Default none.
    reserve
        Part of the limit that isn't touched until `release`.
    journal
        Where expensive calls are written down; default nowhere.
    """

    def __init__(self, limit: int | None = None, reserve: int = 0, journal: AbstractJournal | None = None):
        self.journal = NoJournal() if journal is None else journal
        self._limit = limit
        self._reserve = reserve
        self.spent = Evaluations.zero().total()

    def charge(self, evaluations: Evaluations) -> None:
        """Book evaluations that were made."""
        self.spent = (self.spent + evaluations.total()).total()

    def release(self) -> None:
        """Let the reserve be spent."""
        self._reserve = 0

    @property
    def left(self) -> float:
        """Evaluations that may be made now; infinite without a limit."""
        return float("inf") if self._limit is None else max(self._limit - self._reserve - int(self.spent.count), 0)

    @property
    def left_with_reserve(self) -> float:
        """Evaluations that may be made at all; infinite without a limit."""
        return float("inf") if self._limit is None else max(self._limit - int(self.spent.count), 0)

    def affords(self, evaluations: float) -> bool:
        """Return whether that many more are allowed."""
        return evaluations <= self.left

    def share(self, fraction: float) -> int | None:
        """Return a fraction of what is left as a hard limit for one task; None without a limit."""
        return None if self._limit is None else int(fraction * self.left)
