"""A case says which part of the arguments a part of the result needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewise.model.problem import pose
from tilewise.model.spec import match
from tilewise.model.trace import trace
from tilewise.runtime.case import part_of
from tilewise.runtime.question import arg_form

ROWS, COLUMNS = np.array([0, 5, 2]), np.array([3, 1])
X, W = np.arange(42.0).reshape(7, 6), np.arange(24.0).reshape(6, 4)
COLUMN, FULL = np.arange(7.0)[:, None], np.arange(28.0).reshape(7, 4)


def part(function: Callable[..., Any], *args: Any) -> Any:
    """Return what takes the part of a function's arguments."""
    names = list(inspect.signature(function).parameters)
    forms = {name: arg_form(name, arg) for name, arg in zip(names, args, strict=True)}
    spec = match(trace(function, forms), names)
    problem = pose(spec, args)
    assert not isinstance(problem, str)
    return part_of(problem)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, w: x @ w, (X, W)),
        (lambda x, w: x.T @ w, (np.ascontiguousarray(X.T), W)),
        (lambda x, w: x @ w.T, (X, np.ascontiguousarray(W.T))),
        (lambda x, w, b: x @ w + b, (X, W, FULL[0])),
        (lambda x, w, b: x @ w + b[None, :], (X, W, FULL[0])),
        (lambda x, w, b: x @ w + b, (X, W, COLUMN)),
        (lambda x, w, b: x @ w + b[:, None], (X, W, COLUMN[:, 0])),
        (lambda x, w, b: x @ w + b, (X, W, FULL)),
        (lambda x, w, b: x @ w + b.T, (X, W, np.ascontiguousarray(FULL.T))),
        (lambda x, w, a: x @ w * a, (X, W, 3.0)),
    ],
    ids=[
        "product", "x.T", "w.T", "row", "viewed row", "column", "viewed column",
        "matrix", "viewed matrix", "number",
    ],
)  # fmt: skip
def test_the_function_of_a_part_is_that_part(function: Any, args: Any) -> None:
    """Whatever the operands' kinds and views."""
    taken = part(function, *args)(args, ROWS, COLUMNS)
    whole = function(*args)[np.ix_(ROWS, COLUMNS)]
    assert np.array_equal(whole, function(*taken))


def test_an_argument_needed_whole_and_in_part_has_no_parts() -> None:
    """X is both factors."""
    square = np.arange(16.0).reshape(4, 4)
    assert part(lambda x: x @ x, square) is None
