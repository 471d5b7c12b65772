"""
Watch shared memory for races: who wrote a place, and who read it, since the barrier.

Each granule (the kernel's smallest shared access) has one owner word. Reads are only
logged; a write looks at the logged reads that overlap its range, so the usual phase of
a clean kernel, which only reads or writes elsewhere, costs nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.lanes import Lanes
from tilewise.device.emulator.memory import Access, Memory
from tilewise.device.emulator.order import Order
from tilewise.device.emulator.report import Faults
from tilewise.device.emulator.site import Site

__all__ = ["ATOMIC", "PENDING", "SharedMemory"]

Array: TypeAlias = Any

# Owner words: a thread that wrote since the last barrier, plus ATOMIC if it did so
# atomically; or one of these, or PENDING - t for a copy in flight of thread t.
CLEAN: Final = -1
UNWRITTEN: Final = -2
PENDING: Final = -16
ATOMIC: Final = 1 << 30
_LOG_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class _Read:
    """A logged read: granules and threads, and their range within a block."""

    low: int
    high: int
    granules: Array
    threads: Array
    times: Any
    site: Site


def _is_nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.False_


class SharedMemory(Memory):
    """The shared memory of all blocks of a chunk."""

    per = "block"

    def __init__(
        self, nbytes: int, blocks: int, granule: int, order: Order, faults: Faults
    ) -> None:
        self.granule, self.shift = granule, granule.bit_length() - 1
        super().__init__("shared", nbytes * blocks, faults)
        self.stride, self.blocks, self.order = nbytes, blocks, order
        size = nbytes * blocks >> self.shift
        self.owner: Array = np.full(size, UNWRITTEN, np.int32)
        self.mark: Array = np.full(size, -1, np.int32)
        self.times: Any = np.zeros(size, np.int32) if order.partial else None
        self.log: list[_Read] = []
        self.logged = 0

    def _shadow(self, nbytes: int) -> Array:
        return np.zeros(0, np.uint8)

    def granules(self, access: Access, nbytes: int) -> tuple[Array, Array]:
        """Return the granules of an access and the thread of each, flat."""
        count = max(nbytes >> self.shift, 1)
        first = access.bytes >> self.shift
        threads = access.lanes.index
        if access.ok is not None:
            first, threads = first[access.ok], threads[access.ok]
        if count == 1:
            return first, threads
        every = first[:, None] + np.arange(count)
        return every.ravel(), np.repeat(threads, count)

    # Reads.

    def before_load(self, access: Access, site: Site) -> None:
        """Check a read against the writes since the barrier, and log it."""
        granules, threads = self.granules(access, site.nbytes)
        owner = self.owner.take(granules)
        if (owner != CLEAN).any():
            self._check_read((granules, threads), owner, access.lanes, site)
        times = None if self.times is None else self.order.now(threads)
        self.log.append(_Read(access.low, access.high, granules, threads, times, site))
        self.logged += granules.nbytes
        if self.logged > _LOG_BYTES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        half = len(self.log) // 2
        self.logged -= sum(read.granules.nbytes for read in self.log[:half])
        del self.log[:half]

    def _check_read(
        self, place: tuple[Array, Array], owner: Array, lanes: Lanes, site: Site
    ) -> None:
        self._flag("uninitialised", owner == UNWRITTEN, place, lanes, site)
        pending = owner <= PENDING
        self._flag("async_unwaited", pending, place, lanes, site, owner)
        raced = self._raced(owner, *place, strong=site.strong)
        self._flag("race_raw", raced, place, lanes, site, owner)

    def _raced(
        self, owner: Array, granules: Array, threads: Array, *, strong: bool
    ) -> Array:
        writer = owner & ~ATOMIC
        raced = (owner >= 0) & (writer != threads)
        if strong:
            raced &= owner < ATOMIC
        if self.times is not None and raced.any():
            at = np.flatnonzero(raced)
            before = self.order.before(
                writer[at], self.times[granules[at]], threads[at]
            )
            raced[at] = ~before
        return raced

    # Writes.

    def before_store(self, access: Access, site: Site) -> None:
        """Check a write against reads and writes since the barrier."""
        self.check_write(access, site, self.granules(access, site.nbytes))

    def check_write(
        self, access: Access, site: Site, place: tuple[Array, Array]
    ) -> None:
        """Report what a write to some granules conflicts with."""
        granules, threads = place
        owner = self.owner.take(granules)
        if (owner > CLEAN).any() or (owner <= PENDING).any():
            raced = self._raced(owner, granules, threads, strong=site.strong)
            lanes = access.lanes
            self._flag("race_waw", raced, place, lanes, site, owner)
            pending = owner <= PENDING
            if site.async_copy:
                pending &= owner != PENDING - threads
            self._flag("async_unwaited", pending, place, lanes, site, owner)
        low, high = access.low, access.high
        overlapping = [r for r in self.log if r.low < high and low < r.high]
        if overlapping:
            self._check_reads(overlapping, place, access.lanes, site)

    def _check_reads(
        self,
        reads: list[_Read],
        place: tuple[Array, Array],
        lanes: Lanes,
        site: Site,
    ) -> None:
        granules, threads = place
        self.mark[granules] = threads
        for read in reads:
            if site.strong and read.site.strong:
                continue
            writer = self.mark.take(read.granules)
            raced = (writer >= 0) & (writer != read.threads)
            if read.times is not None and raced.any():
                at = np.flatnonzero(raced)
                earlier = self.order.before(
                    read.threads[at], read.times[at], writer[at]
                )
                raced[at] = ~earlier
            if raced.any():
                self._flag_war(read, raced, writer, lanes, site)
        self.mark[granules] = -1

    def _flag_war(
        self, read: _Read, raced: Array, writer: Array, lanes: Lanes, site: Site
    ) -> None:
        first = np.flatnonzero(raced)[0]
        _, reader = lanes.chunk.place(read.threads[first])
        self.faults.add(
            "race_war",
            site.instruction,
            int(raced.sum()),
            lanes.chunk.place(writer[first]),
            space=self.name,
            address=self._offset(read.granules[first]),
            other=f"read by thread {reader} at PTX line {read.site.instruction.line}",
        )

    def after_store(self, access: Access, values: tuple[Any, ...], site: Site) -> None:
        """Record the writers, and report lanes that wrote different values."""
        granules, threads = self.granules(access, site.nbytes)
        self.own(granules, threads)
        lost = self.owner.take(granules) != threads
        if site.strong:
            self.owner[granules] |= ATOMIC
        elif lost.any():
            self._check_same(access, values, site)

    def own(self, granules: Array, threads: Array) -> None:
        """Make threads the writers of granules."""
        self.owner[granules] = threads
        if self.times is not None:
            self.times[granules] = self.order.now(threads)

    def _check_same(self, access: Access, values: tuple[Any, ...], site: Site) -> None:
        flat = self.view(site.dtype, 1)
        first = access.bytes >> (site.dtype.itemsize.bit_length() - 1)
        differs = np.zeros(len(access.lanes), bool)
        for at, value in enumerate(values):
            kept = flat.take(first + at)
            differs |= (kept != value) & ~(_is_nan(kept) & _is_nan(value))
        if differs.any():
            self.report("race_waw", site, access.lanes, differs, access.offsets)

    # Barriers.

    def barrier(self, blocks: Array | None) -> None:
        """Forget what came before a barrier of whole blocks, all blocks for None."""
        if blocks is None:
            np.minimum(self.owner, CLEAN, out=self.owner)
            self.log.clear()
            self.logged = 0
            return
        rows = self.owner.reshape(self.blocks, -1)
        rows[blocks] = np.minimum(rows[blocks], CLEAN)
        per_block = self.stride >> self.shift
        kept = []
        for read in self.log:
            stays = ~np.isin(read.granules // per_block, blocks)
            if stays.any():
                times = None if read.times is None else read.times[stays]
                kept.append(
                    _Read(
                        read.low,
                        read.high,
                        read.granules[stays],
                        read.threads[stays],
                        times,
                        read.site,
                    )
                )
        self.log = kept

    # Reports.

    def _offset(self, granule: int) -> int:
        return (int(granule) << self.shift) % self.stride

    def _flag(
        self,
        kind: str,
        which: Array,
        place: tuple[Array, Array],
        lanes: Lanes,
        site: Site,
        owner: Array | None = None,
    ) -> None:
        if not which.any():
            return
        granules, threads = place
        first = np.flatnonzero(which)[0]
        other = ""
        if owner is not None:
            word = int(owner[first])
            writer = PENDING - word if word <= PENDING else word & ~ATOMIC
            _, thread = lanes.chunk.place(writer)
            other = f"written by thread {thread}"
        self.faults.add(
            kind,
            site.instruction,
            int(which.sum()),
            lanes.chunk.place(threads[first]),
            space=self.name,
            address=self._offset(granules[first]),
            other=other,
        )
