"""All kernels of the process, in the order in which they were decorated."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewise.api.kernel import TunedKernel

__all__ = ["kernels", "register"]

KNOWN: list[weakref.ref[Any]] = []
LOCK = threading.Lock()


def register(kernel: TunedKernel[Any, Any]) -> None:
    """Remember a kernel for as long as the program does."""
    with LOCK:
        KNOWN[:] = [ref for ref in KNOWN if ref() is not None]
        KNOWN.append(weakref.ref(kernel))


def kernels() -> list[TunedKernel[Any, Any]]:
    """Return the kernels that are alive."""
    return [kernel for ref in list(KNOWN) if (kernel := ref()) is not None]
