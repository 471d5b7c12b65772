"""The vector forms of functions: error in units of the last place, special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, expit

from tilewise.engines.cpu.compile import namespace
from tilewise.engines.cpu.mathlib import BY_WIDTH

ORACLES: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "tanh": np.tanh,
    "expit": expit, "erf": erf, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "arctan": np.arctan,
}  # fmt: skip
SPECIAL = (
    0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e-300, 5e-324, 88.7,
    88.8, -87.3, -103.9, -105.0, 709.7, 709.9, -708.3, -745.1, -746.0, 0.625, -0.625,
    20.0, 127.0, 128.0, 1024.0, -126.0, -1.0, -1.5, 1.0, 2.0, 1e-310, 1e30, -1e30,
)  # fmt: skip
CASES = [(name, dtype) for name in BY_WIDTH for dtype in ("float32", "float64")]


@cache
def compiled(name: str) -> Callable[[Any, Any], Any]:
    """Compile a loop that applies a function to an array."""
    from numba import njit

    function = namespace()[name]

    def loop(x: Any, y: Any) -> None:
        for i in range(x.size):
            y[i] = function(x[i])

    made: Callable[[Any, Any], Any] = njit(
        loop, error_model="numpy", fastmath={"contract"}
    )
    return made


def applied(name: str, x: Any) -> Any:
    """Apply a compiled function to an array."""
    y = np.empty_like(x)
    compiled(name)(x, y)
    return y


def exact(name: str, x: Any) -> Any:
    """Evaluate in longdouble, erf as the C library does."""
    if name == "erf":
        return np.array([math.erf(v) for v in x.tolist()], np.longdouble)
    wide = x.astype(np.longdouble)
    if name == "expit":
        y = np.exp(-np.abs(wide))
        return np.where(x >= 0, 1 / (1 + y), y / (1 + y))
    return ORACLES[name](wide)


def samples(name: str, dtype: str) -> Any:
    """Return 400,000 arguments over a function's range and where it is delicate."""
    rng, count = np.random.default_rng(0), 100_000
    limit = 87.0 if dtype == "float32" else 700.0
    near = (rng.uniform(-0.9, 2, count), 1e-3 * rng.standard_normal(count))
    parts = (rng.uniform(-limit, limit, count), rng.uniform(-4, 4, count), *near)
    x = np.concatenate(parts)
    if name.startswith("log"):
        x[:count] = np.exp(x[:count])
        x = x[x > -1] if name == "log1p" else np.abs(x) + 0.5 * (np.abs(x) < 1e-2)
    return x.astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_error_is_within_the_stated_units_of_the_last_place(
    name: str, dtype: str
) -> None:
    """The whole range, and near zero and one."""
    x = samples(name, dtype)
    actual, expected = applied(name, x), exact(name, x)
    unit = np.spacing(np.abs(expected).astype(dtype)).astype(np.longdouble)
    assert 2.0 >= float(np.max(np.abs(actual - expected) / unit))


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_special_values_are_numpys(name: str, dtype: str) -> None:
    """NaN, infinities, zeros with their sign, the smallest and the edges of range."""
    x = np.array(SPECIAL).astype(dtype)
    with np.errstate(all="ignore"):
        expected = ORACLES[name](x)
    actual = applied(name, x)
    tiny = 4 * float(np.finfo(dtype).smallest_subnormal)
    assert np.all(np.isclose(actual, expected, 1e-6, tiny, equal_nan=True))
    real = ~np.isnan(expected)
    assert np.array_equal(np.signbit(expected[real]), np.signbit(actual[real]))


@cache
def two() -> Callable[..., Any]:
    """Compile a loop that applies hypot to two arrays."""
    from numba import njit

    function = namespace()["hypot"]

    def loop(x: Any, y: Any, z: Any) -> None:
        for i in range(x.size):
            z[i] = function(x[i], y[i])

    made: Callable[..., Any] = njit(loop, error_model="numpy", fastmath={"contract"})
    return made


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hypot_is_within_two_units(dtype: str) -> None:
    """Operands of all magnitudes, whose squares overflow or vanish."""
    rng, limit = np.random.default_rng(0), 85 if dtype == "float32" else 340
    x, y = (np.exp(rng.uniform(-limit, limit, 100_000)) for _ in "xy")
    y[:50_000] = x[:50_000] * rng.uniform(-2, 2, 50_000)
    x, y = x.astype(dtype), y.astype(dtype)
    actual = np.empty_like(x)
    two()(x, y, actual)
    expected = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble))
    unit = np.spacing(expected.astype(dtype)).astype(np.longdouble)
    assert 2.0 >= float(np.max(np.abs(actual - expected) / unit))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hypot_of_special_values_is_numpys(dtype: str) -> None:
    """Infinity wins over NaN, and zero stays zero."""
    values = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 3.0, 1e-45], dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    actual = np.empty_like(x)
    two()(x, y, actual)
    np.testing.assert_allclose(actual, np.hypot(x, y), rtol=1e-6)
