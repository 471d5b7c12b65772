"""Spots judge large results: nothing wrong passes, nothing right is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewise.tuner import spots
from tilewise.tuner.contest import Case
from tilewise.tuner.spots import Spots, expect_spots

SHAPE = (400, 300, 50)


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 400 x 300 be large."""
    monkeypatch.setattr(spots, "LARGE", 1)
    monkeypatch.setattr(spots, "COLUMNS", 64)


def relu(x: Any, w: Any, b: Any) -> Any:
    """Be a reference."""
    return np.maximum(x @ w + b, 0)


def inputs(seed: int = 0, dtype: str = "float32") -> list[Any]:
    """Return x, w, b."""
    random = np.random.default_rng(seed)
    m, n, k = SHAPE
    shapes = (m, k), (k, n), (n,)
    return [random.standard_normal(s).astype(dtype) for s in shapes]


def part(args: Sequence[Any], rows: Any, columns: Any) -> tuple[Any, ...]:
    """Take rows of the first argument and columns of the others."""
    return (args[0][rows], *(arg[..., columns] for arg in args[1:]))


def case_of(
    args: Sequence[Any], function: Callable[..., Any] = relu, tolerance: Any = None
) -> Case:
    """Put a function at arguments that have parts."""
    with np.errstate(all="ignore"):
        result = np.asarray(function(*args))
    return Case(
        tuple(args), function, None, result.shape, result.dtype, SHAPE[2],
        tolerance=tolerance, part=part,
    )  # fmt: skip


def expected(
    args: Sequence[Any], function: Callable[..., Any] = relu, likely: bool = False
) -> Spots:
    """Return what is right, which must be told by spots."""
    found = expect_spots(case_of(args, function), args, likely)
    assert found is not None
    return found


def exact(function: Callable[..., Any], args: Sequence[Any], dtype: str) -> Any:
    """Return the result of a wider evaluation."""
    return function(*(a.astype(np.longdouble) for a in args)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [relu, lambda x, w, b: np.floor(x @ w + b), lambda x, w, b: b / (x @ w)],
    ids=["relu", "steps", "poles"],
)
def test_what_is_right_is_right(function: Any, dtype: str) -> None:
    """Other roundings pass, also at steps and near poles in rows not looked at."""
    args = inputs(dtype=dtype)
    right = expected(args, function)
    for result in (function(*args), exact(function, args, dtype)):
        assert right.judge(result)[1] is None


@settings(max_examples=60, deadline=None)
@given(
    row=st.integers(0, SHAPE[0] - 1), column=st.integers(0, SHAPE[1] - 1),
    change=st.sampled_from([2e-3, -2e-3, 1.0, np.nan, np.inf, -np.inf]),
)  # fmt: skip
def test_one_wrong_element_is_found(row: int, column: int, change: float) -> None:
    """Wherever it is, and it is named by its place in the whole result."""
    args = inputs()
    result = relu(*args)
    result[row, column] += np.float32(change)
    error, fault = expected(args).judge(result)
    assert fault is not None
    assert (row, column) == fault.index
    assert error > 1


def test_a_lower_precision_in_some_rows_is_found() -> None:
    """Rows computed from rounded factors are off by a thousandth."""
    args = inputs(3)
    result = relu(*args)
    rounded = args[0].astype("f2").astype("f4")
    result[150:180] = relu(rounded[150:180], *args[1:])
    found = expected(args, likely=True).judge(result)[1]
    assert found is not None
    assert 150 <= found.index[0] < 180


def test_rows_of_another_size_are_right() -> None:
    """A few rows a million times larger are off by more than any row looked at."""
    args = inputs()
    args[0][[75, 77, 203]] *= 1e6
    right = expected(args)
    result = exact(relu, args, "float32")
    assert 77 in right.place[0]
    assert right.judge(result)[1] is None
    result[100, 7] += 2e-3
    assert right.judge(result)[1] is not None


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_wrong_in_small_rows_or_columns_is_found(axis: int) -> None:
    """Half of them are a million times smaller than the others."""
    x, w, b = inputs()
    if axis == 0:
        x[1::2] *= 1e-6
    else:
        w[:, 1::2] *= 1e-6
    args = [x, w, 0 * b]
    right = expected(args)
    result = exact(relu, args, "float32")
    assert right.judge(result)[1] is None
    odd = [
        np.setdiff1d(np.arange(1, n, 2), p)
        for n, p in zip(SHAPE, right.place, strict=False)
    ]
    large = np.argmax(np.abs(result[np.ix_(*odd)]))
    row, column = np.unravel_index(large, [len(places) for places in odd])
    result[odd[0][row], odd[1][column]] *= 1.01
    assert right.judge(result)[1] is not None


def test_special_values_are_compared() -> None:
    """NaN and infinities stand where NumPy has them, and nowhere else."""
    args = inputs()
    args[0][100, 3], args[0][101, 4] = np.nan, np.inf
    right = expected(args, lambda x, w, b: x @ w + b)
    result = right.plain.copy()
    assert right.judge(result)[1] is None
    for place, value in (((100, 2), 0.0), ((101, 2), -result[101, 2])):
        changed = result.copy()
        changed[place] = value
        assert right.judge(changed)[1] is not None


def test_comparisons_are_judged() -> None:
    """A result of bools: another answer where the product is not near the step."""
    args = inputs()
    right = expected(args, lambda x, w, b: (x @ w) > b)
    result = (args[0] @ args[1]) > args[2]
    assert right.judge(result)[1] is None
    result[90] ^= True
    assert right.judge(result)[1] is not None


def test_a_function_that_looks_at_its_shape_has_no_parts() -> None:
    """Its value for a part is not that part of its value."""
    args = inputs()
    assert (
        expect_spots(case_of(args, lambda x, w, b: x @ w / len(x)), args, False) is None
    )


def test_a_function_of_its_shape_has_no_parts_where_all_rows_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample is right there, but a closer look at fewer rows would not be."""
    monkeypatch.setattr(spots, "ROWS", 2000)
    args = inputs()
    assert (
        expect_spots(case_of(args, lambda x, w, b: x @ w / len(x)), args, False) is None
    )


def test_a_tolerance_that_is_a_function_sees_the_whole() -> None:
    """It may compare norms."""
    args = inputs()
    posed = case_of(args, tolerance=lambda actual, right: True)
    assert expect_spots(posed, args, False) is None


def test_small_results_are_looked_at_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spots are taken only where all of it would take long."""
    monkeypatch.undo()
    args = inputs()
    assert expect_spots(case_of(args), args, False) is None
