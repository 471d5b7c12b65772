"""
From a loaded native function to a run: what Python does before and around it.

Products by NumPy stand before the compiled pass; products over packed panels get
tiles and each thread's own workspace, which it keeps between calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.engines.base import Run
from tilewise.engines.cpu.micro import Block
from tilewise.engines.cpu.pool import run_tiles
from tilewise.engines.cpu.source import in_place
from tilewise.model.problem import Problem, scalar_values, viewed_array
from tilewise.model.spec import Spec

__all__ = [
    "BoundLater",
    "after_blas",
    "over_panels",
    "packed_by_numpy",
    "tiles_of",
    "with_scalars",
]

PRODUCT_BYTES = 1 << 22
"""What is held of a product that stands apart from the result."""
PANEL_BYTES = 1 << 20
"""What one thread packs of w at a time: as much as its second-level cache holds."""
MAX_CHUNK = 512
"""Columns of such a chunk, at most."""
LEAST_ROWS = 512
"""Rows for which a thread may pack all of w for itself: it costs a few percent."""
LEAST_PANELS = 2
PARTS = 16
"""Tiles for each thread at most: one that is held up leaves them to the others."""

Prelude = Callable[[Any], list[Any]]


def prelude_of(spec: Spec) -> Prelude | None:
    """Return what computes a call's scalars, or None where all are arguments."""
    wanted = [i for i, scalar in enumerate(spec.scalars) if scalar.direct < 0]
    if not wanted:
        return None

    def values(args: Any) -> list[Any]:
        found = scalar_values(spec, args)
        return [found[i] for i in wanted]

    return values


def with_scalars(call: Run, spec: Spec) -> Run:
    """Append the computed scalars to a call, if there are any."""
    prelude = prelude_of(spec)
    if prelude is None:
        return call
    return lambda *args: call(*args, *prelude(args))


def after_blas(call: Run, problem: Problem, threads: int) -> Run:
    """Put NumPy's product before the compiled pass, in `out` where it fits there."""
    spec, matmul, prelude = problem.spec, np.matmul, prelude_of(problem.spec)
    if not in_place(problem):
        return over_rows(call, spec, prelude, threads)
    x_at, w_at = spec.x.position, spec.w.position
    if threads == 1 and prelude is None and not (spec.x.view or spec.w.view):

        def plain(*args: Any) -> Any:
            matmul(args[x_at], args[w_at], out=args[-1])
            return call(*args)

        return plain

    def general(*args: Any) -> Any:
        out = args[-1]
        x, w = viewed_array(spec.x, args[x_at]), viewed_array(spec.w, args[w_at])
        matmul(x, w, out=out)
        if prelude is not None:
            args = (*args, *prelude(args))
        if threads == 1:
            return call(*args)
        run_tiles(
            lambda tile: call(*args, *tile), parts(out.shape[0], threads), threads
        )
        return out

    return general


