"""What is left behind: files of killed writers, and broken databases kept aside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tilewise.store.database import Database

__all__ = ["Pruned", "sweep"]

YOUNG_S = 3600.0
"""A file without a record may belong to a writer that is not done (seconds)."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much was removed: records, files without a record, and bytes of those."""

    records: int = 0
    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        """Add two counts."""
        return Pruned(
            self.records + other.records,
            self.files + other.files,
            self.size_bytes + other.size_bytes,
        )


def sweep(database: Database) -> Pruned:
    """Remove old files that no record names, and broken databases kept aside."""
    named = database.look(lambda reader: reader.files())
    if named is None:
        return Pruned()
    count = total = 0
    for name, size, changed_s in database.files():
        if is_left_over(Path(name), name in named, time.time() - changed_s):
            (database.directory / name).unlink(missing_ok=True)
            count, total = count + 1, total + size
    return Pruned(0, count, total)


def is_left_over(name: Path, is_named: bool, age_s: float) -> bool:
    """Say whether a file serves nothing any more."""
    if name.name.startswith("cache.db"):
        return ".broken-" in name.name
    return name.suffix == ".val" and not is_named and age_s > YOUNG_S
