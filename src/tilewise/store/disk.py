"""
diskcache as tilewise uses it: bytes and str only, private files, broken ones kept.

Reading a pickle is running code, so neither keys nor values are pickled, and a
pickled row that stands in a database is refused and reported. A row names the file of
its value: only names that diskcache makes are followed.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from diskcache import Cache, Disk, Timeout
from diskcache.core import MODE_BINARY, MODE_RAW, MODE_TEXT

from tilewise.store.place import private
from tilewise.store.records import Refused

__all__ = [
    "FAULTS",
    "PlainDisk",
    "inode_of",
    "is_broken",
    "is_lost",
    "open_cache",
    "set_aside",
]

FAULTS = (sqlite3.Error, OSError, Timeout)
WRITE_WAIT_S = 10.0
"""How long a write waits for other processes, in the thread and not in the caller."""
NAME = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val")
PICKLED = "a pickled value is refused, unread"
CORRUPT, NOT_A_DATABASE, OTHER_TABLES = 11, 26, 1
LOST = (8, 10, 14, 15)
"""sqlite's numbers for files that were taken away under a connection."""


class PlainDisk(Disk):  # type: ignore[misc]
    """A Disk that stores bytes and str as they are and refuses everything else."""

    def put(self, key: Any) -> tuple[str, bool]:
        """Return a key's database form; raises TypeError when it is no str."""
        if not isinstance(key, str):
            raise TypeError(f"a key of type {type(key).__name__} is refused")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """Return a key from its database form; "" for one that is pickled."""
        return key if raw and isinstance(key, str) else ""

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[Any, ...]:
        """Write a value; raises TypeError when it is neither bytes nor str."""
        if read or not isinstance(value, (bytes, str)):
            raise TypeError(f"a value of type {type(value).__name__} is refused")
        if len(value) < self.min_file_size:
            return 0, MODE_RAW, None, value
        data = value.encode() if isinstance(value, str) else value
        name, path = self.filename(key, value)
        write_private(Path(path), data)
        mode = MODE_TEXT if isinstance(value, str) else MODE_BINARY
        return len(data), mode, name, None

    def fetch(self, mode: int, filename: Any, value: Any, read: bool) -> Any:
        """Read a value; a pickled one is refused without being looked into."""
        if mode not in (MODE_RAW, MODE_BINARY, MODE_TEXT):
            return Refused(PICKLED)
        if filename is not None and not NAME.fullmatch(str(filename)):
            return Refused(f"its value lies in {str(filename)!r}, which is refused")
        return super().fetch(mode, filename, value, read)

    def remove(self, file_path: Any) -> None:
        """Remove the file of a value; other files are left alone."""
        if file_path is not None and NAME.fullmatch(str(file_path)):
            super().remove(file_path)


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that only this user reads; nothing is left when that fails."""
    for tries in range(10):
        try:
            path.parent.parent.mkdir(mode=0o700, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
            break
        except FileNotFoundError:  # Another process removed the empty directory.
            if tries == 9:
                raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


BINARY = getattr(os, "O_BINARY", 0)


def open_cache(directory: Path, options: dict[str, Any]) -> Cache:
    """
    Open a cache for reading and writing, its files readable for this user alone.

    sqlite gives its other files the mode of the first. Raises one of `FAULTS`.
    """
    reason = private(directory)
    if reason is not None:
        raise OSError(reason)
    with suppress(FileExistsError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        os.close(os.open(directory / "cache.db", flags, 0o600))
    cache = Cache.__new__(Cache)
    try:
        cache.__init__(str(directory), WRITE_WAIT_S, PlainDisk, **options)
    except BaseException:
        with suppress(AttributeError):
            cache.close()  # Or its connection would be left to the collector.
        raise
    return cache


def is_lost(error: BaseException) -> bool:
    """Say whether a connection is of no use any more."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in LOST


def is_broken(error: BaseException, opening: bool = False) -> bool:
    """Say whether an error means that the database itself is damaged or foreign."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (CORRUPT, NOT_A_DATABASE) or (opening and code == OTHER_TABLES)


def set_aside(directory: Path, inode: int) -> str | None:
    """
    Rename a broken database, known by its inode, and return the new name.

    Many processes may find it broken at once: only the one that makes the second
    name goes on, so that none takes away what another has begun anew. The others get
    None, after a while in which the first should have done it.
    """
    database = directory / "cache.db"
    kept = directory / f"cache.db.broken-{inode}"
    if inode_of(database) != inode:
        return None
    try:
        os.link(database, kept)
    except FileExistsError:
        for _ in range(20):
            if inode_of(database) != inode:
                return None
            time.sleep(0.02)
    except OSError:  # A file system without links.
        database.replace(kept)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{database}{suffix}").replace(f"{kept}{suffix}")
    if inode_of(database) == inode:
        database.unlink()
    return kept.name


def inode_of(path: Path) -> int:
    """Return the number that tells a file from its successors; 0 for none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0
