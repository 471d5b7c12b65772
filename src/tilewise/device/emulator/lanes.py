"""
Name the threads that run together, and their special registers.

Threads are numbered through a chunk of consecutive blocks: thread t of block b is
b * threads + t, with b counted from the chunk's first block.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tilewise.device.seam import LaunchShape

__all__ = ["Chunk", "Lanes"]

Array: TypeAlias = np.ndarray[Any, Any]
Dim3: TypeAlias = tuple[int, int, int]


class Chunk:
    """Consecutive blocks of a launch that run in lockstep."""

    def __init__(self, shape: LaunchShape, first: int, blocks: int) -> None:
        self.shape, self.first, self.blocks = shape, first, blocks
        self.threads = shape.threads
        self.size = blocks * self.threads
        self.all = Lanes(self, np.arange(self.size, dtype=np.int32), whole=True)

    def place(self, thread: int) -> tuple[Dim3, Dim3]:
        """Return (block, thread) in three coordinates."""
        block, inner = divmod(int(thread), self.threads)
        return _split(self.first + block, self.shape.grid), _split(
            inner, self.shape.block
        )


def _split(index: int, sizes: Dim3) -> Dim3:
    x, y, _ = sizes
    return index % x, index // x % y, index // (x * y)


class Lanes:
    """Some threads of a chunk, in ascending order; `whole` means all of them."""

    __slots__ = ("_cache", "chunk", "index", "whole")

    def __init__(self, chunk: Chunk, index: Array, *, whole: bool = False) -> None:
        self.chunk, self.index, self.whole = chunk, index, whole
        self._cache: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.index)

    def take(self, chosen: Array) -> Lanes:
        """Return the lanes at some positions."""
        return Lanes(self.chunk, self.index[chosen])

    @property
    def block(self) -> Array:
        """Return each lane's block within the chunk."""
        return self._cached("block", lambda: self.index // self.chunk.threads)

    @property
    def thread(self) -> Array:
        """Return each lane's linear thread index within its block."""
        return self._cached("thread", lambda: self.index % self.chunk.threads)

    def scaled(self, name: str, stride: int) -> Array:
        """Return block ("block") or thread number ("index") times a stride."""
        source = self.block if name == "block" else self.index
        key = f"{name}*{stride}"
        return self._cached(key, lambda: source.astype(np.int64) * stride)

    def _cached(self, key: str, make: Any) -> Array:
        if key not in self._cache:
            self._cache[key] = make()
        found: Array = self._cache[key]
        return found

    def special(self, name: str) -> Any:
        """Return a special register as uint32: an array, or a scalar if uniform."""
        if name not in self._cache:
            self._cache[name] = self._make(name)
        return self._cache[name]

    def _make(self, name: str) -> Any:
        base, _, axis = name.partition(".")
        shape = self.chunk.shape
        if base in ("ntid", "nctaid"):
            sizes = shape.block if base == "ntid" else shape.grid
            return np.uint32(sizes["xyz".index(axis)])
        if base in ("tid", "ctaid"):
            sizes = shape.block if base == "tid" else shape.grid
            at = self.thread if base == "tid" else self.block + self.chunk.first
            before = {"x": 1, "y": sizes[0], "z": sizes[0] * sizes[1]}[axis]
            size = sizes["xyz".index(axis)]
            if size == 1:
                return np.uint32(0)
            return (at // before % size).astype(np.uint32)
        if base.startswith("lanemask"):
            return self._lane_mask(base.removeprefix("lanemask_"))
        return self._number(base)

    def _number(self, name: str) -> Any:
        warps = -(-self.chunk.threads // 32)
        if name == "laneid":
            return (self.thread % 32).astype(np.uint32)
        if name == "warpid":
            return (self.thread // 32).astype(np.uint32)
        fixed = {"nwarpid": warps, "warpsize": 32, "nsmid": 1}
        return np.uint32(fixed.get(name, 0))

    def _lane_mask(self, relation: str) -> Any:
        bit = np.uint64(1) << (self.thread % 32).astype(np.uint64)
        whole = np.uint64(0xFFFFFFFF)
        masks = {
            "eq": bit,
            "lt": bit - np.uint64(1),
            "le": (bit << np.uint64(1)) - np.uint64(1),
            "gt": whole & ~((bit << np.uint64(1)) - np.uint64(1)),
            "ge": whole & ~(bit - np.uint64(1)),
        }
        return masks[relation].astype(np.uint32)
