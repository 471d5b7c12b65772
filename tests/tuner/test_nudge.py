"""Nudged evaluation: moves what rounds by its bound, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise.tuner.nudge import Nudge, Nudged, gamma

UNIT = 2.0**-24
RANDOM = np.random.default_rng(0)
X, W = RANDOM.standard_normal((6, 9)), RANDOM.standard_normal((9, 4))


def nudge(sign: int | None = 0) -> Nudge:
    """Make a nudge for float32."""
    return Nudge(np.dtype("f4"), UNIT, 2.0**-149, sign, np.random.default_rng(1))


def nudged(function: Any, *arrays: Any, sign: int | None = 0) -> Any:
    """Evaluate a function on nudged arrays."""
    how = nudge(sign)
    with np.errstate(all="ignore"):
        found = function(*(Nudged.of(a, how) for a in arrays))
    return np.asarray(found).view(np.ndarray)


def test_products_move_by_their_bound() -> None:
    """A product moved upwards is above the exact one by gamma_k |x||w|."""
    moved = nudged(lambda x, w: x @ w, X, W, sign=1) - X @ W
    bound = gamma(9, UNIT) * (np.abs(X) @ np.abs(W))
    assert moved == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize(
    "product",
    [np.matmul, np.dot, lambda x, w: x.dot(w), lambda x, w: (w.T @ x.T).T],
    ids=["matmul", "dot", "method", "transposed"],
)
def test_every_spelling_is_a_product(product: Any) -> None:
    """However a product is written it is moved."""
    assert not np.array_equal(X @ W, nudged(product, X, W, sign=1))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_exact_operations_stay(name: str) -> None:
    """What does not round is not moved."""
    ufunc = getattr(np, name)
    assert np.array_equal(ufunc(X, 0.1), nudged(lambda x: ufunc(x, 0.1), X))


def test_results_that_need_no_rounding_stay() -> None:
    """Small integers times powers of two are exact, so they do not move."""
    whole = np.array([0.0, 1, 2, 3, np.inf, np.nan])
    assert np.array_equal(whole * 2, nudged(lambda x: x * 2, whole), equal_nan=True)


def test_arithmetic_moves_by_two_units() -> None:
    """A product by a constant moves by at most two unit roundoffs."""
    moved = np.abs(nudged(lambda x: x * 0.1, X) / (X * 0.1) - 1)
    assert 0 < moved.max() <= 2.1 * UNIT


def test_works_in_place() -> None:
    """`z += b` and `out=` go on with nudged arrays, whose values are moved."""

    def function(x: Any) -> Any:
        z = x * 0.1
        z += 0.3
        np.exp(z, out=z)
        return z

    moved = nudged(function, X, sign=1) / np.exp(X * 0.1 + 0.3)
    assert 1 < moved.min() < moved.max() < 1 + 30 * UNIT


def test_in_place_work_leaves_the_remembered_product() -> None:
    """A function that goes on in place does not spoil the product for the next."""
    how = nudge(None)
    arrays = [Nudged.of(a, how) for a in (X, W)]
    how.known.sources = frozenset(a.ctypes.data for a in arrays)

    def function(x: Any, w: Any) -> Any:
        z = x @ w
        z += 1
        return z

    first, second = (np.array(function(*arrays)) for _ in range(2))
    assert np.array_equal(first, second)


def test_nothing_moves_without_a_sign() -> None:
    """With sign None the evaluation is exact."""
    assert np.array_equal(
        np.exp(X @ W), nudged(lambda x, w: np.exp(x @ w), X, W, sign=None)
    )


def test_other_functions_keep_the_nudge() -> None:
    """After np.where the next operation is still moved."""
    moved = nudged(lambda x: np.where(x > 0, x, 0.5) * 0.1, X, sign=1)
    assert (moved > np.where(X > 0, X, 0.5) * 0.1).all()


def test_the_bound_is_highams() -> None:
    """gamma_k is k u / (1 - k u); for random data it is smaller at large k."""
    assert 4 * UNIT / (1 - 4 * UNIT) == gamma(4, UNIT)
    assert gamma(65536, UNIT, random=True) < gamma(65536, UNIT) / 30
