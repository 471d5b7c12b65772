"""The tables that callers state themselves, one for each name and code version."""

from __future__ import annotations

from tilewise.model.box import BoxTable
from tilewise.store.database import Database
from tilewise.store.decisions import digest
from tilewise.store.shelf import Shelf

__all__ = ["BoxRecords", "box_name", "latest_first"]


class BoxRecords:
    """Tables of caller's regions in the database of the decisions."""

    def __init__(self, database: Database) -> None:
        self.shelf = Shelf(database, "boxes", BoxTable)

    def tables(self, fingerprint: str, name: str) -> list[BoxTable]:
        """Return the tables of a name on a hardware, the latest first."""
        found = self.shelf.items(f"{digest(fingerprint, name)}/")
        return latest_first([table for _, table in found])

    def every(self) -> list[BoxTable]:
        """Return all tables, by their keys."""
        return [table for _, table in self.shelf.items()]

    def keep(self, table: BoxTable) -> bool:
        """
        Put a table in the place of an earlier one; returns whether it is kept.

        One that was made before the stored one changes nothing, so that a slow
        writer does not revert a later one.
        """

        def later(old: BoxTable | None) -> BoxTable:
            is_late = old is not None and old.made_utc > table.made_utc
            return old if old is not None and is_late else table

        return self.shelf.change(box_name(table), later) is not None

    def remove(self, fingerprint: str, name: str) -> int:
        """Remove all tables of a name on a hardware; returns how many."""
        keys = self.shelf.keys(f"{digest(fingerprint, name)}/")
        return sum(self.shelf.delete(key) for key in keys)


def box_name(table: BoxTable) -> str:
    """Return the text under which a table is kept."""
    return f"{digest(table.fingerprint, table.name)}/{digest(table.code_version)}"


def latest_first(tables: list[BoxTable]) -> list[BoxTable]:
    """Sort tables by the time at which they were made."""
    return sorted(tables, key=lambda table: table.made_utc, reverse=True)
