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
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["claim"]

held: set[str] = set()
guard = threading.Lock()


@contextmanager
def claim(folder: Path, name: str) -> Iterator[bool]:
    """
    Claim a name while a `with` block runs; yields False when somebody else has it.

    Never waits. Where the folder can't be written or has no locks, the claim holds
    among the threads of this process. Lock files stay: removing one would let two
    hold the same name.
    """
    digest = hashlib.sha256(name.encode(), usedforsecurity=False).hexdigest()[:32]
    path = folder / f"{digest}.lock"
    key = str(path)
    with guard:
        mine = key not in held
        if mine:
            held.add(key)
    if not mine:
        yield False
        return
    try:
        with locked(path) as got:
            yield got
    finally:
        with guard:
            held.discard(key)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold an exclusive lock on a file; yields False when another process does."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(
            path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600
        )
    except OSError:
        yield True
        return
    try:
        got = lock(file)
        if got:
            with suppress(OSError):  # who it is, for people
                os.truncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
        yield got
    finally:
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
    """Take the lock on Windows, on the byte after the process id."""
    import msvcrt

    os.lseek(file, 64, os.SEEK_SET)
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    finally:
        os.lseek(file, 0, os.SEEK_SET)
    return True
