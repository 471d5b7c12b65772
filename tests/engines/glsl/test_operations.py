"""Every operation of the table gives NumPy's values in GLSL, NaN and infinities too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.opengl import applied, difference, quarters, sprinkled
from tilewise.engines.render import FLOAT_ONLY, GLSL
from tilewise.model.ops import OPS, lookup, loop_dtypes

NAMES = (*OPS, "erf", "expit")
M, N = 24, 24


def widths(name: str) -> Iterator[str]:
    """Yield the dtypes in which GLSL computes an operation on equal operands."""
    for dtype in GLSL.types:
        try:
            loop = loop_dtypes(name, (dtype,) * lookup(name).arity)
        except TypeError:
            continue
        integers = dtype == "int32" and name in FLOAT_ONLY
        if set(loop) <= set(GLSL.types) and not integers:
            yield dtype


CASES = [(name, dtype) for name in NAMES if name != "where" for dtype in widths(name)]


def function_of(name: str, dtype: str) -> Callable[..., Any]:
    """Return a user's function that applies an operation to a product in a dtype."""
    call, arity = lookup(name).call, lookup(name).arity

    def single(x, w, b):
        return call((x @ w).astype(dtype))

    def double(x, w, b):
        return call((x @ w).astype(dtype), b)

    return single if arity == 1 else double


def operand(dtype: str) -> Any:
    """Return a (M, N) operand of a dtype, special values among floats."""
    values = quarters((M, N), 3)
    return sprinkled(values) if dtype == "float32" else values.astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_an_operation_equals_numpy(name: str, dtype: str):
    """Products with zeros of both signs, and for floats with NaN and infinities."""
    x, w = quarters((M, 3)), quarters((3, N), 2)
    if dtype == "float32":
        x[:6] = sprinkled(x[:6], 5)
        x[x == np.float32(1e-40)] = 0  # its sums would be inexact

    assert "" == difference(function_of(name, dtype), x, w, operand(dtype))


@pytest.mark.parametrize("dtype", GLSL.types)
def test_where_chooses_in_each_dtype(dtype: str):
    """A mask of comparisons chooses floats, integers and bools."""

    def choose(x, w, b):
        z = x @ w
        return np.where(z > 0.5, b, z.astype(dtype))

    x, w = quarters((M, 3)), quarters((3, N), 2)

    assert "" == difference(choose, x, w, operand(dtype))


def test_a_comparison_is_denied_without_becoming_another():
    """`~(z < b)` is true for NaN, where `z >= b` is not."""

    def denied(x, w, b):
        return ~(x @ w < b) & ~(x @ w >= b)

    x, w = quarters((M, 3)), quarters((3, N), 2)

    assert "" == difference(denied, x, w, operand("float32"))


@pytest.mark.parametrize("exponent", [-1.5, -1, 0, 0.5, 2, 3, 7, 11, 2.5])
def test_a_power_with_a_constant_exponent(exponent: float):
    """Small whole powers are products, others the function's, also of negatives."""
    x, w = quarters((M, 3)), quarters((3, N), 2)

    assert "" == difference(lambda x, w: (x @ w) ** exponent, x, w)


CONSTANTS = (0.1, -0.0, 1e-45, 3.4e38, float("inf"), float("-inf"), float("nan"), 7)


@pytest.mark.parametrize("value", CONSTANTS)
def test_constants_keep_every_bit(value: float):
    """What is written into the source is the very number."""

    def constant(x, w):
        return np.where(x @ w > 9e9, x @ w, value)

    x, w = quarters((2, 3)), quarters((3, 2), 2)
    actual = applied(constant, x, w)
    assert constant(x, w).tobytes() == actual.tobytes()
