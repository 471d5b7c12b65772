"""Which variant serves which region, and on what evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import product

from tilewise.model.measurement import Candidate, Provenance, Timing
from tilewise.model.variant import Variant

__all__ = [
    "Decision",
    "DecisionTable",
    "Finder",
    "MeasurementRow",
    "Point",
    "Range",
    "Region",
    "TableKey",
    "cell",
    "common",
    "enclosing",
    "is_inside",
]


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from `low` to `high`, both included; None is unbounded."""

    axis: str
    low: int = 0
    high: int | None = None

    def __contains__(self, value: object) -> bool:
        """Say whether an integer lies in the range."""
        return (
            isinstance(value, int)
            and self.low <= value
            and (self.high is None or value <= self.high)
        )

    def __str__(self) -> str:
        """Write the range as `16 <= m <= 31`."""
        if self.high is None:
            return f"{self.low} <= {self.axis}" if self.low else f"any {self.axis}"
        if self.low == self.high:
            return f"{self.axis} = {self.low}"
        return f"{self.low} <= {self.axis} <= {self.high}"


Region = tuple[Range, ...]
Point = tuple[tuple[str, int], ...]


def least(one: int | None, other: int | None) -> int | None:
    """Return the lower of two upper ends; None is unbounded."""
    return min((end for end in (one, other) if end is not None), default=None)


def common(one: Region, other: Region) -> Region:
    """Return what two boxes with the same axes share."""
    return tuple(
        Range(a.axis, max(a.low, b.low), least(a.high, b.high))
        for a, b in zip(one, other, strict=True)
    )


def is_inside(inner: Region, outer: Region) -> bool:
    """Say whether a box lies in another with the same axes."""
    return common(inner, outer) == inner


def enclosing(regions: Sequence[Region]) -> Region:
    """Return the smallest box around some with the same axes."""
    found = []
    for spans in zip(*regions, strict=True):
        ends = [span.high for span in spans]
        high = None if None in ends else max(end for end in ends if end is not None)
        found.append(Range(spans[0].axis, min(span.low for span in spans), high))
    return tuple(found)


def cell(point: Point) -> Region:
    """
    Return the log2 cell around a point: the region of a lazily tuned decision.

    An axis of size v belongs to [2^a, 2^(a+1) - 1] with a = floor(log2 v); zero is
    a cell of its own. The same rule serves tuning and applying.
    """
    ranges = []
    for axis, size in point:
        low = 1 << (size.bit_length() - 1) if size else 0
        ranges.append(Range(axis, low, 2 * low - 1 if size else 0))
    return tuple(ranges)


@dataclass(frozen=True, slots=True)
class TableKey:
    """
    Names one decision table: the regions of one kernel on one hardware.

    `kernel` is the spec's digest, or name and code version of an axes kernel;
    `table` the digest of the combination of dtypes, operand kinds, layouts,
    residency, bound constants and precision. `residency`, the `dtype` of the first
    factor ("" where the kernel makes its arguments) and `label`, which is all of it
    for people, are parts of that and name nothing further.
    """

    fingerprint: str
    kernel: str
    table: str
    residency: str = field(compare=False)
    dtype: str = field(compare=False)
    label: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """
    A region's winner with its evidence.

    `point` is the measured problem; `candidates` every variant that was looked at
    with figures or the reason why not; `ties` those that could not be told from
    the winner; `regret` the expected relative loss inside the region (or None
    where it is not known). `contended` marks figures taken under load. `origin` is
    "cell", "sweep" (a measured region of one) or "extrapolated" (beyond those).
    `source` is the shipped bundle that it was read from, "" for what users decided.
    """

    region: Region
    variant: Variant
    point: Point
    candidates: tuple[Candidate, ...]
    ties: tuple[Variant, ...] = ()
    regret: float | None = None
    contended: bool = False
    origin: str = "cell"
    made_utc: str = ""
    provenance: Provenance = ()
    source: str = ""

    def covers(self, point: Point) -> bool:
        """Say whether a point with the same axes lies in the region."""
        return all(
            axis == span.axis and size in span
            for (axis, size), span in zip(point, self.region, strict=True)
        )

    @property
    def grade(self) -> str:
        """How sure it is: "measured" or "extrapolated"."""
        return "extrapolated" if self.origin == "extrapolated" else "measured"

    def timing(self, variant: Variant) -> Timing | None:
        """Return a variant's figures, or None where it has none."""
        found = (c.timing for c in self.candidates if c.variant == variant)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """
    All decisions for one key: the first that covers a point serves.

    `place` is where the kernel is written, "module:name" or "file.py:name".
    """

    key: TableKey
    kernel_name: str
    decisions: tuple[Decision, ...] = ()
    place: str = ""

    def find(self, point: Point) -> Decision | None:
        """Return the first decision whose region covers the point."""
        return next((d for d in self.decisions if d.covers(point)), None)


SPREAD = 512
"""Log2 cells over which a region is spread out in an index; larger ones are not."""


class Finder:
    """
    Finds the first decision that covers a point without asking all of them.

    Regions stand under the log2 cells that they touch, so that a lookup costs the
    same in a table of one and of a thousand cells.
    """

    __slots__ = ("_cells", "_decisions", "_large")

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self._decisions = tuple(decisions)
        self._cells: dict[tuple[int, ...], list[int]] = {}
        self._large: list[int] = []
        for number, decision in enumerate(self._decisions):
            spans = [touched(span) for span in decision.region]
            if None in spans or math.prod(len(s) for s in spans if s) > SPREAD:
                self._large.append(number)
                continue
            for bits in product(*(s for s in spans if s is not None)):
                self._cells.setdefault(bits, []).append(number)

    def find(self, point: Point) -> Decision | None:
        """Return the first decision whose region covers the point."""
        bits = tuple([size.bit_length() for _, size in point])
        near, decisions = self._cells.get(bits, ()), self._decisions
        for number in merge(near, self._large) if self._large else near:
            if decisions[number].covers(point):
                return decisions[number]
        return None


def touched(span: Range) -> range | None:
    """Return the log2 cells that a range touches, by bit length; None for no end."""
    if span.high is None:
        return None
    return range(span.low.bit_length(), span.high.bit_length() + 1)


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """
    One candidate's figures on one problem, never changed once written.

    `writer` names the run that measured, so that two runs never share a row.
    """

    key: TableKey
    point: Point
    candidate: Candidate
    provenance: Provenance = ()
    writer: str = ""
    made_utc: str = ""
