"""
Load and multiply matrix fragments spread over the lanes of a warp.

Source: PTX ISA, "Warp Level Matrix Instructions": the fragment layouts of ldmatrix and
of mma.m16n8k4, m16n8k8 and m16n8k16. Products are summed in float64 and rounded once;
hardware sums in an order and width that the ISA leaves open.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.halves import from_bf16, join
from tilewise.device.emulator.lanes import Chunk, Lanes
from tilewise.device.emulator.report import Faults
from tilewise.device.emulator.shadow import SharedMemory
from tilewise.device.emulator.site import Site

__all__ = ["Matrices"]

Array: TypeAlias = np.ndarray[Any, Any]
_LANE: Final = np.arange(32)
_GROUP: Final = _LANE // 4
_WITHIN: Final = _LANE % 4
U32: Final = np.uint32


class Matrices:
    """Run the matrix instructions of all warps of a chunk."""

    def __init__(self, chunk: Chunk, shared: SharedMemory, faults: Faults) -> None:
        self.chunk, self.shared, self.faults = chunk, shared, faults

    def _whole(self, lanes: Lanes, site: Site) -> bool:
        """Tell whether the lanes are whole warps, and report it where not."""
        index = lanes.index
        starts = index[::32]
        whole = (
            self.chunk.threads % 32 == 0
            and len(index) % 32 == 0
            and bool((starts % 32 == 0).all())
            and bool((index.reshape(-1, 32) == starts[:, None] + _LANE).all())
        )
        if not whole:
            place = self.chunk.place(int(index[0]))
            self.faults.add("warp_divergence", site.instruction, len(index), place)
        return whole

    def load(
        self, lanes: Lanes, address: Any, count: int, transposed: bool, site: Site
    ) -> tuple[Array, ...]:
        """Load `count` 8x8 matrices of 16-bit elements, rows given by the lanes."""
        nothing = np.zeros(len(lanes), U32)
        if not self._whole(lanes, site):
            return (nothing,) * count
        addresses = np.broadcast_to(address, len(lanes)).reshape(-1, 32)
        given = addresses[:, : 8 * count].ravel()
        used = lanes.index.reshape(-1, 32)[:, : 8 * count].ravel()
        rows = self.shared.load(Lanes(self.chunk, used), given, site)
        halves = np.ascontiguousarray(rows).view(np.uint16)
        tiles = halves.reshape(-1, count, 8, 8)
        if transposed:
            tiles = tiles.swapaxes(2, 3)
        first = tiles[:, :, _GROUP, 2 * _WITHIN]
        second = tiles[:, :, _GROUP, 2 * _WITHIN + 1]
        words = join(np.ascontiguousarray(first), np.ascontiguousarray(second))
        return tuple(words[:, at].ravel() for at in range(count))

    def multiply(
        self,
        lanes: Lanes,
        shape: str,
        kind: str,
        fragments: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]],
        site: Site,
    ) -> tuple[Array, ...]:
        """Return the fragments of a @ b + c, given those of a, b and c."""
        a, b, c = fragments
        if not self._whole(lanes, site):
            return tuple(np.broadcast_to(x, len(lanes)) for x in c)
        k = int(shape.partition("k")[2])
        left = self._inputs(lanes, a, kind, k, left=True)
        right = self._inputs(lanes, b, kind, k, left=False)
        total = left @ right + self._sums(lanes, c)
        return self._outputs(total, half=len(c) == 2)

    def _rows(self, lanes: Lanes, value: Any) -> Array:
        return np.ascontiguousarray(np.broadcast_to(value, len(lanes))).reshape(-1, 32)

    def _inputs(
        self, lanes: Lanes, fragments: tuple[Any, ...], kind: str, k: int, *, left: bool
    ) -> Array:
        """Gather A as (warps, 16, k) or B as (warps, k, 8) in float64."""
        warps = len(lanes) // 32
        shape = (warps, 16, k) if left else (warps, k, 8)
        out = np.zeros(shape)
        for at, fragment in enumerate(fragments):
            words = self._rows(lanes, fragment)
            for part, values in enumerate(_values(words, kind)):
                row, column = _element(kind, at, part, left=left)
                out[:, row, column] = values
        return out

    def _sums(self, lanes: Lanes, c: tuple[Any, ...]) -> Array:
        warps = len(lanes) // 32
        out = np.zeros((warps, 16, 8))
        for at, fragment in enumerate(_unpacked(lanes, c)):
            values = self._rows(lanes, fragment)
            out[:, _GROUP + 8 * (at // 2), 2 * _WITHIN + at % 2] = values
        return out

    def _outputs(self, total: Array, *, half: bool) -> tuple[Array, ...]:
        kind = np.float16 if half else np.float32
        parts = [
            total[:, _GROUP + 8 * (at // 2), 2 * _WITHIN + at % 2].astype(kind).ravel()
            for at in range(4)
        ]
        if half:
            return join(parts[0], parts[1]), join(parts[2], parts[3])
        return tuple(parts)


def _unpacked(lanes: Lanes, c: tuple[Any, ...]) -> list[Any]:
    if len(c) == 4:
        return list(c)
    words = [np.broadcast_to(x, len(lanes)) for x in c]
    return [half for word in words for half in _values(word, "f16")]


def _values(words: Array, kind: str) -> tuple[Array, ...]:
    """Return the elements that a 32-bit register holds."""
    if kind == "tf32":
        return ((words & U32(0xFFFFE000)).view(np.float32),)
    low, high = words.astype(np.uint16), (words >> U32(16)).astype(np.uint16)
    if kind == "bf16":
        return from_bf16(low), from_bf16(high)
    return low.view(np.float16), high.view(np.float16)


def _element(kind: str, at: int, part: int, *, left: bool) -> tuple[Array, Array]:
    """Return row and column per lane of one element of a fragment."""
    if kind == "tf32":
        if left:
            return _GROUP + 8 * (at % 2), _WITHIN + 4 * (at // 2)
        return _WITHIN + 4 * at, _GROUP
    if left:
        return _GROUP + 8 * (at % 2), 2 * _WITHIN + part + 8 * (at // 2)
    return 2 * _WITHIN + part + 8 * at, _GROUP
