"""
Fork while another thread compiles: the child gets compilers that nobody holds.

llvmlite and numba serialise their work by locks of their own. A child forked while
another thread has one would wait for a thread that it does not have, so a fork waits
until both are free (one compilation, at most).
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import Any

__all__ = ["compiler_locks", "watch_forks"]

PLACES = (
    ("numba.core.compiler_lock", "global_compiler_lock"),
    ("llvmlite.binding.ffi", "lib._lock"),
)
"""Where the locks are, in the order in which a compilation takes them."""

HELD: list[ExitStack] = []


def compiler_locks() -> list[Any]:
    """Return the locks of the compilers that this process has loaded."""
    found = []
    for module, path in PLACES:
        lock = sys.modules.get(module)
        for name in path.split("."):
            lock = getattr(lock, name, None)
        if lock is not None:
            found.append(lock)
    return found


def take() -> None:
    """Take the locks before a fork."""
    held = ExitStack()
    for lock in compiler_locks():
        held.enter_context(lock)
    HELD.append(held)


def give() -> None:
    """Give them back after it, in parent and child."""
    HELD.pop().close()


def watch_forks() -> None:
    """Let every fork of this process take the locks meanwhile."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=take, after_in_parent=give, after_in_child=give)
