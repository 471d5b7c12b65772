"""A diskcache directory that is only read, through sqlite3 itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tilewise.store.disk import PlainDisk
from tilewise.store.records import Refused

__all__ = ["Reader"]

MODES = ("mode=ro", "immutable=1")
"""A directory that can't be written has no place for a log: immutable reads it, but
does not see what an open writer has not yet moved from its log."""


class Reader:
    """
    Reads values by key and lists keys; it neither writes nor waits.

    Raises sqlite3.Error or OSError where the database can't be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get(self, key: str) -> bytes | str | Refused | None:
        """Return a value, or None."""
        select = "SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1"
        rows = self.select(select, (key,))
        if not rows:
            return None
        ((mode, name, value),) = rows
        found: bytes | str | Refused | None = None
        with suppress(FileNotFoundError):  # It was removed since.
            found = PlainDisk(str(self.directory)).fetch(mode, name, value, False)
        return found

    def keys(self) -> list[str]:
        """Return all keys; "" stands for one that is pickled."""
        rows = self.select("SELECT key, raw FROM Cache ORDER BY rowid", ())
        return [key if raw and isinstance(key, str) else "" for key, raw in rows]

    def times(self) -> dict[str, tuple[float, float]]:
        """Return when each value was stored and last used (Unix seconds)."""
        select = "SELECT key, store_time, access_time FROM Cache"
        return {str(k): (stored, used) for k, stored, used in self.select(select, ())}

    def files(self) -> set[str]:
        """Return the names of the files that values lie in."""
        select = "SELECT filename FROM Cache WHERE filename IS NOT NULL"
        return {str(name) for (name,) in self.select(select, ())}

    def select(self, statement: str, values: tuple[object, ...]) -> list[tuple]:  # type: ignore[type-arg]
        """Run one statement in the first read-only mode that works."""
        database = self.directory / "cache.db"
        if not database.is_file():
            return []
        fault: sqlite3.Error | None = None
        for mode in MODES:
            try:
                with connected(database, mode) as link:
                    if unfinished(link):
                        return []
                    return link.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                fault = fault or error
        raise fault or sqlite3.OperationalError("no mode works")


def unfinished(link: sqlite3.Connection) -> bool:
    """Say whether another process is just making the tables."""
    select = "SELECT name FROM sqlite_master WHERE type = 'table'"
    return {name for (name,) in link.execute(select)} <= {"Settings"}


@contextmanager
def connected(database: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Connect to a database in one of sqlite's read-only modes."""
    name = f"file:{quote(str(database))}?{mode}"
    link = sqlite3.connect(name, uri=True, timeout=0)
    try:
        yield link
    finally:
        link.close()
