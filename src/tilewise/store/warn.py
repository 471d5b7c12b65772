"""One warning per place and reason, however often a fault is met."""

from __future__ import annotations

import threading
import warnings

from tilewise.errors import StoreWarning

__all__ = ["forget_warnings", "warn_once"]

TOLD: set[tuple[str, str]] = set()
LOCK = threading.Lock()


def warn_once(place: object, reason: str) -> None:
    """Warn that a place of the store can't serve, once per (place, reason)."""
    key = (str(place), reason)
    with LOCK:
        if key in TOLD:
            return
        TOLD.add(key)
    warnings.warn(f"{place}: {reason}; going on without it", StoreWarning, stacklevel=2)


def forget_warnings() -> None:
    """Warn again about what was told; for tests and long sessions."""
    with LOCK:
        TOLD.clear()
