"""
One sweep at a time for each name, across threads and processes.

A claim is an advisory lock on a file, which the system releases when its holder ends,
however it ends: nothing has to be judged dead, and no two can take over.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewise.store.place import private

__all__ = ["claim"]

held: dict[str, int] = {}
"""The claims of this process, by path, with the open file or -1."""
guard = threading.Lock()


def let_go() -> None:
    """Give up what a forked child has of its parent's claims."""
    global guard  # noqa: PLW0603 - another thread may have held it in the parent
    guard = threading.Lock()
    for file in held.values():
        if file >= 0:
            os.close(file)
    held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=let_go)


@contextmanager
def claim(folder: Path, name: str) -> Iterator[bool]:
    """
    Claim a name while a `with` block runs; yields False when somebody else has it.

    Never waits. Where the folder can't be written or has no locks, the claim holds
    among the threads of this process. Lock files stay: removing one would let two
    hold the same name. A fork does not hold its parent's claims.
    """
    digest = hashlib.sha256(name.encode(), usedforsecurity=False).hexdigest()[:32]
    path = folder / f"{digest}.lock"
    key = str(path)
    with guard:
        mine = key not in held
        if mine:
            held[key] = -1
    if not mine:
        yield False
        return
    try:
        with locked(path) as got:
            yield got
    finally:
        with guard:
            held.pop(key, None)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold an exclusive lock on a file; yields False when another process does."""
    try:
        if private(path.parent) is not None:
            raise OSError
        file = os.open(
            path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600
        )
    except OSError:
        yield True
        return
    held[str(path)], owner = file, os.getpid()
    try:
        yield lock(file)
    finally:
        if owner == os.getpid():  # a fork has closed its own in `let_go`
            held[str(path)] = -1
            os.close(file)


def lock(file: int) -> bool:
    """Take the lock without waiting; a file system without locks gives it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return lock_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def lock_windows(file: int) -> bool:
    """Take the lock on Windows, on the first byte."""
    import msvcrt

    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
