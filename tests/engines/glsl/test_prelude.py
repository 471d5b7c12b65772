"""The functions of the GLSL prelude: error in units of the last place, every edge."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, expit

from tests.opengl import applied, reference

ORACLES: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "tanh": np.tanh,
    "expit": expit, "erf": erf, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "sin": np.sin, "cos": np.cos, "arctan": np.arctan, "sqrt": np.sqrt,
    "hypot": np.hypot, "power": np.power, "logaddexp": np.logaddexp,
}  # fmt: skip
PAIRS = ("hypot", "power", "logaddexp")
UNITS = {"expit": 2.1, "sin": 2.5, "cos": 2.5, "logaddexp": 3.0}
"""Stated errors where they are not 2 units in the last place."""
SIDE = 600
SPECIAL = (
    0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e-38, 88.7, 88.8, -87.3,
    -103.9, -105.0, 0.625, -0.625, 20.0, 127.0, 128.0, -126.0, -149.0, -1.0, -1.5, 1.0,
    2.0, 3.0, -2.0, 0.5, 1e30, -1e30, 16777216.0, -16777217.0, 3.4e38,
)  # fmt: skip


def wide(name: str, *args: Any) -> Any:
    """Evaluate in longdouble; SciPy's functions by NumPy's or the C library's."""
    x, *rest = (a.astype(np.longdouble) for a in args)
    if name == "erf":
        return np.vectorize(math.erf, otypes=[np.longdouble])(args[0])
    if name == "expit":
        y = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + y), y / (1 + y))
    return ORACLES[name](x, *rest)


def samples(name: str) -> tuple[Any, ...]:
    """Return arguments over a function's range and where it is delicate."""
    random = np.random.default_rng(0)
    parts = SIDE * SIDE // 4
    x = np.concatenate(
        [random.uniform(-87, 87, parts), random.uniform(-4, 4, parts),
         random.uniform(-0.9, 2, parts), 1e-3 * random.standard_normal(parts)]
    )  # fmt: skip
    y = random.permutation(x)
    if name.startswith("log") and name != "logaddexp":
        x[:parts] = np.exp(x[:parts])
        x = x[x > -1] if name == "log1p" else np.abs(x) + 0.5 * (np.abs(x) < 1e-2)
    if name in ("sin", "cos", "arctan"):
        x[:parts] = np.exp(random.uniform(-20, 88, parts)) * np.sign(x[:parts])
    if name in ("sqrt", "power"):
        x = np.abs(x) + 1e-30
    if name == "power":
        y = np.clip(y, -85 / np.abs(np.log(x)), 85 / np.abs(np.log(x)))
    if name == "hypot":
        x = np.exp(random.uniform(-85, 85, x.size))
        y[:parts] = x[:parts] * random.uniform(-2, 2, parts)
    x, y = (np.resize(a, (SIDE, SIDE)).astype(np.float32) for a in (x, y))
    return (x, y) if name in PAIRS else (x,)


def shaded(name: str, *args: Any) -> Any:
    """Apply a function to whole operands in a shader; the product is one."""
    call = ORACLES[name]

    def single(x, w, a):
        return call(a) * (x @ w)

    def double(x, w, a, b):
        return call(a, b) * (x @ w)

    m, n = args[0].shape
    ones = np.ones((m, 1), np.float32), np.ones((1, n), np.float32)
    return applied(single if len(args) == 1 else double, *ones, *args)


@pytest.mark.parametrize("name", ORACLES)
def test_error_is_within_the_stated_units_of_the_last_place(name: str):
    """The whole range, small arguments, and for angles arguments up to 1e38."""
    args = samples(name)
    actual, expected = shaded(name, *args), wide(name, *args)
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.longdouble)
    if name == "logaddexp":  # Near its zeros only the operands' size can be kept.
        unit = np.maximum(unit, np.spacing(np.maximum(*map(np.abs, args))))

    assert UNITS.get(name, 2.0) >= float(np.max(np.abs(actual - expected) / unit))


@pytest.mark.parametrize("name", ORACLES)
def test_special_values_are_numpys(name: str):
    """NaN, infinities, zeros with their sign, the smallest, and the edges of range."""
    values = np.array(SPECIAL, np.float32)
    args = np.meshgrid(values, values) if name in PAIRS else (values[None, :],)
    expected, actual = reference(ORACLES[name], *args), shaded(name, *args)
    tiny = 4 * float(np.finfo(np.float32).smallest_subnormal)

    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=tiny)
    real = ~np.isnan(expected)
    assert np.array_equal(np.signbit(expected[real]), np.signbit(actual[real]))


@pytest.mark.parametrize("call", [np.remainder, np.floor_divide])
def test_division_with_remainder_is_numpys(call: Callable[..., Any]):
    """Quotients of every size, operands of both signs, the smallest numbers too."""
    random = np.random.default_rng(1)
    size = (200, 200)
    x, y = (np.exp(random.uniform(-60, 60, size)).astype(np.float32) for _ in "xy")
    x, y = (a * random.choice(np.float32([-1, 1]), size) for a in (x, y))
    x[0, :32], y[1, :32] = SPECIAL, SPECIAL
    x[2], y[2] = 1e-40, 3e-42

    def divided(x, w, a, b):
        return call(a, b) * (x @ w)

    ones = np.ones((200, 1), np.float32), np.ones((1, 200), np.float32)

    np.testing.assert_array_equal(applied(divided, *ones, x, y), reference(call, x, y))
