"""Results that functions return: what counts as right, and the fault's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.tuner.contestants import case, dense
from tilewise.tuner.returned import Returned, returned
from tilewise.tuner.verify import verify


def judged(actual: Any, wanted: Any, **changes: Any) -> str:
    """Return the fault of a result in words, or ""."""
    options = {"relative": None, "absolute": 0.0, "accepts": None, "elements": 100}
    fault = Returned(wanted, **options | changes).judge(actual)[1]
    return "" if fault is None else str(fault)


@pytest.mark.parametrize(
    "value",
    [3, 2.5, np.float32(1), "text", None, np.arange(6).reshape(2, 3),
     (1, np.ones(3)), {"a": [np.zeros(2), 1]}, np.array([np.nan, np.inf, -0.0]),
     np.empty((0, 3)), np.array(["a"]), 1 + 2j, np.array(["a", None, 2], object),
     np.array(["2020-01-01", "NaT"], "M8[s]")],
    ids=range(14),
)  # fmt: skip
def test_a_result_is_equal_to_itself(value: Any) -> None:
    """Numbers, arrays, texts and their tuples, lists and mappings are compared."""
    assert "" == judged(value, value)


@pytest.mark.parametrize(
    ("actual", "wanted", "told"),
    [
        (4, 3, "4 where 3 is right"),
        (3.0, 3, "a float where an integer is right"),
        (np.ones(3), np.ones(4), "float64 (3,) on the host where float64 (4,)"),
        (np.ones(3, "f4"), np.ones(3), "float32 (3,) on the host where float64 (3,)"),
        (np.array([1, 5]), np.array([1, 2]), "at [1]: 5 where 2 is right"),
        (np.array([np.nan]), np.array([1.0]), "at [0]: nan where 1.0 is right"),
        (np.array([1.0]), np.array([np.inf]), "at [0]: 1.0 where inf is right"),
        ((1, 2), (1, 3), "result[1]: 2 where 3 is right"),
        ((1,), (1, 2), "an object tuple of 1 where an object tuple of 2"),
        ({"a": 1}, {"a": 2}, "result['a']: 1 where 2 is right"),
        ("a", "b", "an object str of 1 where"),
        (None, np.ones(2), "an object NoneType where float64 (2,)"),
        (np.array([1, 2], object), np.array([1, 3], object), "object (2,) on the"),
        (np.array([0], "M8[s]"), np.array(["NaT"], "M8[s]"), "where NaT is right"),
    ],
    ids=range(14),
)
def test_a_fault_says_what_and_where(actual: Any, wanted: Any, told: str) -> None:
    """The words name the place, the value and what is right."""
    assert told in judged(actual, wanted)


def test_floats_may_differ_by_roundings() -> None:
    """Without a tolerance 4 + 4 sqrt(N) roundings are free, for each element."""
    wanted = np.array([1.0, 1e-9])
    unit = np.finfo(float).eps / 2
    assert "" == judged(wanted * (1 + 40 * unit), wanted)
    assert judged(wanted * (1 + 60 * unit), wanted)


def test_a_tolerance_replaces_the_roundings() -> None:
    """Relative and absolute parts add up, as np.isclose has them."""
    wanted = np.array([100.0])
    assert "" == judged(wanted + 1.4, wanted, relative=0.01, absolute=0.5)
    assert judged(wanted + 1.6, wanted, relative=0.01, absolute=0.5)


def test_a_comparison_has_the_last_word() -> None:
    """A callable tolerance is given the whole result."""
    assert "" == judged((1, 2), (5, 6), accepts=lambda a, b: len(a) == len(b))
    assert "accepts" in judged((1,), (5, 6), accepts=lambda a, b: len(a) == len(b))


def test_the_reference_says_what_is_right() -> None:
    """The result of the function at the caller's arguments is the oracle."""
    posed = case(fills=False)
    np.testing.assert_array_equal(returned(posed).value, posed.reference(*posed.args))


def test_what_a_function_writes_is_not_the_callers() -> None:
    """A function that writes to an argument writes to a copy while it is measured."""

    def counting(x: Any, w: Any, b: Any) -> Any:
        b += 1
        return b.copy()

    posed = case(fills=False)
    before = posed.args[2].copy()
    returned(replace(posed, reference=counting))
    np.testing.assert_array_equal(before, posed.args[2])


BUFFER = np.zeros((9, 6), np.float32)


def reuser(x: Any, w: Any, b: Any) -> Any:
    """Return the same array at each call."""
    return np.maximum(x @ w + b, 0, out=BUFFER)


def spoiler(x: Any, w: Any, b: Any) -> Any:
    """Write to an argument after it was used."""
    found = dense(x, w, b)
    b[0] = 5
    return found


def drifter(x: Any, w: Any, b: Any, seen: list[int] = []) -> Any:  # noqa: B006
    """Be right at the first call only."""
    seen.append(1)
    return dense(x, w, b) + len(seen) - 1


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (reuser, "returns the same memory at each call"),
        (spoiler, "changes argument 3"),
        (drifter, "at ["),
    ],
    ids=("reuser", "spoiler", "drifter"),
)
def test_what_a_returned_array_hides_is_found(run: Any, told: str) -> None:
    """A variant is called twice: memory used again and drift are faults."""
    verdict = verify(run, case(fills=False))
    assert "wrong" == verdict.status
    assert told in verdict.reason


def first(x: Any, w: Any, b: Any) -> Any:
    """Return part of an argument."""
    return x[:1]


def first_copied(x: Any, w: Any, b: Any) -> Any:
    """Return a copy of it."""
    return x[:1].copy()


def test_an_argument_is_returned_only_where_the_function_does() -> None:
    """Who writes to a result that should be new would write to the argument."""
    verdict = verify(first, case(first_copied, fills=False))
    assert ("wrong", "returns memory of argument 1 (your arguments)") == (
        verdict.status,
        verdict.reason,
    )
    assert verify(first, case(first, fills=False)).ok
