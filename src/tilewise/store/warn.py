"""One warning per place and reason, however often a fault is met."""

from __future__ import annotations

import warnings

from tilewise.errors import StoreWarning

__all__ = ["forget_warnings", "warn_once"]

TOLD: set[tuple[str, str]] = set()
"""What was told. Two threads at once may both tell; no lock that a fork could copy."""


def warn_once(place: object, reason: str) -> None:
    """Warn that a place of the store can't serve, once per (place, reason)."""
    key = (str(place), reason)
    if key not in TOLD:
        TOLD.add(key)
        warnings.warn(f"{place}: {reason}", StoreWarning, stacklevel=2)


def forget_warnings() -> None:
    """Warn again about what was told; for tests and long sessions."""
    TOLD.clear()
