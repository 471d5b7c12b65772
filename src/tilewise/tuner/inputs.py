"""
Arguments for verification: the caller's layouts, guarded, with telling values.

An array is laid out anew with the caller's strides and alignment; all bytes around
and between its elements are 0xFF, which reads as NaN, and are compared afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "ALIGNMENT",
    "EPILOGUE",
    "GUARD_BYTES",
    "Array",
    "Guarded",
    "guarded",
    "is_plain",
    "makers",
]

Array = np.ndarray[Any, np.dtype[Any]]

GUARD_BYTES = 4096
"""Bytes before and after an array: 16 rows of 64 float32 numbers."""

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector of today's CPUs."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """An array inside a larger buffer of bytes, and the bytes as they should stay."""

    array: Array
    buffer: Array
    before: Array | None = None

    def sealed(self) -> Guarded:
        """Return the same with the present bytes noted as those that should stay."""
        return Guarded(self.array, self.buffer, self.buffer.copy())

    @property
    def changed(self) -> bool:
        """Whether any byte, also one between the elements, is another now."""
        return self.before is None or not np.array_equal(self.buffer, self.before)


def is_plain(arg: Any) -> bool:
    """Say whether an argument is an array whose bytes can be laid out anew."""
    return type(arg) is np.ndarray and not arg.dtype.hasobject


def guarded(like: Array, values: Array | None = None, fill: int = 0xFF) -> Guarded:
    """
    Lay out an array as `like` is: shape, strides, dtype and alignment.

    It is filled with `values`, or left as bytes `fill` where there are none.
    """
    reach = [
        (size - 1) * step for size, step in zip(like.shape, like.strides, strict=True)
    ]
    below, above = (sum(f(r, 0) for r in reach) for f in (min, max))
    below, above = (below, above + like.itemsize) if like.size else (0, 0)
    extent = above - below
    buffer = np.empty(extent + 2 * GUARD_BYTES + 2 * ALIGNMENT, np.uint8)
    start = GUARD_BYTES + (-buffer.ctypes.data - GUARD_BYTES) % ALIGNMENT
    start += (like.ctypes.data + below) % ALIGNMENT if like.size else 0
    steps = like.strides if like.size else None
    array: Array = np.ndarray(like.shape, like.dtype, buffer.data, start - below, steps)
    if values is None or extent != array.nbytes:
        buffer.fill(fill)
    else:
        buffer[:start] = buffer[start + extent :] = fill
    if values is not None:
        array[...] = values
    return Guarded(array, buffer)


Maker = Callable[[np.random.Generator, tuple[int, ...], int], Array]


def normal(random: np.random.Generator, shape: tuple[int, ...], depth: int) -> Array:
    """Make normal numbers whose dot products are of size 1."""
    values: Array = random.standard_normal(shape) * depth**-0.25
    return values


def positive(random: np.random.Generator, shape: tuple[int, ...], depth: int) -> Array:
    """Make positive numbers: no cancellation, so that each relative error shows."""
    values: Array = random.uniform(0.5, 1.5, shape) * depth**-0.5
    return values


def sparse(random: np.random.Generator, shape: tuple[int, ...], depth: int) -> Array:
    """
    Make mostly zeros, about eight products in each sum not.

    Few roundings leave a small bound at any k, so that a lowered precision (TF32,
    half) shows however long the sum is.
    """
    values = random.uniform(0.5, 2, shape) * random.choice([-1, 1], shape)
    kept = random.random(shape) < min(1.0, (8 / depth) ** 0.5)
    return np.where(kept, values, 0.0) / 2


def cancelling(
    random: np.random.Generator, shape: tuple[int, ...], depth: int
) -> Array:
    """
    Make sums that cancel to about a thousandth, along whichever axis they run.

    Neighbours along the last axis differ in sign, those along any other hardly.
    """
    halves = tuple(-(-size // 2) for size in shape)
    values: Array = random.standard_normal(halves) * depth**-0.25
    for axis, size in enumerate(shape):
        values = np.repeat(values, 2, axis).take(range(size), axis)
    signs = np.where(np.arange(shape[-1]) % 2, -1, 1) if shape else 1
    values *= signs * (1 + 1e-3 * random.standard_normal(shape))
    return values


def special(random: np.random.Generator, shape: tuple[int, ...], depth: int) -> Array:
    """
    Sprinkle NaN, infinities, zeros of both signs and subnormals over normal numbers.

    A large array holds one NaN and one infinity of each sign, a small one a single
    of the three, so that most of the result stays finite.
    """
    values = normal(random, shape, depth)
    flat = values.reshape(-1)
    few = random.random(flat.size)
    flat[few < 0.05] = 0.0
    flat[few < 0.025] = -0.0
    flat[few > 0.95] = 1e-40  # subnormal in float32
    flat[few > 0.975] = 1e-310
    odd = random.permutation([np.nan, np.inf, -np.inf])
    places = random.permutation(flat.size)[: 3 if flat.size >= 256 else 1]
    flat[places] = odd[: places.size]
    return flat.reshape(shape)


MAKERS: Mapping[str, Maker] = {
    "sparse": sparse,
    "special values": special,
    "random": normal,
    "positive": positive,
    "cancelling": cancelling,
}
"""By what the trial is called, the most telling first: large problems stop early."""

LARGE = ((1 << 32, 0), (1 << 30, 1), (1 << 27, 2), (1 << 24, 3))
"""Multiplications from which only the first so many are made: each costs a product."""

EPILOGUE = 256
"""Multiplications that the work on one element costs, of the result or an argument."""


def makers(depth: int, elements: int, given: int = 0) -> Sequence[tuple[str, Maker]]:
    """
    Return the trials that a problem is worth; none without dot products.

    `elements` are those of the result, `given` those of all arguments.
    """
    work = depth * elements + EPILOGUE * (elements + given)
    few = next((few for least, few in LARGE if work >= least), len(MAKERS))
    return tuple(MAKERS.items())[:few] if depth else ()
