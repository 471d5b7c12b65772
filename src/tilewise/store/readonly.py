"""A diskcache directory that may only be read, through sqlite3 itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from tilewise.store.warn import warn_once

__all__ = ["ReadOnlyCache"]

MODES = ("mode=ro", "immutable=1")


class ReadOnlyCache:
    """Reads bytes by key; whatever fails is a miss with one warning."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get(self, key: str) -> bytes | None:
        """Return a value, or None."""
        database = self.directory / "cache.db"
        if not database.is_file():
            return None
        reason = ""
        for mode in MODES:
            try:
                return self.read(database, mode, key)
            except (sqlite3.Error, OSError) as error:
                reason = str(error)
        warn_once(self.directory, f"the read-only store can't be read: {reason}")
        return None

    def read(self, database: Path, mode: str, key: str) -> bytes | None:
        """Read one value in one of sqlite's read-only modes."""
        link = sqlite3.connect(f"file:{quote(str(database))}?{mode}", uri=True)
        try:
            row = link.execute(
                "SELECT filename, value FROM Cache WHERE key = ? AND raw = 1", (key,)
            ).fetchone()
        finally:
            link.close()
        if row is None:
            return None
        filename, value = row
        if filename is not None:
            return (self.directory / filename).read_bytes()
        return bytes(value) if isinstance(value, (bytes, memoryview)) else None
