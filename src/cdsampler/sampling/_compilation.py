"""Seconds that JAX has spent compiling in this process, so that timings can name them apart."""

from typing import Any

import jax

_seconds = 0.0


def _listen(event: str, duration_secs: float, **kwargs: Any) -> None:
    global _seconds
    if event.startswith("/jax/core/compile/"):
        _seconds += duration_secs


jax.monitoring.register_event_duration_secs_listener(_listen)


def compilation_seconds() -> float:
    """Return the seconds spent on tracing, lowering and compiling since import."""
    return _seconds
