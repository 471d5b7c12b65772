"""
Model cp.async: copies that land late, at the wait, or early, at the issue.

Source: PTX ISA, "Data Movement and Conversion Instructions: cp.async". The hardware
may do either, so a kernel has to be right under both landings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.lanes import Chunk, Lanes
from tilewise.device.emulator.memory import Memory
from tilewise.device.emulator.shadow import PENDING, SharedMemory
from tilewise.device.emulator.site import Site

__all__ = ["Copies"]

Array: TypeAlias = Any
_WORDS: Final = np.dtype(np.uint32)


@dataclass(slots=True)
class _Copy:
    """One issued instruction: rows of words for its threads, still in flight."""

    site: Site
    threads: Array
    first: Array
    words: Array
    groups: Array


class Copies:
    """Hold the copies in flight of a chunk."""

    def __init__(
        self, shared: SharedMemory, memory: Memory, size: int, *, lazy: bool
    ) -> None:
        self.shared, self.memory, self.lazy = shared, memory, lazy
        self.group = np.zeros(size, np.int32)
        self.flying: list[_Copy] = []

    def issue(
        self, lanes: Lanes, target: Any, source: Any, length: Any, site: Site
    ) -> None:
        """Start a copy of `site.nbytes`; bytes past `length` are zeros."""
        words = self._read(lanes, source, length, site)
        access = self.shared.place(lanes, target, site)
        if access.ok is not None:
            chosen = np.flatnonzero(access.ok)
            access, words = Memory.only(access, chosen), words[chosen]
        if not len(access.lanes):
            return
        granules, threads = self.shared.granules(access, site.nbytes)
        self.shared.check_write(access, site, (granules, threads))
        self.shared.owner[granules] = PENDING - threads
        index = access.lanes.index
        copy = _Copy(site, index, access.bytes >> 2, words, self.group[index])
        if not self.lazy:
            self._land(copy.first, copy.words)
        self.flying.append(copy)

    def _read(self, lanes: Lanes, source: Any, length: Any, site: Site) -> Array:
        source = np.broadcast_to(source, len(lanes))
        if length is None:
            words = self.memory.load(lanes, source, site)
            return words.reshape(len(lanes), site.count)
        self.memory.check_aligned(lanes, source, site)
        length = np.broadcast_to(length, len(lanes)).astype(np.int64)
        words = np.zeros((len(lanes), site.count), np.uint32)
        whole = np.flatnonzero(length >= site.nbytes)
        if len(whole):
            loaded = self.memory.load(lanes.take(whole), source[whole], site)
            words[whole] = loaded.reshape(len(whole), site.count)
        part = np.flatnonzero((length > 0) & (length < site.nbytes))
        if len(part):
            some = lanes.take(part)
            words[part] = self._read_bytes(some, source[part], length[part], site)
        return words

    def _read_bytes(
        self, lanes: Lanes, source: Any, length: Array, site: Site
    ) -> Array:
        """Read the first bytes of rows that are cut short."""
        words = np.zeros((len(lanes), site.count), np.uint32)
        rows, byte = words.view(np.uint8), np.dtype(np.uint8)
        single = Site(site.instruction, "global", byte)
        for at in range(int(length.max())):
            chosen = np.flatnonzero(length > at)
            place = source[chosen] + np.uint64(at)
            rows[chosen, at] = self.memory.load(lanes.take(chosen), place, single)
        return words

    def _land(self, first: Array, words: Array) -> None:
        flat = self.shared.view(_WORDS, 1)
        for at in range(words.shape[1]):
            flat[first + at] = words[:, at]

    def commit(self, lanes: Lanes) -> None:
        """Close the threads' present groups."""
        self.group[lanes.index] += 1

    def wait(self, lanes: Lanes, newest: int) -> None:
        """Wait until at most `newest` groups of the threads are in flight."""
        if newest < 0:
            self.commit(lanes)
            newest = 0
        active = np.zeros(len(self.group), bool)
        active[lanes.index] = True
        kept: list[_Copy] = []
        for copy in self.flying:
            done = active[copy.threads]
            done &= copy.groups < self.group[copy.threads] - newest
            if done.any():
                self._finish(copy, done)
            if not done.all():
                kept.append(_rest(copy, ~done))
        self.flying = kept

    def _finish(self, copy: _Copy, done: Array) -> None:
        first, threads = copy.first[done], copy.threads[done]
        if self.lazy:
            self._land(first, copy.words[done])
        shift = self.shared.shift
        count = copy.site.nbytes >> shift
        granules = ((first << 2) >> shift)[:, None] + np.arange(count)
        flat, owners = granules.ravel(), np.repeat(threads, count)
        mine = self.shared.owner.take(flat) == PENDING - owners
        self.shared.own(flat[mine], owners[mine])

    def end(self, chunk: Chunk) -> None:
        """Report copies that nobody waited for when the kernel ended."""
        for copy in self.flying:
            self.shared.faults.add(
                "async_never_waited",
                copy.site.instruction,
                len(copy.threads),
                chunk.place(int(copy.threads[0])),
                space="shared",
                address=int(copy.first[0] << 2) % self.shared.stride,
            )


def _rest(copy: _Copy, stays: Array) -> _Copy:
    return _Copy(
        copy.site,
        copy.threads[stays],
        copy.first[stays],
        copy.words[stays],
        copy.groups[stays],
    )
