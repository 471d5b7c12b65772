"""The decision tables of a process: what the store has, and what only memory has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tilewise.model.decision import (
    Decision,
    DecisionTable,
    Finder,
    Point,
    TableKey,
    is_inside,
)
from tilewise.runtime.judge import stale_fields
from tilewise.store.decisions import Join
from tilewise.store.merge import by_age, merge_tables
from tilewise.store.stack import Store

__all__ = ["Tables"]


@dataclass(frozen=True, slots=True)
class Known:
    """
    A table as it was read when the store had a stamp.

    `own` are decisions that are not in the store: taken under load where a clean one
    is stored, or not to be written. `table` is both, the later serving, and `finder`
    its index.
    """

    stamp: tuple[object, ...]
    own: DecisionTable | None
    table: DecisionTable | None
    finder: Finder


@dataclass(slots=True)
class Tables:
    """Reads tables once, and again when any process has written to the store."""

    store_of: Callable[[], Store]
    known: dict[TableKey, Known] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def clear(self) -> None:
        """Forget all that is only in memory."""
        self.known.clear()

    def drop(self, kernels: set[str]) -> None:
        """Forget the tables of some kernels, by digest."""
        with self.lock:
            for key in [key for key in self.known if key.kernel in kernels]:
                del self.known[key]

    def find(self, key: TableKey, point: Point) -> Decision | None:
        """Return the decision that serves a point, or None."""
        return self.read(key).finder.find(point)

    def table(self, key: TableKey) -> DecisionTable | None:
        """Return a table as the store has it now, with what only memory has."""
        return self.read(key).table

    def read(self, key: TableKey) -> Known:
        """Read a table where it is not known or the store has changed."""
        store = self.store_of()
        stamp = (store.directory, store.layers, *store.stamp())
        known = self.known.get(key)
        if known is not None and known.stamp == stamp:
            return known
        with self.lock:  # What another thread keeps meanwhile must not get lost.
            known = self.known.get(key)
            own = known.own if known else None
            stored = store.decisions(key)
            table = by_age(stored, own) if own else stored
            finder = Finder(table.decisions if table else ())
            self.known[key] = Known(stamp, own, table, finder)
            return self.known[key]

    def keep(
        self, table: DecisionTable, *, writes: bool, join: Join = merge_tables
    ) -> bool:
        """
        Keep new decisions in memory, and where it `writes` in the store.

        Those taken under load never replace a clean one in the store. Returns whether
        they are in the store.
        """
        store, key = self.store_of(), table.key
        with self.lock:
            stored = store.decisions(key) if writes else None
            writes = writes and not (stored and any(spoils(stored, table)))
            kept = writes and store.keep_decisions(table, join) is not None
            known = self.known.pop(key, None)
            own = known.own if known else None
            own = without(own, table) if kept else merge_tables(own, table)
            self.known[key] = Known((), own, None, Finder(()))
            return kept


def spoils(stored: DecisionTable, table: DecisionTable) -> Iterable[bool]:
    """Say of each new decision whether a clean one would give way to load."""
    for decision in table.decisions:
        found = stored.find(decision.point) if decision.contended else None
        yield (
            found is not None
            and not found.contended
            and not stale_fields(found, decision.provenance)
        )


def without(own: DecisionTable | None, table: DecisionTable) -> DecisionTable | None:
    """Return what is left of decisions when others come, or None."""
    if own is None:
        return None
    regions = [decision.region for decision in table.decisions]
    left = tuple(
        d for d in own.decisions if not any(is_inside(d.region, r) for r in regions)
    )
    return replace(own, decisions=left) if left else None
