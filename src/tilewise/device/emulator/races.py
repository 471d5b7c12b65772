"""
Watch global memory for races between blocks, which no barrier orders.

An option: kernels that pass flags between blocks by plain accesses and fences would
be reported although they work. Atomic and other strong accesses don't race with each
other.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.memory import Access, Memory
from tilewise.device.emulator.site import Site

__all__ = ["BlockRaces"]

Array: TypeAlias = Any
_SEVERAL: Final = 1 << 30


class BlockRaces:
    """
    Remember which block wrote and which block read each granule of a launch.

    Words are a block's number plus one, 0 for none; readers may be `_SEVERAL`; the
    sign of a writer is negative for a strong access.
    """

    def __init__(self, nbytes: int, granule: int) -> None:
        self.shift = granule.bit_length() - 1
        self.writer = np.zeros(nbytes >> self.shift, np.int32)
        self.reader = np.zeros(nbytes >> self.shift, np.int32)

    def load(self, memory: Memory, access: Access, site: Site) -> None:
        """Check plain and strong loads."""
        granules, blocks = self._granules(access, site)
        writer = self.writer.take(granules)
        raced = (writer != 0) & (np.abs(writer) != blocks)
        if site.strong:
            raced &= writer > 0
        self._report(memory, "race_raw", raced, access, site, writer)
        if not site.strong:
            known = self.reader.take(granules)
            alone = (known == 0) | (known == blocks)
            self.reader[granules] = np.where(alone, blocks, _SEVERAL)
            self.reader[granules[self.reader.take(granules) != blocks]] = _SEVERAL

    def store(self, memory: Memory, access: Access, site: Site) -> None:
        """Check stores and atomics."""
        granules, blocks = self._granules(access, site)
        writer, reader = self.writer.take(granules), self.reader.take(granules)
        raced = (writer != 0) & (np.abs(writer) != blocks)
        if site.strong:
            raced &= writer > 0
        self._report(memory, "race_waw", raced, access, site, writer)
        read = (reader != 0) & (reader != blocks)
        self._report(memory, "race_war", read, access, site, reader)
        self.writer[granules] = -blocks if site.strong else blocks
        if not site.strong:
            lost = np.abs(self.writer.take(granules)) != blocks
            self._report(memory, "race_waw", lost, access, site, writer)

    def _granules(self, access: Access, site: Site) -> tuple[Array, Array]:
        lanes = access.lanes
        count = max(site.nbytes >> self.shift, 1)
        first = np.broadcast_to(access.bytes >> self.shift, len(lanes))
        blocks = lanes.block + lanes.chunk.first + 1
        if access.ok is not None:
            first, blocks = first[access.ok], blocks[access.ok]
        every = first[:, None] + np.arange(count)
        return every.ravel(), np.repeat(blocks, count).astype(np.int32)

    def _report(
        self,
        memory: Memory,
        kind: str,
        raced: Array,
        access: Access,
        site: Site,
        words: Array,
    ) -> None:
        if not raced.any():
            return
        lanes = access.lanes
        ok = np.ones(len(lanes), bool) if access.ok is None else access.ok
        which = np.zeros(len(lanes), bool)
        which[ok] = raced.reshape(int(ok.sum()), -1).any(axis=1)
        word = abs(int(words[np.flatnonzero(raced)[0]]))
        other = "several blocks" if word == _SEVERAL else f"block number {word - 1}"
        if word == 0:
            other = "another block in the same instruction"
        memory.report(kind, site, lanes, which, access.offsets, f"other: {other}")
