"""
The store as the rest sees it: one writable layer above read-only ones.

Artifacts and decisions live in two caches: the first is capped, the second is never
evicted, so that small records do not vanish because big ones churn.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from tilewise.model.decision import Decision, DecisionTable, TableKey
from tilewise.model.variant import Artifact
from tilewise.settings import Settings, current
from tilewise.store.bundle import Bundle, read_bundle
from tilewise.store.cache import RecordCache
from tilewise.store.place import default_directory, untrusted
from tilewise.store.records import Fault
from tilewise.store.warn import warn_once

__all__ = ["Store", "merge_tables", "open_store", "table_name"]

UNBOUNDED = 1 << 60


class Store:
    """
    Artifacts by key and decision tables by (fingerprint, kernel, table).

    Every fault is a miss with one warning; nothing here raises for the state of a
    disk. `directory` is None where there is no place to write.
    """

    def __init__(self, settings: Settings) -> None:
        place = default_directory(settings)
        if isinstance(place, str):
            warn_once("the store", place)
        self.directory: Path | None = None if isinstance(place, str) else place
        self.readonly = settings.readonly
        self.bundle = load_bundle(settings.bundle)
        root = self.directory or Path("/nonexistent")
        off = self.directory is None or settings.readonly
        self.artifacts = RecordCache(
            root / "artifacts", "artifact", Artifact, off,
            size_limit=settings.cache_max_bytes,
            eviction_policy="least-recently-used",
        )  # fmt: skip
        self.decisions_cache = RecordCache(
            root / "decisions", "decisions", DecisionTable, off,
            size_limit=UNBOUNDED, eviction_policy="none",
        )  # fmt: skip

    def artifact(self, key: str) -> Artifact | None:
        """Return compiled code; native objects only from a trusted place."""
        found: Artifact | None = None
        if self.directory is not None:
            found = self.artifacts.get(key)
        if found is not None and found.kind == "object":
            reason = untrusted(self.artifacts.directory)
            if reason is not None:
                warn_once(self.artifacts.directory, f"code is not loaded: {reason}")
                found = None
        if found is None and self.bundle is not None:
            found = self.bundle.artifacts.get(key)
        return found

    def keep_artifact(self, key: str, artifact: Artifact) -> bool:
        """Keep compiled code; an empty one is refused."""
        return bool(artifact.code) and self.artifacts.put(key, artifact)

    def evict_artifact(self, key: str, reason: str) -> None:
        """Remove compiled code that could not be used, and say why."""
        warn_once(f"{self.artifacts.directory} [{key[:24]}]", f"evicted: {reason}")
        self.artifacts.delete(key)

    def decisions(self, key: TableKey) -> DecisionTable | None:
        """Return a decision table, the bundle's decisions after the own ones."""
        name = table_name(key)
        own: DecisionTable | None = None
        if self.directory is not None:
            own = self.decisions_cache.get(name)
        shipped = self.bundle.tables.get(name) if self.bundle else None
        if own is None or shipped is None:
            return own or shipped
        return merge_tables(shipped, own)

    def keep_decisions(self, table: DecisionTable) -> DecisionTable | None:
        """
        Merge a table into the stored one, in one transaction.

        New decisions replace those of the same region and keep the others. Returns
        the merged table, or None where nothing could be written.
        """
        return self.decisions_cache.change(
            table_name(table.key), lambda old: merge_tables(old, table)
        )

    def tables(self) -> list[DecisionTable]:
        """Return all decision tables, the bundle's that are not overridden too."""
        found = dict(self.decisions_cache.items())
        shipped = self.bundle.tables if self.bundle else {}
        return [table for _, table in sorted({**shipped, **found}.items())]

    def forget_kernel(self, name: str) -> int:
        """Remove the decisions of a kernel by name; returns how many tables."""
        doomed = [k for k, t in self.decisions_cache.items() if t.kernel_name == name]
        return sum(self.decisions_cache.delete(key) for key in doomed)

    def clear(self) -> int:
        """Remove everything from the writable layer; returns the number of records."""
        return self.artifacts.clear() + self.decisions_cache.clear()

    def close(self) -> None:
        """Close both databases."""
        self.artifacts.close()
        self.decisions_cache.close()


def load_bundle(path: Path | None) -> Bundle | None:
    """Read the bundle that the settings name; a bad one is a miss with one warning."""
    if path is None:
        return None
    found = read_bundle(path)
    if isinstance(found, Fault):
        warn_once(path, found.reason)
        return None
    return found


def table_name(key: TableKey) -> str:
    """Return the text under which a table is kept."""
    parts = "\0".join((key.fingerprint, key.kernel, key.table)).encode()
    return hashlib.sha256(parts, usedforsecurity=False).hexdigest()


def merge_tables(old: DecisionTable | None, new: DecisionTable) -> DecisionTable:
    """Put new decisions before the old ones of other regions."""
    if old is None:
        return new
    regions = {decision.region for decision in new.decisions}
    rest: tuple[Decision, ...] = tuple(
        decision for decision in old.decisions if decision.region not in regions
    )
    return DecisionTable(new.key, new.kernel_name, new.decisions + rest)


STORES: dict[Settings, Store] = {}
LOCK = threading.Lock()


def open_store() -> Store:
    """Return the process's store for the settings as they are now."""
    settings = current()
    with LOCK:
        if settings not in STORES:
            STORES[settings] = Store(settings)
        return STORES[settings]