def over_rows(call: Run, spec: Spec, prelude: Prelude | None, threads: int) -> Run:
    """
    Put NumPy's product of some rows at a time before the pass over them.

    For a product that does not fit in `out`, whose dtype differs: no more of it is
    held than PRODUCT_BYTES, or a hundred rows.
    """
    size = np.dtype(spec.product_dtype).itemsize

    def run(*args: Any) -> Any:
        m, n = args[-1].shape
        x = viewed_array(spec.x, args[spec.x.position])
        w = viewed_array(spec.w, args[spec.w.position])
        extra = prelude(args) if prelude is not None else []
        height = max(100, PRODUCT_BYTES // max(size * n, 1))
        product = np.empty((min(height, m), n), spec.product_dtype)
        for lo in range(0, m, height):
            hi = min(lo + height, m)
            np.matmul(x[lo:hi], w, out=product[: hi - lo])

            def work(tile: tuple[int, ...], lo: int = lo) -> None:
                own = product[tile[0] - lo :]
                call(*args, *extra, own, *tile)

            run_tiles(work, parts(hi - lo, threads, lo), threads)
        return args[-1]

    return run


def parts(rows: int, threads: int, first: int = 0) -> list[tuple[int, int]]:
    """Cut rows into two parts for each thread, or leave them whole for one."""
    step = max(1, -(-rows // (2 * threads))) if threads > 1 else max(rows, 1)
    end = first + rows
    return [(lo, min(lo + step, end)) for lo in range(first, end, step)]


@dataclass(frozen=True, slots=True)
class Plan:
    """
    The tiles of a product, and the bytes of panels for each thread.

    `shared` says that a thread packs the same chunk for each of its tiles.
    """

    tiles: tuple[tuple[int, int, int, int, int], ...]
    panel_bytes: int
    shared: bool


@lru_cache(maxsize=1024)
def tiles_of(sizes: tuple[int, int, int], threads: int, block: Block) -> Plan:
    """
    Cut a product of sizes (m, n, k) into tiles: rows, columns, and a chunk's columns.

    Few columns, or many rows, are cut by rows, each thread packing w for itself;
    else columns are cut, each packed once.
    """
    m, n, k = sizes
    size, wide = np.dtype(block.dtype).itemsize, block.columns
    chunk = min(MAX_CHUNK, PANEL_BYTES // (size * max(k, 1))) // wide * wide
    chunk = min(max(chunk, wide), -(-max(n, 1) // wide) * wide)
    by_rows = m >= 4 * LEAST_ROWS * threads or n < 2 * threads * wide
    shared = by_rows and n <= chunk
    if by_rows:
        length, unit, least = m, block.rows, LEAST_ROWS // (4 if shared else 1)
    else:
        length, unit, least = n, wide, LEAST_PANELS * wide
    most, least = (PARTS * threads, least) if threads > 1 else (1, length)
    step = -(-max(length // most, least) // unit) * unit or unit
    ends = [
        (at, min(at + step, length)) for at in range(0, length if m and n else 0, step)
    ]
    tiles = [(*e, 0, n, chunk) if by_rows else (0, m, *e, chunk) for e in ends]
    return Plan(tuple(tiles), max(k, 1) * chunk * size, shared)


class Workspace(threading.local):
    """
    Room for panels that a thread keeps; it grows to what was needed.

    `call` is the call whose panels it holds.
    """

    def __init__(self) -> None:
        self.room = np.empty(0, np.uint8)
        self.call: object = None

    def get(self, size: int) -> Any:
        """Return at least so many bytes."""
        if size > self.room.size:
            self.room = np.empty(size, np.uint8)
        return self.room


WORKSPACE = Workspace()


def over_panels(
    call: Run, problem: Problem, threads: int, block: Block, panels: Any = None
) -> Run:
    """
    Run a product over packed panels, tile by tile.

    `panels` is w packed before, for a kernel that packs nothing.
    """
    prelude, axis = prelude_of(problem.spec), int(problem.spec.x.view != "T")
    x_at = problem.spec.x.position

    def run(*args: Any) -> Any:
        out = args[-1]
        plan = tiles_of((*out.shape, args[x_at].shape[axis]), threads, block)
        if prelude is not None:
            args = (*args, *prelude(args))
        this = object()

        def pack(tile: tuple[int, ...]) -> None:
            fresh = not (plan.shared and WORKSPACE.call is this)
            call(*args, WORKSPACE.get(plan.panel_bytes), *tile, fresh)
            WORKSPACE.call = this

        def packed(tile: tuple[int, ...]) -> None:
            call(*args, panels, *tile, False)

        run_tiles(pack if panels is None else packed, plan.tiles, threads)
        return out

    return run


class BoundLater:
    """
    A run whose w is a constant: `bind` packs it once and returns the run to call.

    Called without that, it packs w at each call.
    """

    def __init__(self, call: Run, problem: Problem, threads: int, block: Block) -> None:
        self._parts = (call, problem, threads, block)

    def bind(self, args: Sequence[Any]) -> Run:
        """Pack the w among a call's arguments; later writes to it are not seen."""
        spec, block = self._parts[1].spec, self._parts[3]
        w = viewed_array(spec.w, args[spec.w.position])
        return over_panels(*self._parts, packed_by_numpy(w, block))

    def __call__(self, *args: Any) -> Any:
        """Pack, run and forget."""
        return self.bind(args)(*args)


def packed_by_numpy(w: Any, block: Block) -> Any:
    """Copy a (k, n) matrix into panels of a block's columns, padded with zeros."""
    k, n = w.shape
    wide = block.columns
    count = -(-n // wide)
    padded = np.zeros((k, count * wide), w.dtype)
    padded[:, :n] = w
    return np.ascontiguousarray(padded.reshape(k, count, wide).transpose(1, 0, 2))
