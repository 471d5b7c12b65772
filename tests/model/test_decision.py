"""Regions: one rule of rounding, and boxes that are cut and joined."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tilewise.model.decision import (
    Decision,
    Range,
    Region,
    TableKey,
    cell,
    common,
    enclosing,
    is_inside,
)
from tilewise.model.variant import Variant

WINNER = Variant("cpu", "small")


def box(*spans: tuple[int, int | None]) -> Region:
    """Return a box over a, b, ..."""
    return tuple(Range(axis, *span) for axis, span in zip("abc", spans, strict=False))


def test_tuning_and_applying_round_alike() -> None:
    """Every size lies in the cell of its own, and in that of no size elsewhere."""
    cells = [cell((("m", m),)) for m in range(5000)]
    for m, region in enumerate(cells):
        assert Decision(region, WINNER, (("m", m),), ()).covers((("m", m),))
    different = list(dict.fromkeys(cells))
    ends = [(one[0].high, other[0].low) for one, other in pairwise(different)]
    assert all(high is not None and high + 1 == low for high, low in ends)


def test_a_table_whose_label_was_worded_otherwise_is_the_same() -> None:
    """The texts for people, which may change between versions, name no table."""
    old = TableKey("cpu", "kernel", "table", "host", "float32", "x (m,k), w (k,n)")
    new = replace(old, label="x is (m, k) and w (k, n)")
    assert {old: "decided"}[new] == "decided"


def test_a_cell_is_an_octave_of_each_axis() -> None:
    """Zero is a cell of its own."""
    assert "m = 0, n = 1, 64 <= k <= 127" == ", ".join(
        map(str, cell((("m", 0), ("n", 1), ("k", 100))))
    )


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (box((1, 9)), box((4, 20)), box((4, 9))),
        (box((1, None)), box((4, 20)), box((4, 20))),
        (box((0, None)), box((0, None)), box((0, None))),
        (box((1, 9), (2, 2)), box((3, 5), (0, None)), box((3, 5), (2, 2))),
    ],
    ids=("overlap", "open", "all", "plane"),
)
def test_what_two_boxes_share(one: Region, other: Region, shared: Region) -> None:
    """It lies in both."""
    assert shared == common(one, other) == common(other, one)
    assert is_inside(shared, one)
    assert is_inside(shared, other)


def test_a_box_that_reaches_out_is_not_inside() -> None:
    """Neither at an end nor where the other is bounded."""
    assert not is_inside(box((1, 9)), box((2, 9)))
    assert not is_inside(box((2, None)), box((2, 9)))


def test_the_box_around_boxes() -> None:
    """From the least to the largest size; one that is open stays open."""
    assert box((1, 20), (2, None)) == enclosing(
        [box((1, 9), (2, 3)), box((4, 20), (2, None))]
    )
