"""
Regions that a caller states: boxes over named axes, tried in order.

Together they must serve every point, and each must serve one that those before it do
not. Both are decided exactly: the bounds cut each axis into pieces inside which no
region begins or ends, so one value of each piece stands for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

__all__ = ["Bound", "Box", "BoxTable", "Number", "Place", "Word", "hole"]

Number = int | float
Word = str | bool
Place = Number | Word | None
"""A value on an axis; None is a word that no region names."""


@dataclass(frozen=True, slots=True)
class Bound:
    """
    What a box takes on one axis: `low` to `high`, both included, or one value.

    A `high` of None is unbounded; `equal` of None is no single value.
    """

    axis: str
    low: Number = 0
    high: Number | None = None
    equal: Word | Number | None = None

    def takes(self, value: Place) -> bool:
        """Say whether a value lies on the box's part of the axis."""
        if self.equal is not None:
            return value is not None and same(value, self.equal)
        if isinstance(value, (str, bool)) or value is None:
            return False
        return self.low <= value and (self.high is None or value <= self.high)


def same(value: Place, other: Place) -> bool:
    """Say whether two values are the same; True is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


@dataclass(frozen=True, slots=True)
class Box:
    """
    The bounds of a region; an axis without one is unbounded.

    `text` is the region as the caller wrote it and `payload` what it keeps without
    its bounds, both as JSON.
    """

    bounds: tuple[Bound, ...]
    text: str = "{}"
    payload: str = "{}"

    def takes(self, axis: str, value: Place) -> bool:
        """Say whether a value on an axis lies in the box."""
        return all(b.takes(value) for b in self.bounds if b.axis == axis)


@dataclass(frozen=True, slots=True)
class BoxTable:
    """The boxes of one name on one hardware: the first that takes a point serves."""

    fingerprint: str
    name: str
    axes: tuple[str, ...]
    boxes: tuple[Box, ...]
    code_version: str = ""
    made_utc: str = ""
    provenance: tuple[tuple[str, str], ...] = ()

    def find(self, point: tuple[tuple[str, Place], ...]) -> int | None:
        """Return the number of the first box that takes a point, or None."""
        for number, box in enumerate(self.boxes):
            if all(box.takes(axis, value) for axis, value in point):
                return number
        return None

    def words(self, axis: str) -> tuple[Word, ...]:
        """Return the words that boxes name on an axis; none on one of numbers."""
        named = (b.equal for box in self.boxes for b in box.bounds if b.axis == axis)
        return tuple(dict.fromkeys(w for w in named if isinstance(w, (str, bool))))


def hole(
    box: Box, others: Sequence[Box], axes: Sequence[str]
) -> tuple[tuple[str, Place], ...] | None:
    """Return a point that a box takes and none of the others does, or None."""
    places = [tuple(pieces(axis, [box, *others])) for axis in axes]

    @cache
    def search(depth: int, live: tuple[int, ...]) -> tuple[Place, ...] | None:
        if depth == len(axes):
            return None if live else ()
        axis = axes[depth]
        for value in places[depth]:
            if box.takes(axis, value):
                rest = tuple(n for n in live if others[n].takes(axis, value))
                found = search(depth + 1, rest)
                if found is not None:
                    return (value, *found)
        return None

    point = search(0, tuple(range(len(others))))
    return None if point is None else tuple(zip(axes, point, strict=True))


def pieces(axis: str, boxes: Sequence[Box]) -> Iterator[Place]:
    """
    Yield a value of each piece into which the bounds cut an axis.

    Whole bounds cut it into whole numbers: nothing lies between 10 and 11.
    """
    bounds = [b for box in boxes for b in box.bounds if b.axis == axis]
    words = [b.equal for b in bounds if isinstance(b.equal, (str, bool))]
    if words:
        yield from dict.fromkeys(words)
        yield None
        return
    lows = {0, *(b.low for b in bounds)}
    ends = {n for b in bounds for n in (b.high, b.equal) if isinstance(n, (int, float))}
    equals = {b.equal for b in bounds if isinstance(b.equal, (int, float))}
    if all(isinstance(n, int) for n in lows | ends):
        yield from sorted(lows | equals | {n + 1 for n in ends})
        return
    cuts = sorted(lows | ends)
    yield from cuts
    yield from ((low + high) / 2 for low, high in pairwise(cuts))
    yield cuts[-1] + 1
