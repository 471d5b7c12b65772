"""What is wrong with a caller's region is said with its number and its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise.api.caller_regions import boxes_of, checked_axes, point_of
from tilewise.errors import ArgumentError
from tilewise.model.box import Bound, BoxTable

AXES = ("n", "m")
COVERED = "is covered completely by those before it: put it before them or leave it out"
CATCH_ALL = "end with a catch-all, a region without bounds"


def reason(*regions: Any) -> str:
    """Return why regions are refused."""
    with pytest.raises(ArgumentError) as raised:
        boxes_of(regions, AXES)
    return str(raised.value)


def bounds(region: dict[str, Any]) -> tuple[Bound, ...]:
    """Return the bounds of a region that stands before a catch-all."""
    return boxes_of([region, {}], AXES)[0].bounds


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ({"n_max": 5}, Bound("n", 0, 5)),
        ({"n_min": 5}, Bound("n", 5)),
        ({"n_min": 2, "n_max": 5}, Bound("n", 2, 5)),
        ({"n_eq": 5}, Bound("n", equal=5)),
        ({"n_eq": "host"}, Bound("n", equal="host")),
        ({"n_eq": True}, Bound("n", equal=True)),
        ({"n_max": np.int64(5)}, Bound("n", 0, 5)),
        ({"n_max": np.float32(0.5)}, Bound("n", 0, 0.5)),
        ({"n_max": 5, "n_min": None, "n_eq": None}, Bound("n", 0, 5)),
    ],
)
def test_bounds_are_read(region: dict[str, Any], expected: Bound):
    """Upper, lower and single bounds, numbers of Python and NumPy, None for none."""
    assert (expected,) == bounds(region)


def test_unbounded_axis_has_no_bound():
    """None alone leaves the axis free."""
    assert () == boxes_of([{"n_max": None}], AXES)[0].bounds


def test_payload_is_what_bounds_nothing():
    """The region is kept as it was written, the payload without its bounds."""
    (box,) = boxes_of([{"n_max": None, "variant": "a", "block": np.int64(8)}], AXES)

    assert '{"variant": "a", "block": 8}' == box.payload
    assert '{"n_max": null, "variant": "a", "block": 8}' == box.text


@pytest.mark.parametrize(
    ("regions", "expected"),
    [
        (
            [{"n_max": 10}, {"n_max": 5}, {}],
            f"region 1 {COVERED}",
        ),
        (
            [{"n_max": 10}, {"n_min": 11, "n_max": 20}, {"n_min": 5, "n_max": 15}, {}],
            f"region 2 {COVERED}",
        ),
        (
            [{}, {}],
            f"region 1 {COVERED}",
        ),
        (
            [{"n_max": 10}],
            f"no region serves n=11, m=0: {CATCH_ALL}",
        ),
        (
            [{"n_eq": "host"}, {"n_eq": "device"}],
            f"no region serves n=any other word, m=0: {CATCH_ALL}",
        ),
        (
            [],
            f"no region serves n=0, m=0: {CATCH_ALL}",
        ),
        ([{"n_max": float("nan")}, {}], "region 0: n_max=nan is not a number"),
        (
            [{"n_max": float("inf")}, {}],
            "region 0: n_max=inf is infinite: None is unbounded",
        ),
        ([{"n_min": -1}, {}], "region 0: n_min=-1 is negative"),
        ([{"n_max": "5"}, {}], "region 0: n_max='5' is a str, not a number"),
        ([{"n_max": True}, {}], "region 0: n_max=True is a bool, not a number"),
        ([{"n_eq": [1]}, {}], "region 0: n_eq=[1] is a list, not a number"),
        ([{"n_min": 5, "n_max": 4}, {}], "region 0: n_max=4 is below n_min=5"),
        (
            [{"n_eq": 5, "n_max": 9}, {}],
            "region 0: n_eq=5 stands beside another bound of n",
        ),
        (
            [{"n_eq": "a"}, {"n_max": 9}, {}],
            "region 1: n has both words and numbers",
        ),
        (
            [{"k_max": 5}, {}],
            "region 0: 'k_max' bounds no axis; the axes are n, m",
        ),
        ([5], "region 0 is a int, not a mapping"),
        ([{5: 1}], "region 0: the key 5 is not text"),
        (
            [{"block": {1, 2}}],
            "region 0 keeps what JSON can't: {1, 2} of type set",
        ),
        (
            [{"wall_ms": float("nan")}],
            "region 0 keeps what JSON can't: Out of range float",
        ),
    ],
)
def test_bad_regions_are_refused(regions: list[Any], expected: str):
    """Each refusal says which region, which bound and what is wrong."""
    assert reason(*regions).startswith(expected)


def test_regions_are_a_list():
    """One region alone is no list of regions."""
    with pytest.raises(ArgumentError, match="regions is a dict, not a list"):
        boxes_of({"n_max": 5}, AXES)


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ([], "axes=[]: at least one, and each once"),
        (["n", "n"], "axes=['n', 'n']: at least one, and each once"),
        (["n m"], "'n m' can't name an axis: use another identifier"),
        ([5], "5 can't name an axis: use another identifier"),
        (["code_version"], "'code_version' can't name an axis: use another identifier"),
    ],
)
def test_bad_axes_are_refused(axes: list[Any], expected: str):
    """Axes are different identifiers that a lookup can take by keyword."""
    with pytest.raises(ArgumentError) as raised:
        checked_axes(axes)

    assert expected == str(raised.value)


def test_one_axis_may_stand_alone():
    """A single name needs no list."""
    assert ("n",) == checked_axes("n")


WHERE = [{"n_max": 5, "m_eq": "host"}, {"m_eq": "device"}, {}]
TABLE = BoxTable("here", "hist", AXES, boxes_of(WHERE, AXES))


def test_point_is_in_the_order_of_the_axes():
    """Keywords may come in any order, numbers as NumPy's."""
    expected = (("n", 7), ("m", "host"))

    assert expected == point_of(TABLE, {"m": "host", "n": np.int32(7)})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"n": 1}, "'hist' needs a value for m"),
        ({}, "'hist' needs a value for n, m"),
        ({"n": 1, "m": "host", "k": 2}, "'hist' has no axis 'k'; the axes are n, m"),
        ({"n": float("nan"), "m": "host"}, "n=nan is not a number"),
        ({"n": np.float32("nan"), "m": "host"}, "n=np.float32(nan) is not a number"),
        ({"n": -1, "m": "host"}, "n=-1 is negative"),
        ({"n": "5", "m": "host"}, "n='5' is a str, not a number"),
        ({"n": None, "m": "host"}, "n=None is a NoneType, not a number"),
        (
            {"n": 1, "m": 2},
            "m=2 is no word as the regions have: 'host', 'device'",
        ),
    ],
)
def test_bad_points_are_refused(values: dict[str, Any], expected: str):
    """A missing, unknown, NaN, negative or wrong value never matches by silence."""
    with pytest.raises(ArgumentError) as raised:
        point_of(TABLE, values)

    assert expected == str(raised.value)


def test_misspelt_axis_is_told_the_right_one():
    """What was probably meant is named."""
    table = BoxTable("here", "hist", ("n_samples",), ())

    with pytest.raises(ArgumentError, match="did you mean 'n_samples'"):
        point_of(table, {"n_sample": 1})


def test_free_axis_takes_words_and_numbers():
    """An axis that no region bounds takes whatever comes."""
    table = BoxTable("here", "hist", ("n",), boxes_of([{}], ("n",)))

    assert [(("n", "host"),), (("n", 5),)] == [
        point_of(table, {"n": value}) for value in ("host", 5)
    ]
