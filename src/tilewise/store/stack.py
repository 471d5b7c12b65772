"""
The store as the rest sees it: one writable layer above read-only ones.

Artifacts and decisions lie in two directories: the first is capped, the second never
evicts, so that small records do not vanish because big ones churn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tilewise.model.box import BoxTable
from tilewise.model.decision import DecisionTable, MeasurementRow, TableKey
from tilewise.model.variant import Artifact
from tilewise.settings import Settings, current
from tilewise.store.artifacts import ArtifactStore, Entry
from tilewise.store.boxes import BoxRecords, box_name
from tilewise.store.bundle import Bundle, BundleLayer, read_bundle, write_bundle
from tilewise.store.database import Database
from tilewise.store.decisions import DecisionRecords, Join
from tilewise.store.merge import by_age, merge_tables
from tilewise.store.place import default_directory
from tilewise.store.records import Fault
from tilewise.store.sweep import Pruned, sweep
from tilewise.store.totals import TotalRecords
from tilewise.store.warn import warn_once

__all__ = ["Absorbed", "Store", "open_store", "ship_defaults"]


@dataclass(frozen=True, slots=True)
class Absorbed:
    """How much of a bundle came into the store."""

    artifacts: int
    tables: int


class Store:
    """
    Artifacts by key and decision tables by (fingerprint, kernel, table).

    Nothing here raises for the state of a disk: every fault is a miss with one
    warning. `directory` is None where there is no place to write.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        place = default_directory(settings)
        if isinstance(place, str):
            warn_once("the store", place)
        self.directory = None if isinstance(place, str) else place
        self.readonly = settings.readonly or self.directory is None
        root = self.directory or Path(NOWHERE)
        size = settings.cache_max_bytes
        self.own = ArtifactStore(root / "artifacts", self.readonly, size)
        self.records = DecisionRecords(root / "decisions", self.readonly)
        self.boxes = BoxRecords(self.records.database)
        self.totals = TotalRecords(root / "totals", self.readonly)
        named = [BundleLayer(settings.bundle)] if settings.bundle else []
        self.layers = (*named, *(BundleLayer(path, shipped=True) for path in SHIPPED))

    @property
    def databases(self) -> tuple[Database, Database]:
        """The two databases of the writable layer."""
        return self.own.database, self.records.database

    # Artifacts.

    def artifact(self, key: str) -> Artifact | None:
        """Return compiled code, from the first layer that has it."""
        found = self.own.get(key)
        for layer in self.layers:
            found = found or layer.artifact(key)
        return found

    def keep_artifact(self, key: str, artifact: Artifact) -> bool:
        """Keep compiled code; returns whether it is known to be kept."""
        return self.own.put(key, artifact)

    def evict_artifact(self, key: str, reason: str) -> None:
        """Remove compiled code that could not be used, and say why."""
        self.own.evict(key, reason)

    def entries(self) -> list[Entry]:
        """Return what compiled code is kept, the most recently used first."""
        return self.own.entries()

    # Decisions.

    def decisions(self, key: TableKey) -> DecisionTable | None:
        """Return a decision table: own decisions first, then those of each layer."""
        found = self.records.table(key)
        for layer in self.layers:
            shipped = layer.table(key)
            if shipped is not None:
                found = merge_tables(shipped, found) if found else shipped
        return found

    def keep_decisions(
        self, table: DecisionTable, join: Join = merge_tables
    ) -> DecisionTable | None:
        """
        Join a table to the stored one, in one transaction.

        Returns the joined table, or None where it is not known to be kept.
        """
        return self.records.merge(table, join)

    def tables(self) -> list[DecisionTable]:
        """Return the tables of all layers, each as `decisions` gives it."""
        shipped = [table for layer in self.layers for table in layer.tables.values()]
        keys = {table.key: table for table in [*shipped, *self.records.tables()]}
        return [table for key in keys if (table := self.decisions(key)) is not None]

    def elsewhere(self, key: TableKey) -> tuple[str, ...]:
        """Return the other hardware for which a kernel's table is decided."""
        tables = [t for layer in self.layers for t in layer.tables.values()]
        keys = [table.key for table in [*tables, *self.records.tables()]]
        return tuple(sorted({k.fingerprint for k in keys if is_sibling(k, key)}))

    def stamp(self) -> tuple[int, ...]:
        """Return numbers that change when any process writes a decision."""
        return self.records.stamp()

    def add_rows(self, rows: Iterable[MeasurementRow]) -> int:
        """Add measurements; one that is there stays as it is. Returns how many came."""
        return 0 if self.readonly else self.records.add_rows(rows)

    def rows(self, key: TableKey) -> list[MeasurementRow]:
        """Return the measurements of a table, in the order of time."""
        return self.records.rows(key)

    def caller_tables(self, fingerprint: str, name: str) -> list[BoxTable]:
        """Return a caller's tables: own ones, the latest first, then each layer's."""
        shipped = [t for layer in self.layers for t in layer.boxes(fingerprint, name)]
        return [*self.boxes.tables(fingerprint, name), *shipped]

    # The whole.

    def size_bytes(self) -> int:
        """Return what the writable layer holds on disk (bytes)."""
        return sum(database.volume() for database in self.databases)

    def verify(self) -> list[tuple[str, Fault]]:
        """Remove the bad records and return them with what is wrong."""
        return [*self.own.verify(), *self.records.verify(), *self.boxes.shelf.faults()]

    def prune(self) -> Pruned:
        """Hold the cap, and remove what killed writers and broken databases left."""
        if self.readonly:
            return Pruned()
        swept = [sweep(database) for database in self.databases]
        culled = Pruned(records=self.own.cull(), files=self.totals.fold())
        return sum(swept, culled)

    def clear(self) -> int:
        """Remove everything from the writable layer; returns the number of records."""
        cleared = sum(database.clear() for database in self.databases)
        return cleared + self.totals.clear()

    def export(self, path: Path) -> Bundle:
        """Write all layers to one file; raises OSError where that does not go."""
        shipped = [item for layer in self.layers for item in layer.bundle.artifacts]
        artifacts = dict([*shipped, *self.own.items()])
        kept = [layer.bundle.boxes for layer in self.layers]
        boxes = {box_name(t): t for t in [*chain(*kept), *self.boxes.every()]}
        return write_bundle(path, artifacts.items(), self.tables(), boxes.values())

    def absorb(self, path: Path) -> Absorbed | Fault:
        """
        Merge a bundle file into the writable layer, or say why it can't be read.

        Of two decisions for one region the later stays.
        """
        bundle = read_bundle(path)
        if isinstance(bundle, Fault):
            return bundle
        kept = [self.keep_artifact(key, one) for key, one in bundle.artifacts]
        merged = [self.records.merge(table, by_age) for table in bundle.tables]
        stated = [self.boxes.keep(table) for table in bundle.boxes]
        count = sum(table is not None for table in merged) + sum(stated)
        return Absorbed(sum(kept), count)

    def close(self) -> None:
        """Close both databases; the next use opens them again."""
        for database in self.databases:
            database.close()


