"""Default forms and arguments from a signature, or from the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, tuned_kernel
from tilewise.api.shapes import arguments_at, parse_signature


@tuned_kernel
def plain(x: Any, w: Any, b: Any, scale: float = 2.0) -> Any:
    """Have no signature."""
    return (x.T @ w + b) * scale


@tuned_kernel(signature="(m,k),(k,n),(m,n)->(m,n)")
def residual(x: Any, w: Any, r: Any) -> Any:
    """Have a signature."""
    return x @ w + r


def shapes(kernel: Any) -> list[Any]:
    """Return the shapes of the arguments at (m, n, k) = (2, 3, 4)."""
    args = arguments_at(kernel._subject, (2, 3, 4), "float64", "host")
    return [np.shape(arg) for arg in args]


def test_without_a_signature_the_trace_names_the_factors() -> None:
    """A transposed factor is (k, m), other arrays are rows, defaults stay."""
    assert [(4, 2), (4, 3), (3,), ()] == shapes(plain)


def test_a_signature_says_the_shapes() -> None:
    """A residual is a matrix because its signature says so."""
    assert [(2, 4), (4, 3), (2, 3)] == shapes(residual)


def test_arguments_repeat() -> None:
    """The same sizes give the same values."""
    first, second = (
        arguments_at(plain._subject, (2, 3, 4), "f4", "host") for _ in "ab"
    )
    assert np.array_equal(first[0], second[0])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("(m,k),(k,n)", "is not like"),
        ("(m,k),(k,n)->(m,n)", "3 parameters"),
        ("(m,k),(k,n),(q)->(m,n)", "other than"),
    ],
)
def test_a_bad_signature_says_what_is_wrong(text: str, word: str) -> None:
    """Form, number of operands and axes are checked."""
    with pytest.raises(ArgumentError, match=word):
        parse_signature(text, ("x", "w", "b"))


def test_sizes_below_zero_are_refused() -> None:
    """The error shows them."""
    with pytest.raises(ArgumentError, match="below zero"):
        arguments_at(plain._subject, (2, -3, 4), "f4", "host")
