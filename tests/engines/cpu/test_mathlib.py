"""The vector forms of functions: error in units of the last place, special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from tilewise.engines.cpu.compile import namespace

ORACLES: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "tanh": np.tanh, "expit": expit
}  # fmt: skip
ULPS = {"exp": 2.0, "tanh": 2.0, "expit": 2.5}
SPECIAL = (
    0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e-300, 88.7, 88.8,
    -87.3, -103.9, -105.0, 709.7, 709.9, -708.3, -745.1, -746.0, 0.625, -0.625, 20.0,
)  # fmt: skip


def compiled(name: str) -> Callable[[Any], Any]:
    """Compile a loop that applies a function to an array."""
    from numba import njit

    function = namespace()[name]

    def loop(x: Any) -> Any:
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = function(x[i])
        return y

    return njit(loop, error_model="numpy", fastmath={"contract"})


def exact(name: str, x: Any) -> Any:
    """Evaluate in longdouble, or in float64 for float32."""
    wide = np.longdouble if x.dtype == np.float64 else np.float64
    if name == "expit":
        y = np.exp(-np.abs(x.astype(wide)))
        return np.where(x >= 0, 1 / (1 + y), y / (1 + y))
    return ORACLES[name](x.astype(wide))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ORACLES)
def test_error_is_within_the_stated_units_of_the_last_place(
    name: str, dtype: str
) -> None:
    """400,000 arguments over the whole range and near zero."""
    rng = np.random.default_rng(0)
    limit = 87.0 if dtype == "float32" else 700.0
    parts = (rng.uniform(-limit, limit, 200_000), rng.standard_normal(200_000))
    x = np.concatenate(parts).astype(dtype)
    actual, expected = compiled(name)(x), exact(name, x)
    unit = np.spacing(np.abs(expected).astype(dtype)).astype(expected.dtype)
    assert ULPS[name] >= float(np.max(np.abs(actual - expected) / unit))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ORACLES)
def test_special_values_are_numpys(name: str, dtype: str) -> None:
    """NaN, infinities, zeros with their sign, the smallest and the edges of range."""
    x = np.array(SPECIAL).astype(dtype)
    with np.errstate(all="ignore"):
        expected = ORACLES[name](x)
    actual = compiled(name)(x)
    tiny = np.finfo(dtype).smallest_subnormal * 4
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=tiny)
    assert np.array_equal(np.signbit(expected[:2]), np.signbit(actual[:2]))
