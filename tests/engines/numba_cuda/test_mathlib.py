"""The functions that numba.cuda kernels call are NumPy's, also as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.engines.numba_cuda import mathlib

VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 7.25, -7.25, 1e300, float("inf"),
          float("-inf"), float("nan")]  # fmt: skip
ONE = ("absolute", "square", "sign", "isnan", "isfinite", "logical_not")
TWO = ("maximum", "minimum", "heaviside", "logical_and", "logical_or")
FINITE = ("remainder", "floor_divide")


def same(found, expected):
    """Say whether values are equal, NaN to NaN."""
    return bool(np.array_equal(found, expected, equal_nan=True))


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one(name):
    """One operand, special values among them."""
    function, ufunc = getattr(mathlib, name), getattr(np, name)
    with np.errstate(all="ignore"):
        wrong = [x for x in VALUES if not same(function(x), ufunc(x))]

    assert [] == wrong


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name):
    """Two operands, special values among them."""
    function, ufunc = getattr(mathlib, name), getattr(np, name)
    pairs = [(x, y) for x in VALUES for y in VALUES]

    assert [] == [(x, y) for x, y in pairs if not same(function(x, y), ufunc(x, y))]


@pytest.mark.parametrize("name", FINITE)
def test_division(name):
    """Signs and exactness are NumPy's; Python's fmod takes no zero and no infinity."""
    function, ufunc = getattr(mathlib, name), getattr(np, name)
    finite = [x for x in VALUES if abs(x) < 1e299 and x]
    pairs = [(x, y) for x in finite for y in finite]

    assert [] == [(x, y) for x, y in pairs if not same(function(x, y), ufunc(x, y))]


def test_logaddexp():
    """Large operands do not overflow; equal infinities stay."""
    pairs = [(0.0, 0.0), (1000.0, 1.0), (-5.0, 3.0), (np.inf, np.inf), (-np.inf, 0.0)]
    found = [mathlib.logaddexp(x, y) for x, y in pairs]

    np.testing.assert_allclose(
        found, [np.logaddexp(x, y) for x, y in pairs], rtol=1e-15
    )


def test_expit():
    """No overflow on either side."""
    values = [-1000.0, -1.0, 0.0, 2.0, 1000.0]
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-np.array(values)))

    np.testing.assert_allclose([mathlib.expit(x) for x in values], expected, rtol=1e-15)


def test_reciprocal_and_where():
    """The reciprocal is in its operand's type; where chooses."""
    assert 0.25 == mathlib.reciprocal(4.0)
    assert (1, 2) == (mathlib.where(True, 1, 2), mathlib.where(False, 1, 2))


def test_keys_see_the_text():
    """What keys hold is the module's own source."""
    assert "def logaddexp" in mathlib.digest_text()
