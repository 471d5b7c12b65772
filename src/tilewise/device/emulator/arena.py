"""
Hand out the emulated device's global memory, with a red zone after every buffer.

Freed memory is reused for buffers of the same size only, and everything is given
back once nothing is alive. The arena is reserved at once and costs real memory only
where it is touched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.memory import Memory, Region
from tilewise.device.emulator.report import Faults
from tilewise.errors import EngineError

__all__ = ["BASE", "Arena"]

Array: TypeAlias = np.ndarray[Any, Any]
#: The device address of the arena's first byte; nothing lies below.
BASE: Final = 0x2_0000_0000
_ALIGN: Final = 256
_RED_ZONE: Final = 256


class Arena(Memory):
    """Global memory with an allocator."""

    def __init__(self, nbytes: int) -> None:
        super().__init__("global", nbytes, Faults(""), BASE)
        self._top = _ALIGN
        self._free: dict[int, list[int]] = {}
        self._live = 0
        self._retired: deque[Region] = deque()

    def allocate(self, nbytes: int, name: str, *, read_only: bool = False) -> Region:
        """Return an uninitialised region; EngineError where there is no room."""
        self.settle()
        room = -(-(max(nbytes, 1) + _RED_ZONE) // _ALIGN) * _ALIGN
        offsets = self._free.get(room)
        if offsets:
            start = offsets.pop()
        else:
            start = self._top
            if start + room > len(self.data):
                left = len(self.data) - self._top
                raise EngineError(
                    f"the emulated device is out of memory: {nbytes} bytes asked, "
                    f"{max(left, 0)} of {len(self.data)} left"
                )
            self._top += room
        region = Region(start, start + nbytes, name, read_only=read_only)
        self.written[start : start + nbytes] = 0
        at = bisect_left(self._starts, start)
        self.regions.insert(at, region)
        self._starts.insert(at, start)
        self._live += 1
        return region

    def retire(self, region: Region) -> None:
        """
        Note a region to be freed; safe from any thread and from the collector.

        It is freed by the next `settle`, before the next launch or allocation.
        """
        self._retired.append(region)

    def settle(self) -> None:
        """Free what was retired."""
        while self._retired:
            self.free(self._retired.popleft())

    def free(self, region: Region) -> None:
        """Take a region back; accesses to it are out of bounds from now on."""
        at = bisect_left(self._starts, region.start)
        del self.regions[at], self._starts[at]
        nbytes = region.end - region.start
        room = -(-(max(nbytes, 1) + _RED_ZONE) // _ALIGN) * _ALIGN
        self._free.setdefault(room, []).append(region.start)
        self._live -= 1
        if not self._live:
            self._free.clear()
            self._top = _ALIGN

    def bytes_of(self, region: Region) -> Array:
        """Return a region's bytes as a view."""
        return self.data[region.start : region.end]

    def write(self, region: Region, raw: Array, at: int = 0) -> None:
        """Copy host bytes into a region."""
        start = region.start + at
        self.data[start : start + len(raw)] = raw
        self.written[start : start + len(raw)] = 1
        if at == 0 and len(raw) == region.end - region.start:
            region.initialised = True
