"""Decision tables, merged in one transaction, and rows of immutable measurements."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from tilewise.model.decision import DecisionTable, MeasurementRow, TableKey
from tilewise.store.database import Database
from tilewise.store.merge import merge_tables
from tilewise.store.records import Fault
from tilewise.store.shelf import Shelf

__all__ = ["DecisionRecords", "Join", "digest", "order", "table_name"]

Join = Callable[[DecisionTable | None, DecisionTable], DecisionTable]
"""How a new table goes into the stored one."""

UNBOUNDED = 1 << 60
IN_THE_DATABASE = 1 << 24
"""Values up to this size (bytes) lie in the database itself, not in files."""


class DecisionRecords:
    """Tables and rows in one directory; nothing is ever evicted."""

    def __init__(self, directory: Path, readonly: bool) -> None:
        self.database = Database(
            directory,
            readonly,
            size_limit=UNBOUNDED,
            eviction_policy="none",
            disk_min_file_size=IN_THE_DATABASE,
        )
        self.shelf = Shelf(self.database, "table", DecisionTable)
        self.measured = Shelf(self.database, "row", MeasurementRow)

    def table(self, key: TableKey) -> DecisionTable | None:
        """Return the table of a key, or None."""
        return self.shelf.get(table_name(key))

    def merge(
        self, table: DecisionTable, join: Join = merge_tables
    ) -> DecisionTable | None:
        """
        Join a table to the stored one, which is read again in the transaction.

        Returns the joined table, or None where it is not known to be kept.
        """
        return self.shelf.change(table_name(table.key), lambda old: join(old, table))

    def tables(self) -> list[DecisionTable]:
        """Return all tables, by kernel and key."""
        return sorted((t for _, t in self.shelf.items()), key=order)

    def add_rows(self, rows: Iterable[MeasurementRow]) -> int:
        """Add measurements; one that is there stays as it is. Returns how many came."""
        return self.measured.add({row_name(row): row for row in rows})

    def rows(self, key: TableKey) -> list[MeasurementRow]:
        """Return the measurements of a table, in the order of time."""
        found = [row for _, row in self.measured.items(f"{table_name(key)}/")]
        return sorted(found, key=lambda row: (row.made_utc, row_name(row)))

    def verify(self) -> list[tuple[str, Fault]]:
        """Remove the bad records and return them with what is wrong."""
        return [*self.shelf.faults(), *self.measured.faults()]

    def stamp(self) -> tuple[int, ...]:
        """Return numbers that change when any process writes a decision."""
        return self.database.stamp()


def order(table: DecisionTable) -> tuple[str, ...]:
    """Sort tables by kernel, then by key."""
    key = table.key
    return (table.kernel_name, key.fingerprint, key.kernel, key.table)


def digest(*parts: str) -> str:
    """Return the SHA-256 of texts, each behind its length."""
    hashed = hashlib.sha256(usedforsecurity=False)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(data) + data)
    return hashed.hexdigest()


def table_name(key: TableKey) -> str:
    """Return the text under which a table is kept; the label takes no part."""
    return digest(key.fingerprint, key.kernel, key.table)


def row_name(row: MeasurementRow) -> str:
    """Return the text under which a measurement is kept."""
    point, provenance = repr(row.point), repr(row.provenance)
    parts = (point, str(row.candidate.variant), provenance, row.writer)
    return f"{table_name(row.key)}/{digest(*parts)}"
