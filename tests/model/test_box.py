"""Boxes in order serve every point, and each serves one of its own."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewise.model.box import Bound, Box, BoxTable, hole

ALL = Box(())


def box(*bounds: Bound) -> Box:
    """Return a box of bounds."""
    return Box(bounds)


def up_to(high: float, axis: str = "n") -> Box:
    """Return the box of all values up to one."""
    return box(Bound(axis, high=high))


@pytest.mark.parametrize(
    ("bound", "value", "expected"),
    [
        (Bound("n", 2, 4), 2, True),
        (Bound("n", 2, 4), 4, True),
        (Bound("n", 2, 4), 1.9, False),
        (Bound("n", 2, 4), 4.1, False),
        (Bound("n", 2), 10**9, True),
        (Bound("n", equal=3), 3, True),
        (Bound("n", equal=3), 4, False),
        (Bound("n", equal="host"), "host", True),
        (Bound("n", equal="host"), "device", False),
        (Bound("n", equal="host"), None, False),
        (Bound("n", equal=True), 1, False),
        (Bound("n", equal=1), True, False),
        (Bound("n", 0, 4), "host", False),
    ],
)
def test_bound_takes(bound: Bound, value: object, expected: bool):
    """Both ends are included, words are equal or not, and True is not 1."""
    assert expected is bound.takes(value)  # type: ignore[arg-type]


def test_first_box_serves():
    """Order resolves overlap."""
    table = BoxTable("here", "f", ("n",), (up_to(10), up_to(20), ALL))

    assert [0, 1, 2] == [table.find((("n", n),)) for n in (10, 11, 21)]


def test_no_box_serves_a_gap():
    """A point that no box takes has no number."""
    table = BoxTable("here", "f", ("n",), (up_to(10),))

    assert None is table.find((("n", 11),))


def test_words_are_those_the_boxes_name():
    """An axis of numbers has none."""
    boxes = (
        box(Bound("at", equal="b"), Bound("n", equal=1)),
        box(Bound("at", equal="a")),
    )
    table = BoxTable("here", "f", ("n", "at"), boxes)

    assert [(), ("b", "a")] == [table.words(axis) for axis in ("n", "at")]


@pytest.mark.parametrize(
    ("one", "others", "expected"),
    [
        (up_to(5), [up_to(10)], True),
        (up_to(10), [up_to(5)], False),
        (ALL, [up_to(10), box(Bound("n", 11))], True),
        (ALL, [up_to(10), box(Bound("n", 12))], False),
        (ALL, [up_to(10.0), box(Bound("n", 11.0))], False),
        (ALL, [up_to(10.5), box(Bound("n", 10.5))], True),
        (ALL, [box(Bound("n", equal=0)), box(Bound("n", 1))], True),
        (ALL, [box(Bound("n", equal="a")), box(Bound("n", equal="b"))], False),
        (box(Bound("n", equal="a")), [box(Bound("n", equal="a"))], True),
        (ALL, [], False),
        (up_to(5), [up_to(5, "m")], False),
    ],
)
def test_covering(one: Box, others: list[Box], expected: bool):
    """Whole bounds leave nothing between 10 and 11, others do, words leave others."""
    assert expected is (hole(one, others, ("n", "m")) is None)


def test_hole_is_a_point():
    """A gap in a plane is named on all axes."""
    others = [up_to(10), up_to(20, "m")]

    assert (("n", 11), ("m", 21)) == hole(ALL, others, ("n", "m"))


spans = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted)
grids = st.tuples(spans, spans).map(
    lambda pair: box(Bound("n", *pair[0]), Bound("m", *pair[1]))
)
GRID = tuple(itertools.product(range(7), range(7)))


@given(grids, st.lists(grids, max_size=6))
def test_covering_is_what_counting_finds(one: Box, others: list[Box]):
    """On a small grid, every point can be tried."""

    def takes(each: Box, point: tuple[int, int]) -> bool:
        return each.takes("n", point[0]) and each.takes("m", point[1])

    expected = all(any(takes(o, p) for o in others) for p in GRID if takes(one, p))

    assert expected is (hole(one, others, ("n", "m")) is None)
