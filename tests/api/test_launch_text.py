"""Launches written as text are read without evaluating them."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.api.launch_text import argument, sizes
from tilewise.errors import ArgumentError

NAMES = {"m": 33, "n": 17, "k": 9}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", (1,)),
        ("cdiv(n,16),cdiv(m,16)", (2, 3)),
        ("m*k + n//2 - 1, -(m % 4)", (304, -1)),
        ("(m+n)*2,", (100,)),
    ],
)
def test_sizes(text, expected):
    """Integers, names, + - * // % and cdiv."""
    assert expected == sizes(text.rstrip(","), NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "q",
        "m/2",
        "f(m)",
        "m.real",
        "1,,2",
        "__import__('os')",
        "m//0",
        "cdiv(1,0)",
        "cdiv(1)",
        "'a'",
        "m**9",
        "(",
    ],
)
def test_other_expressions_are_refused(text):
    """Nothing else is understood, and nothing is run."""
    with pytest.raises(ArgumentError):
        sizes(text, NAMES)


def test_arrays_and_numbers():
    """Arrays are random or filled, numbers are expressions in their dtype."""
    random, again = (argument("float32[m,k]", NAMES, 3) for _ in range(2))
    filled = argument(" float64 [ n ] = nan", NAMES, 0)
    number = argument("int32=m*k", NAMES, 0)
    real = argument("float32=1.5", NAMES, 0)
    small = argument("uint8[100]", NAMES, 0)

    assert ((33, 9), np.float32) == (random.shape, random.dtype)
    assert random.tolist() == again.tolist()
    assert np.isnan(filled).all()
    assert (np.int32(297), np.int32) == (number, type(number))
    assert (np.float32(1.5), np.float32) == (real, type(real))
    assert small.max() < 10


@pytest.mark.parametrize(
    "text",
    ["float32", "int32=1.5", "int8=1000", "nope[3]", "str[3]", "int32=1,2", "[3]", ""],
)
def test_other_arguments_are_refused(text):
    """A number needs a value that fits, an array a numeric dtype."""
    with pytest.raises(ArgumentError):
        argument(text, NAMES, 0)
