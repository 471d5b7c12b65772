"""All kernels of the process, in the order in which they were decorated."""

from __future__ import annotations

import atexit
import os
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


def renew_locks() -> None:
    """Replace locks that another thread may have held when this child was forked."""
    global LOCK  # noqa: PLW0603 - a forked child has no other way
    LOCK = threading.Lock()
    for kernel in kernels():
        kernel._renew_locks()


def at_exit() -> None:
    """Tell the store what the kernels of this process cost and saved."""
    from tilewise.api.totals import tell

    tell(kernels())


atexit.register(at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_locks)
