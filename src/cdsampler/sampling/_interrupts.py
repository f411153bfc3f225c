"""Ctrl-C and SIGTERM: the first ends a run in good order, the second at once."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """Whether one has come."""

    def __init__(self) -> None:
        self.has_come = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise `KeyboardInterrupt`; from now on, a signal ends the process."""
        self.has_come = True
        for one in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(one) is self:
                # A session with a prompt isn't ended; there the second only ends the waiting for blocks under way.
                gentle = one == signal.SIGINT and _has_a_prompt()
                signal.signal(one, signal.default_int_handler if gentle else signal.SIG_DFL)
        raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Make SIGTERM act like Ctrl-C, and a second of either end at once; handlers of the caller's own are left alone.

    Does nothing outside the main thread, where no handler can be set, and within itself.
    """
    interrupts = Interrupts()
    before = {}
    if threading.current_thread() is threading.main_thread():
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        before = {one: handler for one, handler in usual.items() if signal.getsignal(one) == handler}
    try:
        for one in before:
            signal.signal(one, interrupts)
        yield interrupts
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _has_a_prompt() -> bool:
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules
