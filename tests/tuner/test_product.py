"""Products in long double: exact enough to judge float64."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tilewise.tuner import product as module
from tilewise.tuner.product import product

wide = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="long double is float64 here"
)


@wide
def test_slices_are_as_good_as_long_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """The split product is within 2^-58 of exact fractions, relative to |x||w|."""
    monkeypatch.setattr(module, "DIRECT", 0)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(s).astype(np.longdouble) for s in ((3, 40), (40, 2)))
    found = product(x, w)
    for i, j in np.ndindex(3, 2):
        terms = [
            Fraction(float(a)) * Fraction(float(b))
            for a, b in zip(x[i], w[:, j], strict=True)
        ]
        high = float(found[i, j])
        error = abs(Fraction(high) + Fraction(float(found[i, j] - high)) - sum(terms))
        assert error < 2.0**-58 * sum(map(abs, terms))


@wide
def test_nan_and_inf_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not finite comes out as in float64."""
    monkeypatch.setattr(module, "DIRECT", 0)
    x, w = np.ones((3, 4), np.longdouble), np.ones((4, 2), np.longdouble)
    x[0, 0], x[1, 1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        assert "[[nan, nan], [inf, inf], [4.0, 4.0]]" == str(
            product(x, w).astype(float).tolist()
        )


def test_other_dtypes_are_numpys() -> None:
    """Float64 products are NumPy's own."""
    x = np.random.default_rng(0).standard_normal((5, 5))
    assert np.array_equal(x @ x, product(x, x))