NOWHERE = "/nonexistent/tilewise"


def is_sibling(one: TableKey, other: TableKey) -> bool:
    """Say whether two keys differ in the hardware alone."""
    same = (one.kernel, one.table) == (other.kernel, other.table)
    return same and one.fingerprint != other.fingerprint


SHIPPED: list[Path] = []
"""The bundles that packages brought, in the order in which they were named."""


def ship_defaults(path: str | Path) -> None:
    """
    Let a bundle serve where this host has decided nothing itself.

    A package calls it with a file that `tilewise cache export` wrote, as in
    `ship_defaults(Path(__file__).with_name("defaults.tilewise"))`. Decisions hold for
    the class of hardware that they were measured on: arrays of a device for its GPU,
    those of the host for its CPU and threads. `explain` names the file. What is stale
    or not there is measured as ever; a file that can't be read is one warning.
    """
    place = Path(path).resolve()
    if place not in SHIPPED:
        SHIPPED.append(place)


STORES: dict[tuple[object, ...], Store] = {}
OPEN = 4
"""How many stores a process keeps open; one that is used again opens again."""


def open_store() -> Store:
    """
    Return the process's store for the settings as they are now.

    Threads that come at once may get different objects for one place; that is as
    safe as several processes are.
    """
    settings = current()
    place = default_directory(settings)
    key = (
        place, settings.cache_max_bytes, settings.readonly, settings.bundle, *SHIPPED
    )  # fmt: skip
    store = STORES.get(key)
    if store is None:
        store = STORES.setdefault(key, Store(settings))
        for old in list(STORES)[:-OPEN]:
            dropped = STORES.pop(old, None)
            if dropped is not None:
                dropped.close()
    return store
