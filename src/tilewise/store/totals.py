"""
What processes tell at their end: a small file each, written once and never changed.

A file beside the databases needs no lock, and no thread, which an interpreter that ends
no longer starts: 2 ms at the end of a process, imports included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tilewise.model.totals import Totals, summed
from tilewise.store.place import private
from tilewise.store.records import Fault, decode, encode

__all__ = ["TotalRecords"]

KIND = "totals"
SUFFIX = ".totals"


class TotalRecords:
    """Files of totals in one directory; a bad one counts as none and is removed."""

    def __init__(self, directory: Path, readonly: bool) -> None:
        self.directory, self.readonly = directory, readonly

    def add(self, rows: Iterable[Totals]) -> bool:
        """Write rows to a new file, whole or not at all; returns whether it is kept."""
        if self.readonly or private(self.directory) is not None:
            return False
        name = f"{time.time_ns()}-{os.getpid()}{SUFFIX}"
        beside = self.directory / f".{name}"
        try:
            with os.fdopen(os.open(beside, FRESH, 0o600), "wb") as file:
                file.write(encode(KIND, tuple(rows), name))
            beside.rename(self.directory / name)
        except OSError:
            return False
        return True

    def every(self) -> list[Totals]:
        """Return the sums per kernel and hardware."""
        return summed(row for _, rows in self.files() for row in rows)

    def fold(self) -> int:
        """Put all files into one; returns by how many there are fewer."""
        found = list(self.files())
        if len(found) < 2 or not self.add(summed(r for _, rows in found for r in rows)):
            return 0
        for path, _ in found:
            path.unlink(missing_ok=True)
        return len(found) - 1

    def clear(self) -> int:
        """Remove all files; returns how many."""
        found = [] if self.readonly else list(self.files())
        for path, _ in found:
            path.unlink(missing_ok=True)
        return len(found)

    def files(self) -> Iterator[tuple[Path, tuple[Totals, ...]]]:
        """Yield the sound files, in the order of time, with their rows."""
        for path in sorted(self.directory.glob(f"*{SUFFIX}")):
            try:
                data = path.read_bytes()
            except OSError:  # Another process folds them.
                continue
            rows = decode(KIND, data, tuple[Totals, ...], path.name)
            if isinstance(rows, Fault):
                if not rows.newer and not self.readonly:
                    path.unlink(missing_ok=True)
                continue
            yield path, rows


FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL
