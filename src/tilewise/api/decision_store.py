"""
Decisions that callers measure themselves: regions by name, for this hardware.

    store = DecisionStore.load_or_create()
    store.update("joint_hist", axes=("n_samples",), regions=[
        {"n_samples_max": 1000, "variant": "numpy"},
        {"n_samples_max": None, "variant": "numba", "block": 256},
    ])
    store.lookup("joint_hist", n_samples=5000)   # {"variant": "numba", "block": 256}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from tilewise.api.caller_regions import boxes_of, checked_axes, point_of, written
from tilewise.device.fingerprint import hw_fingerprint
from tilewise.device.provenance import provenance
from tilewise.errors import ArgumentError, SettingError
from tilewise.model.box import BoxTable
from tilewise.settings import current
from tilewise.store.boxes import latest_first
from tilewise.store.stack import Store, open_store

__all__ = ["DecisionStore", "Match"]

Names = dict[str, tuple[tuple[int, ...], list[BoxTable]]]


@dataclass(frozen=True, slots=True)
class Match:
    """
    What a lookup found and why.

    `region` is the region as the caller wrote it and `payload` what it keeps without
    its bounds; both are None where nothing matched.
    """

    matched: bool
    region_index: int | None
    region: dict[str, Any] | None
    payload: dict[str, Any] | None
    reason: str

    def __str__(self) -> str:
        """Say it in words."""
        return self.reason


class DecisionStore:
    """
    The regions that callers measured on one hardware, kept in the user's store.

    Threads and processes may read and update at once: a name's table is replaced
    whole, never by an older one, and what another process wrote is seen at the next
    look. Where nothing can be kept, updates hold for this process, with one warning.
    """

    def __init__(self, store: Store, fingerprint: str) -> None:
        self.store, self.fingerprint = store, fingerprint
        self.seen: Names = {}
        self.unkept: dict[tuple[str, str], BoxTable] = {}

    @classmethod
    def load_or_create(cls, device: int | None = None) -> DecisionStore:
        """
        Return the user's default store, for this host with one of its GPUs.

        `device` counts the devices that the process sees; None is the first.
        """
        store, fingerprint = open_store(), hw_fingerprint(device)
        return opened(store, fingerprint)

    def update(
        self,
        name: str,
        /,
        *,
        axes: Sequence[str],
        regions: Sequence[Mapping[str, Any]],
        code_version: str | None = None,
    ) -> bool:
        """
        Put a name's regions in the place of earlier ones of the same code version.

        A region is a mapping with `<axis>_max`, `<axis>_min` (both included) or
        `<axis>_eq`, where None is unbounded; what else it has is its payload. The
        first region that takes a point serves it. Returns whether the table is kept
        beyond this process. Raises ArgumentError for bad bounds, a region that
        earlier ones cover and a table without a catch-all; SettingError when
        TILEWISE_TUNE is off, which never writes.
        """
        if not name:
            raise ArgumentError("a table needs a name")
        if current().tune == "off":
            todo = "unset it or use auto"
            raise SettingError("TILEWISE_TUNE", "off", todo, "storing regions")
        names = checked_axes(axes)
        made_utc = datetime.now(UTC).isoformat()
        table = BoxTable(
            self.fingerprint, name, names, boxes_of(regions, names),
            code_version or "", made_utc, provenance(),
        )  # fmt: skip
        is_kept = self.store.boxes.keep(table)
        if is_kept:
            self.unkept.pop((name, table.code_version), None)
        else:
            self.unkept[name, table.code_version] = table
        return is_kept

    def lookup(
        self, name: str, /, *, code_version: str | None = None, **axes: object
    ) -> dict[str, Any] | None:
        """
        Return what is kept for the first region that takes a point, or None.

        With `code_version` only what was measured with it counts, else the latest.
        Raises ArgumentError for an axis that is missing, misspelt or NaN.
        """
        return self.lookup_explain(name, code_version=code_version, **axes).payload

    def lookup_explain(
        self, name: str, /, *, code_version: str | None = None, **axes: object
    ) -> Match:
        """Return what a lookup finds, which region it is in, and why."""
        table = self.table(name, code_version)
        if table is None:
            return Match(False, None, None, None, self.why_none(name, code_version))
        point = point_of(table, axes)
        number = table.find(point)
        if number is None:
            reason = f"{written(point)} lies between the whole bounds of the regions"
            return Match(False, None, None, None, reason)
        box = table.boxes[number]
        reason = f"region {number} is the first that takes {written(point)}"
        return Match(
            True, number, json.loads(box.text), json.loads(box.payload), reason
        )

    def has(self, name: str, /, *, code_version: str | None = None) -> bool:
        """Say whether a name has regions here (measured with a code version)."""
        return self.table(name, code_version) is not None

    def get_regions(
        self, name: str, /, *, code_version: str | None = None
    ) -> list[dict[str, Any]]:
        """Return a name's regions in order, as the caller wrote them; [] for none."""
        table = self.table(name, code_version)
        return [json.loads(box.text) for box in table.boxes] if table else []

    def evict(self, name: str, /) -> bool:
        """Remove a name's regions on this hardware; returns whether there were any."""
        held = [key for key in self.unkept if key[0] == name]
        for key in held:
            del self.unkept[key]
        return bool(self.store.boxes.remove(self.fingerprint, name)) or bool(held)

    def table(self, name: str, code_version: str | None) -> BoxTable | None:
        """Return the latest table of a name (and code version), or None."""
        found = [t for (n, _), t in list(self.unkept.items()) if n == name]
        for table in [*latest_first(found), *self.tables(name)]:
            if code_version is None or table.code_version == code_version:
                return table
        return None

    def tables(self, name: str) -> list[BoxTable]:
        """Return a name's stored tables, read again when anyone wrote."""
        stamp = self.store.stamp()
        seen = self.seen.get(name)
        if seen is None or seen[0] != stamp:
            seen = self.seen[name] = (
                stamp,
                self.store.caller_tables(self.fingerprint, name),
            )
        return seen[1]

    def why_none(self, name: str, code_version: str | None) -> str:
        """Say why a name has no regions here."""
        others = [table.code_version for table in self.tables(name)]
        if others and code_version is not None:
            return f"{name!r} was measured with code version {others[0]!r}"
        return f"{name!r} has no regions for {self.fingerprint}"


@lru_cache(8)
def opened(store: Store, fingerprint: str) -> DecisionStore:
    """Return one object for a store and a hardware."""
    return DecisionStore(store, fingerprint)
