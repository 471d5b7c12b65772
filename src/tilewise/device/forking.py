"""
A fork while other threads work: the child finds every lock free.

A child forked while another thread has a lock would wait for a thread that it does not
have. Where what the lock guards must be whole in the child (the compilers', a device's
memory) the fork waits for it: one compilation or launch, at most. Where it may be begun
anew the owner replaces its locks in the child.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import ExitStack
from functools import cache
from typing import Any, Protocol, TypeVar

__all__ = ["compiler_locks", "held_over_forks", "renewed_in_children", "watch_forks"]

T = TypeVar("T")


class Owner(Protocol):
    """What has locks of its own."""

    def renew_locks(self) -> None:
        """Replace locks that another thread may have held when a child was forked."""


PLACES = (
    ("numba.core.compiler_lock", "global_compiler_lock"),
    ("numba.cuda.core.compiler_lock", "global_compiler_lock"),
    ("llvmlite.binding.ffi", "lib._lock"),
)
"""Where the compilers' are, in the order in which a compilation takes them."""

OWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
OWNERS: weakref.WeakValueDictionary[int, Owner] = weakref.WeakValueDictionary()
HELD: list[ExitStack] = []


def held_over_forks() -> threading.RLock:
    """Return a lock that forks wait for; no two of them are taken by one thread."""
    watch_forks()
    lock = threading.RLock()
    OWN[id(lock)] = lock
    return lock


def renewed_in_children(owner: Owner) -> None:
    """Let a forked child replace an owner's locks."""
    watch_forks()
    OWNERS[id(owner)] = owner


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


def alive(known: weakref.WeakValueDictionary[int, T]) -> list[T]:
    """Return what is still there; another thread may add meanwhile."""
    return [one for ref in known.valuerefs() if (one := ref()) is not None]


def take() -> None:
    """Take the locks before a fork."""
    held = ExitStack()
    for lock in [*alive(OWN), *compiler_locks()]:
        held.enter_context(lock)
    HELD.append(held)


def give() -> None:
    """Give them back after it, in parent and child."""
    HELD.pop().close()


def begin() -> None:
    """Give the locks back in a child, and replace the others."""
    give()
    for owner in alive(OWNERS):
        owner.renew_locks()


@cache
def watch_forks() -> None:
    """Let every fork of this process heed the locks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=take, after_in_parent=give, after_in_child=begin)
