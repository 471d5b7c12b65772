"""
diskcache as tilewise uses it: bytes and str only, bounded waits, no crash.

Reading a pickle is running code, so neither keys nor values are pickled, and a
pickled row that stands in a database is refused and reported.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from diskcache import Cache, Disk, Timeout
from diskcache.core import MODE_BINARY, MODE_RAW, MODE_TEXT

from tilewise.store.place import private
from tilewise.store.warn import warn_once

__all__ = ["FAULTS", "PlainDisk", "opened", "patiently"]

PATIENCE_S = 0.5
"""How long a miss waits for another process that holds the database (seconds)."""
FAULTS = (sqlite3.Error, OSError, Timeout, ValueError)
MODES = (MODE_RAW, MODE_BINARY, MODE_TEXT)

T = TypeVar("T")


class PlainDisk(Disk):  # type: ignore[misc]
    """A Disk that stores bytes and str as they are and refuses everything else."""

    def put(self, key: Any) -> tuple[Any, bool]:
        """Return a key's database form; raises ValueError when it is no str."""
        if not isinstance(key, str):
            raise ValueError(f"a key of type {type(key).__name__} is refused")
        return key, True

    def get(self, key: Any, raw: Any) -> Any:
        """Return a key from its database form; a pickled one is refused."""
        if not raw or not isinstance(key, str):
            raise ValueError("a pickled key is refused")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> Any:
        """Write a value; raises ValueError when it is neither bytes nor str."""
        if read or not isinstance(value, (bytes, str)):
            raise ValueError(f"a value of type {type(value).__name__} is refused")
        return super().store(value, read, key=key)

    def fetch(self, mode: int, filename: Any, value: Any, read: bool) -> Any:
        """Read a value; a pickled one is refused without being looked into."""
        if mode not in MODES:
            raise ValueError("a pickled value is refused")
        return super().fetch(mode, filename, value, read)


def patiently(place: Path, work: Callable[[], T]) -> T | None:
    """
    Run work in a thread and wait at most `PATIENCE_S` for it.

    diskcache's opening retries for 60 s while another process holds the write lock;
    a call does not wait for that. None and one warning when it takes longer or fails.
    """
    result: list[T] = []
    fault: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            fault.append(error)

    thread = threading.Thread(target=run, daemon=True, name="tilewise-store")
    thread.start()
    thread.join(PATIENCE_S)
    if fault:
        warn_once(place, f"the store can't be opened: {fault[0]}")
        return None
    if not result:
        warn_once(place, f"the store is locked by another process for {PATIENCE_S} s")
        return None
    return result[0]


def opened(directory: Path, **options: Any) -> Cache | None:
    """
    Open a cache for reading and writing, or return None with one warning.

    A database that is broken is kept aside and a new one is begun.
    """
    reason = private(directory)
    if reason is not None:
        warn_once(directory, reason)
        return None

    def begin() -> Cache:
        before = os.umask(0o077) if threading.active_count() < 2 else None
        try:
            return Cache(str(directory), disk=PlainDisk, timeout=PATIENCE_S, **options)
        finally:
            if before is not None:
                os.umask(before)

    def work() -> Cache:
        try:
            return begin()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            set_aside(directory, str(error))
            return begin()

    return patiently(directory, work)


def set_aside(directory: Path, reason: str) -> None:
    """Rename a broken database and say where it is kept."""
    kept = f"cache.db.broken-{int(time.time())}-{os.getpid()}"
    for suffix in ("", "-wal", "-shm"):
        path = directory / f"cache.db{suffix}"
        if path.exists():
            path.rename(directory / f"{kept}{suffix}")
    warn_once(directory, f"the database is broken ({reason}), kept as {kept}, rebuilt")
