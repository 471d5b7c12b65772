"""A line for who waits at a terminal: a first call builds and measures for seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["noticed"]

AFTER_S = 1.0
"""How long a first call is silent (seconds)."""


@contextmanager
def noticed(name: str) -> Iterator[None]:
    """Say on a terminal what a kernel is doing, once it has taken a second."""
    watched = sys.stderr is not None and sys.stderr.isatty()
    if not watched:
        yield
        return
    timer = threading.Timer(AFTER_S, tell, (name,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def tell(name: str) -> None:
    """Write the line."""
    print(
        f"tilewise: {name} builds and measures its variants at new sizes; "
        "later calls and processes use what is kept",
        file=sys.stderr,
    )
