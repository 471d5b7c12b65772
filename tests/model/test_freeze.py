"""What a traced function may read from outside, and what is refused by name."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.random import normal

from tilewise import TraceError, UnsupportedOp
from tilewise.model.freeze import check_captures

config = ModuleType("config")
config.scale, config.limits = 2.0, [0.0, 1.0]  # type: ignore[attr-defined]
config.inner = ModuleType("inner")  # type: ignore[attr-defined]
config.inner.weights = np.ones(3)  # type: ignore[attr-defined]
limits = [0.0, 1.0]


def clipped(z: Any) -> Any:
    """Read a list that the module has."""
    return np.clip(z, *limits)


config.clipped = clipped  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ w * config.scale,
        lambda x, w: np.linalg.matmul(x, w) * np.pi + np.float32(1),
    ],
    ids=("own", "numpy"),
)
def test_a_number_of_a_module_is_frozen(function: Callable[..., Any]) -> None:
    """It is read once, as a global number is."""
    check_captures(function)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x, w: np.clip(x @ w, *config.limits), "reads config.limits, a list"),
        (lambda x, w: x @ w + config.inner.weights, "reads config.inner.weights"),
        (lambda x, w: config.clipped(x @ w), "clipped reads limits, a list"),
        (lambda x, w: [config.limits for _ in "a"], "reads config.limits"),
    ],
    ids=("list", "array", "helper", "nested"),
)
def test_what_can_change_in_a_module_is_refused_by_name(
    function: Callable[..., Any], told: str
) -> None:
    """A list or an array could change unseen, in the module or in its helper."""
    with pytest.raises(TraceError, match=told):
        check_captures(function)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x, w: x @ w * np.random.rand(), "np.random.rand"),  # noqa: NPY002
        (lambda x, w: x @ w * np.random.default_rng(1).normal(), "np.random.default"),
        (lambda x, w: x @ w + normal(), "normal"),  # noqa: NPY002
        (lambda x, w: x @ w + random.random(), "random.random"),
        (lambda x, w: x @ w + time.monotonic(), "time.monotonic"),
    ],
    ids=("rand", "rng", "imported", "random", "time"),
)
def test_a_function_that_gives_something_else_each_time_is_refused(
    function: Callable[..., Any], name: str
) -> None:
    """It would be frozen in silence: one random number for all calls."""
    with pytest.raises(UnsupportedOp, match=f"^{name}.* at each call"):
        check_captures(function)


def test_an_own_variable_may_have_a_globals_name() -> None:
    """What an inner function reads of the outer one is not the global list."""

    def function(x: Any, w: Any) -> Any:
        limits = 3.0

        def scaled(z: Any) -> Any:
            return z * limits

        return scaled(x @ w)

    check_captures(function)
