"""
Let the threads of a warp talk: shuffles, votes, matches and reductions.

Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "activemask",
"bar.warp.sync". Each reads the values of the lanes that run it together.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.lanes import Chunk, Lanes
from tilewise.device.emulator.order import Order
from tilewise.device.emulator.report import Faults
from tilewise.device.emulator.site import Site

__all__ = ["Warps"]

Array: TypeAlias = Any
U32: Final = np.uint32
_REDUCE: Final = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class Warps:
    """Exchange values between the lanes of all warps of a chunk."""

    def __init__(self, chunk: Chunk, order: Order, faults: Faults) -> None:
        self.chunk, self.order, self.faults = chunk, order, faults
        self.per_block = -(-chunk.threads // 32)

    def _slots(self, lanes: Lanes) -> Array:
        """Return each lane's place in a table with one row of 32 per warp."""
        return lanes.block * (self.per_block * 32) + lanes.thread

    def _table(self, lanes: Lanes, values: Any, fill: Any) -> Array:
        values = np.broadcast_to(values, len(lanes))
        table = np.full(self.chunk.blocks * self.per_block * 32, fill, values.dtype)
        table[self._slots(lanes)] = values
        return table

    def _running(self, lanes: Lanes, where: Any) -> Array:
        return np.broadcast_to(True if where is None else where, len(lanes))

    def _check_mask(
        self, lanes: Lanes, mask: Any, where: Any, site: Site
    ) -> tuple[Array, Array]:
        """Return membermasks per lane and which lanes run, reporting bad masks."""
        running = self._running(lanes, where)
        masks = np.broadcast_to(mask, len(lanes)).astype(np.int64)
        lane = lanes.thread % 32
        self._report("membermask", running & (masks >> lane & 1 == 0), lanes, site)
        bits = np.where(running, np.int64(1) << lane.astype(np.int64), 0)
        here = self._rows(self._table(lanes, bits, 0)).sum(axis=1)
        missing = masks & ~here[self._slots(lanes) // 32]
        self._report("warp_divergence", running & (missing != 0), lanes, site)
        return masks, running

    def _rows(self, table: Array) -> Array:
        return table.reshape(-1, 32)

    def _report(self, kind: str, which: Array, lanes: Lanes, site: Site) -> None:
        if which.any():
            first = int(np.flatnonzero(which)[0])
            self.faults.add(
                kind,
                site.instruction,
                int(which.sum()),
                self.chunk.place(int(lanes.index[first])),
            )

    def complete(self, lanes: Lanes, masks: Array, alive: Lanes) -> Array:
        """Tell which lanes have with them all living threads of their masks."""
        bit = np.int64(1) << (lanes.thread.astype(np.int64) % 32)
        here = self._rows(self._table(lanes, bit, 0)).sum(axis=1)
        bit = np.int64(1) << (alive.thread.astype(np.int64) % 32)
        living = self._rows(self._table(alive, bit, 0)).sum(axis=1)
        rows = self._slots(lanes) // 32
        ready: Array = masks & living[rows] & ~here[rows] == 0
        return ready

    def shuffle(
        self,
        lanes: Lanes,
        mode: str,
        operands: tuple[Any, Any, Any],
        mask: Any,
        where: Any,
        site: Site,
    ) -> tuple[Array, Array]:
        """
        Return the value of another lane, and whether that lane was in range.

        `operands` are the value, the offset or lane, and the limit (b and c of the
        ISA), which holds the segment mask and the clamp.
        """
        value, offset, limit = operands
        running = self._check_shuffle(lanes, mask, where, site)
        lane = lanes.thread.astype(np.int64) % 32
        by = np.asarray(offset, np.int64) & 31
        clamp = np.asarray(limit, np.int64)
        segment = clamp >> 8 & 31
        most = (lane & segment) | (clamp & 31 & ~segment)
        least = lane & segment
        source = {
            "up": lane - by,
            "down": lane + by,
            "bfly": lane ^ by,
            "idx": least | (by & ~segment),
        }[mode]
        in_range = source >= most if mode == "up" else source <= most
        source = np.where(in_range, source, lane)
        slots = self._slots(lanes) - lane + source
        values = np.broadcast_to(value, len(lanes))
        if lanes.whole and self.chunk.threads % 32 == 0 and where is None:
            return values.take(slots), in_range
        live = self._table(lanes, running, False)
        self._report("inactive_lane", running & ~live[slots], lanes, site)
        return self._table(lanes, values, 0)[slots], in_range

    def _check_shuffle(self, lanes: Lanes, mask: Any, where: Any, site: Site) -> Array:
        full = np.ndim(mask) == 0 and int(mask) == 0xFFFFFFFF
        if full and lanes.whole and where is None and self.chunk.threads % 32 == 0:
            return self._running(lanes, None)
        return self._check_mask(lanes, mask, where, site)[1]

    def vote(
        self, lanes: Lanes, mode: str, flag: Any, mask: Any, where: Any, site: Site
    ) -> Array:
        """Return whether all or any lanes of the mask agree, or their ballot."""
        masks, running = self._check_mask(lanes, mask, where, site)
        lane = lanes.thread.astype(np.int64) % 32
        slots = self._slots(lanes)
        said = np.broadcast_to(flag, len(lanes)) & running
        bits = np.where(said, np.int64(1) << lane, 0)
        here = np.where(running, np.int64(1) << lane, 0)
        ballot = self._rows(self._table(lanes, bits, 0)).sum(axis=1)[slots // 32]
        present = self._rows(self._table(lanes, here, 0)).sum(axis=1)[slots // 32]
        ballot, present = ballot & masks, present & masks
        if mode == "ballot":
            return ballot.astype(U32)
        every = ballot == present
        return {"all": every, "any": ballot != 0, "uni": every | (ballot == 0)}[mode]

    def match(
        self, lanes: Lanes, mode: str, value: Any, mask: Any, where: Any, site: Site
    ) -> tuple[Array, Array]:
        """Return the lanes with an equal value, and whether all are equal."""
        masks, running = self._check_mask(lanes, mask, where, site)
        slots = self._slots(lanes)
        values = self._rows(self._table(lanes, value, 0))[slots // 32]
        live = self._rows(self._table(lanes, running, False))[slots // 32]
        bit = np.int64(1) << np.arange(32)
        named = live & (masks[:, None] & bit != 0)
        mine = np.broadcast_to(value, len(lanes))[:, None]
        equal = ((values == mine) & named) @ bit
        whole = equal == named @ bit
        if mode == "any":
            return equal.astype(U32), whole
        return np.where(whole, masks, 0).astype(U32), whole

    def reduce(
        self, lanes: Lanes, op: str, value: Any, mask: Any, where: Any, site: Site
    ) -> Array:
        """Return the reduction over the lanes of the mask."""
        masks, running = self._check_mask(lanes, mask, where, site)
        slots = self._slots(lanes)
        values = np.broadcast_to(value, len(lanes))
        rows = self._rows(self._table(lanes, values, 0))
        live = self._rows(self._table(lanes, running, False))
        out = values.copy()
        for key in np.unique(np.stack([slots // 32, masks]), axis=1).T:
            row, named = int(key[0]), int(key[1])
            chosen = live[row] & (named >> np.arange(32) & 1 != 0)
            same = (slots // 32 == row) & (masks == named)
            if chosen.any():
                reduced = _REDUCE[op].reduce(rows[row][chosen], dtype=values.dtype)
                out[same] = reduced
        return out

    def active(self, lanes: Lanes, where: Any) -> Array:
        """Return the mask of the lanes that run together."""
        lane = lanes.thread.astype(np.int64) % 32
        here = np.where(self._running(lanes, where), np.int64(1) << lane, 0)
        rows = self._rows(self._table(lanes, here, 0)).sum(axis=1)
        return rows[self._slots(lanes) // 32].astype(U32)

    def sync(self, lanes: Lanes, mask: Any, where: Any, site: Site) -> None:
        """Order the memory accesses of the lanes of each mask."""
        masks, running = self._check_mask(lanes, mask, where, site)
        slots = self._slots(lanes) // 32
        keys, which = np.unique(
            np.stack([slots, masks])[:, running], axis=1, return_inverse=True
        )
        threads = lanes.index[running]
        for at in range(keys.shape[1]):
            members = threads[which == at]
            self.order.meet(members)
