"""
Hold the bytes of a state space and check every access to them.

Bounds and alignment are checked against the smallest and largest offset of all
threads first; only accesses that leave a single region are looked at one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from tilewise.device.emulator.lanes import Lanes
from tilewise.device.emulator.report import Faults
from tilewise.device.emulator.site import Site

__all__ = ["Access", "Memory", "Region"]

Array: TypeAlias = np.ndarray[Any, Any]
_SET: Final = {
    size: np.frombuffer(b"\1" * size, f"u{size}")[0] for size in (1, 2, 4, 8)
}


class Region:
    """A range of offsets [start, end) that may be accessed."""

    __slots__ = ("end", "initialised", "name", "read_only", "start")

    def __init__(
        self,
        start: int,
        end: int,
        name: str,
        *,
        initialised: bool = False,
        read_only: bool = False,
    ) -> None:
        self.start, self.end, self.name = start, end, name
        self.initialised, self.read_only = initialised, read_only


class Races(Protocol):
    """Watch loads and stores for races."""

    def load(self, memory: Memory, access: Access, site: Site) -> None:
        """Look at a load."""

    def store(self, memory: Memory, access: Access, site: Site) -> None:
        """Look at a store or an atomic operation."""


class Access:
    """Checked offsets of one access: who, where, and where in the data."""

    __slots__ = ("bytes", "high", "lanes", "low", "offsets", "ok", "region")

    def __init__(
        self,
        lanes: Lanes,
        offsets: Any,
        place: tuple[int, int, Region | None],
        ok: Any,
    ) -> None:
        self.lanes, self.offsets, self.ok = lanes, offsets, ok
        self.low, self.high, self.region = place
        self.bytes = offsets


class Memory:
    """
    A state space: global, or one copy per thread (local) or per block (shared).

    `window` is the generic address of offset 0; `stride` the bytes of one copy, 0 for
    memory that all threads share.
    """

    per: str = ""

    def __init__(self, name: str, nbytes: int, faults: Faults, window: int = 0) -> None:
        self.name, self.faults, self.window = name, faults, window
        self.data = np.zeros(nbytes, np.uint8)
        self.written = self._shadow(nbytes)
        self.stride = 0
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self._views: dict[tuple[str, int], Array] = {}
        self.races: Races | None = None

    def _shadow(self, nbytes: int) -> Array:
        return np.zeros(nbytes, np.uint8)

    def set_regions(self, regions: Iterable[Region]) -> None:
        """Say what may be accessed."""
        self.regions = sorted(regions, key=lambda r: r.start)
        self._starts = [r.start for r in self.regions]

    def region_at(self, offset: int) -> Region | None:
        """Return the region that holds an offset."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or offset >= self.regions[at].end:
            return None
        return self.regions[at]

    def view(self, dtype: np.dtype[Any], count: int) -> Array:
        """Return the data as rows of `count` elements."""
        key = (dtype.str, count)
        if key not in self._views:
            whole = self.data.view(dtype)
            self._views[key] = whole.reshape(-1, count) if count > 1 else whole
        return self._views[key]

    # Access.

    def place(self, lanes: Lanes, address: Any, site: Site) -> Access:
        """Turn addresses into checked byte positions."""
        if address.dtype.itemsize == 8:
            offsets = (address - np.uint64(self.window)).view(np.int64)
        else:
            offsets = address.astype(np.int64)
        if offsets.ndim == 0 and (self.per or not site.is_load):
            offsets = np.full(len(lanes), offsets)
        low, high = int(offsets.min()), int(offsets.max()) + site.nbytes
        region = self.region_at(low)
        aligned = not int(np.bitwise_or.reduce(offsets, axis=None)) & (site.nbytes - 1)
        ok = None
        if region is None or high > region.end or not aligned:
            offsets, ok = self._look_closer(lanes, offsets, site, aligned)
            low, high, region = 0, self.stride or len(self.data), None
        access = Access(lanes, offsets, (low, high, region), ok)
        if self.per:
            access.bytes = offsets + lanes.scaled(self.per, self.stride)
        return access

    def check_aligned(self, lanes: Lanes, address: Any, site: Site) -> None:
        """Report addresses that are no multiple of the access's size."""
        offsets = np.broadcast_to(address, len(lanes)).astype(np.uint64)
        offsets = (offsets - np.uint64(self.window)).view(np.int64)
        wrong = offsets & (site.nbytes - 1) != 0
        if wrong.any():
            self.report("misaligned", site, lanes, wrong, offsets)

    def _look_closer(
        self, lanes: Lanes, offsets: Any, site: Site, aligned: bool
    ) -> tuple[Any, Any]:
        offsets = np.broadcast_to(offsets, len(lanes))
        if not aligned:
            wrong = offsets & (site.nbytes - 1) != 0
            self.report("misaligned", site, lanes, wrong, offsets)
            offsets = offsets & ~np.int64(site.nbytes - 1)
        ok = self._inside(offsets, site.nbytes)
        if ok.all():
            return offsets, None
        self.report("out_of_bounds", site, lanes, ~ok, offsets)
        fallback = self.regions[0].start if self.regions else 0
        return np.where(ok, offsets, fallback & ~15), ok

    def _inside(self, offsets: Any, nbytes: int) -> Any:
        if not self.regions:
            return np.zeros(offsets.shape, bool)
        starts = np.array(self._starts)
        ends = np.array([r.end for r in self.regions])
        at = np.searchsorted(starts, offsets, "right") - 1
        return (at >= 0) & (offsets + nbytes <= ends[at])

    def load(self, lanes: Lanes, address: Any, site: Site) -> Any:
        """Read `site.count` elements per lane; lanes out of bounds read zeros."""
        access = self.place(lanes, address, site)
        self.before_load(access, site)
        rows = access.bytes >> (site.nbytes.bit_length() - 1)
        values = self.view(site.dtype, site.count).take(rows, axis=0)
        if access.ok is None:
            return values
        ok = access.ok if site.count == 1 else access.ok[:, None]
        return np.where(ok, values, site.dtype.type(0))

    def store(
        self, lanes: Lanes, address: Any, values: tuple[Any, ...], site: Site
    ) -> None:
        """Write `site.count` elements per lane; lanes out of bounds write nothing."""
        access = self.place(lanes, address, site)
        if access.ok is not None:
            chosen = np.flatnonzero(access.ok)
            values = tuple(v[chosen] if v.ndim else v for v in values)
            access = self.only(access, chosen)
            if not len(chosen):
                return
        self.before_store(access, site)
        self.put(access, values, site)
        self.after_store(access, values, site)

    @staticmethod
    def only(access: Access, chosen: Array) -> Access:
        """Return an access of some of its lanes, all of them in bounds."""
        kept = Access(
            access.lanes.take(chosen),
            access.offsets[chosen],
            (access.low, access.high, access.region),
            None,
        )
        kept.bytes = access.bytes[chosen]
        return kept

    def put(self, access: Access, values: tuple[Any, ...], site: Site) -> None:
        """Write the values; the last lane wins where several write one place."""
        flat = self.view(site.dtype, 1)
        first = access.bytes >> (site.dtype.itemsize.bit_length() - 1)
        for at, value in enumerate(values):
            flat[first + at if at else first] = value

    # What checks the spaces do beyond bounds.

    def before_load(self, access: Access, site: Site) -> None:
        """Report reads of bytes that nobody wrote, and races where watched."""
        if self.races is not None and not site.atomic:
            self.races.load(self, access, site)
        if access.region is not None and access.region.initialised:
            return
        size = site.dtype.itemsize
        marks = self.written.view(f"u{size}")
        first = access.bytes >> (size.bit_length() - 1)
        missing = marks.take(first) != _SET[size]
        for at in range(1, site.count):
            missing = missing | (marks.take(first + at) != _SET[size])
        if access.ok is not None:
            missing = missing & access.ok
        if missing.any():
            missing = np.broadcast_to(missing, len(access.lanes))
            self.report("uninitialised", site, access.lanes, missing, access.offsets)

    def before_store(self, access: Access, site: Site) -> None:
        """Report stores into read-only regions, and races where watched."""
        if self.races is not None:
            self.races.store(self, access, site)
        if access.region is not None and access.region.read_only:
            every = np.ones(len(access.lanes), bool)
            self.report("read_only", site, access.lanes, every, access.offsets)

    def after_store(self, access: Access, values: tuple[Any, ...], site: Site) -> None:
        """Remember which bytes were written."""
        if access.region is not None and access.region.initialised:
            return
        size = site.dtype.itemsize
        marks = self.written.view(f"u{size}")
        first = access.bytes >> (size.bit_length() - 1)
        for at in range(site.count):
            marks[first + at] = _SET[size]

    def report(
        self,
        kind: str,
        site: Site,
        lanes: Lanes,
        which: Any,
        offsets: Any,
        other: str = "",
    ) -> None:
        """Report the lanes of a mask."""
        chosen = np.flatnonzero(which)
        first = chosen[0]
        offset = int(np.broadcast_to(offsets, len(lanes))[first])
        near = bisect_right(self._starts, offset) - 1
        if not other and near >= 0:
            region = self.regions[near]
            size = region.end - region.start
            other = f"byte {offset - region.start} of {region.name} ({size} bytes)"
        self.faults.add(
            kind,
            site.instruction,
            len(chosen),
            lanes.chunk.place(lanes.index[first]),
            space=self.name,
            address=offset + (self.window if self.name == "global" else 0),
            other=other,
        )
