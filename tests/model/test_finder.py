"""The index of a table finds what a look at all its decisions would."""

from __future__ import annotations

import random

from tilewise.model.decision import (
    Decision,
    DecisionTable,
    Finder,
    Point,
    Range,
    Region,
    TableKey,
    cell,
)
from tilewise.model.variant import Variant

KEY = TableKey("cpu", "kernel", "table", "host", "float32")


def decision(region: Region, number: int) -> Decision:
    """Return a decision for a region, known by its number."""
    return Decision(region, Variant("test", str(number)), (), ())


def drawn(draw: random.Random) -> Region:
    """Draw a cell, a box, or a box without an upper end, sometimes a huge one."""
    if draw.random() < 0.4:
        return cell(point(draw))
    ranges = []
    for axis in "mnk":
        low = draw.choice([0, 1, 2, 3, 16, 100, 1000])
        high = draw.choice([low, 2 * low, low + 5, 1 << 40, None])
        ranges.append(Range(axis, low, high))
    return tuple(ranges)


def point(draw: random.Random) -> Point:
    """Draw sizes around the ends of regions."""
    return tuple((a, draw.choice([0, 1, 2, 3, 4, 15, 16, 17, 99, 1024])) for a in "mnk")


def test_it_finds_the_first_that_covers() -> None:
    """Whatever overlaps, at each of many points, in two hundred drawn tables."""
    found = 0
    for seed in range(200):
        draw = random.Random(seed)
        regions = [drawn(draw) for _ in range(draw.randrange(1, 40))]
        decisions = tuple(decision(r, n) for n, r in enumerate(regions))
        table, finder = DecisionTable(KEY, "kernel", decisions), Finder(decisions)
        for _ in range(50):
            at = point(draw)
            assert table.find(at) is finder.find(at)
            found += finder.find(at) is not None
    assert found > 1000


def test_an_empty_table_serves_nothing() -> None:
    """There is no decision to find."""
    assert Finder(()).find((("m", 1),)) is None


def test_other_axes_are_covered_by_nothing() -> None:
    """A region of m serves no point of another axis of that size."""
    finder = Finder([decision((Range("m", 1, 1),), 0)])
    assert finder.find((("n", 1),)) is None
    assert finder.find((("m", 1),)) is not None
