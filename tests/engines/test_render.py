"""Rendered lines compute what NumPy computes, constants bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.model.test_trace import forms
from tilewise.engines.render import GLSL, PYTHON, C, render, unrendered
from tilewise.model.spec import Spec, match
from tilewise.model.trace import trace

X = np.ones((2, 2), np.float32)


def spec_of(function: Callable[..., Any], *args: Any) -> Spec:
    """Trace a function at arguments and match it."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return match(trace(function, forms(*args, names=names)), names)


def lines(function: Callable[..., Any], *args: Any, language: Any = PYTHON) -> str:
    """Return the rendered lines of a function's epilogue."""
    return "\n".join(render(spec_of(function, *args), language).lines)


def test_a_python_number_takes_the_dtype_that_it_meets() -> None:
    """A bare constant would make float32 arithmetic float64."""
    assert "t2 = f4((p * f4(0.30000001192092896)))" == lines(
        lambda x, w: x @ w * 0.3, X, X
    )


def test_a_numpy_number_widens_where_numpy_widens() -> None:
    """float64 constants and casts of float32 elements stand where NumPy has them."""
    assert "t2 = f8((f8(0.3) * f8(p)))" == lines(
        lambda x, w: x @ w * np.float64(0.3), X, X
    )


def test_c_constants_are_hexadecimal() -> None:
    """Every bit of a float32 is written, with its suffix."""
    text = lines(lambda x, w: x @ w * 0.3, X, X, language=C)
    assert "float t2 = (p * 0x1.3333340000000p-2f);" == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 1e-45, 3.4e38])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_keep_every_bit(value: float, dtype: str) -> None:
    """Python text, read back, gives the very number; NaN is NaN."""
    number = np.dtype(dtype).type(value)
    space = {"f4": np.float32, "f8": np.float64, "inf": math.inf, "nan": math.nan}
    back = eval(PYTHON.number(dtype, number), space)
    assert (number.dtype, repr(number)) == (back.dtype, repr(back))


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.inf, "inf_f()"), (-math.inf, "-inf_f()"), (math.nan, "nan_f()")],
)
def test_c_has_functions_for_what_it_cannot_write(value: float, text: str) -> None:
    """The prelude of a C kernel defines inf and nan of both widths."""
    assert text == C.number("float32", value)


def test_a_small_whole_power_is_a_product() -> None:
    """Z ** 3 is two multiplications."""
    assert "t2 = f4((p * p * p))" == lines(lambda x, w: (x @ w) ** 3, X, X)


def test_another_power_is_a_call() -> None:
    """Z ** 2.5 and z ** 9 are the library's."""
    assert "power(p, f4(9.0))" in lines(lambda x, w: (x @ w) ** 9, X, X)


def test_whole_numbers_wrap_as_in_numpy() -> None:
    """Each step of int32 is cut to 32 bits, though numba would widen it."""
    text = lines(lambda x, w: (x @ w).astype(np.int32) * np.int32(65536), X, X)
    assert text.endswith(("i4((i4(65536) * t1))", "i4((t1 * i4(65536)))"))


def test_scalars_say_their_types() -> None:
    """A Python float is handed over as float64, a NumPy one as itself."""
    spec = spec_of(lambda x, w, a, b: x @ w * a + b, X, X, 0.5, np.float32(1))
    assert {"float64", "float32"} == set(render(spec, PYTHON).scalar_types)


def test_a_shader_is_handed_numbers_in_the_dtypes_that_it_wants() -> None:
    """GLSL has no float64 to hand a Python number over in."""
    assert "precise float t2 = (p * s0_float);" == lines(
        lambda x, w, a: x @ w * a, X, X, 0.5, language=GLSL
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "uintBitsToFloat(0x3dcccccdu)"), (-0.0, "uintBitsToFloat(0x80000000u)"),
     (2.0, "2.0"), (-3.0, "-3.0"), (math.inf, "uintBitsToFloat(0x7f800000u)")],
)  # fmt: skip
def test_glsl_constants_are_bits_or_whole(value: float, text: str) -> None:
    """How exactly a compiler reads a decimal is open; small whole numbers are safe."""
    assert text == GLSL.number("float32", value)


def test_glsl_writes_masks_as_logic() -> None:
    """It has no & for bools."""
    text = lines(lambda x, w: (x @ w > 0) & (x @ w < 1), X, X, language=GLSL)
    assert "&&" in text
    assert " & " not in text


def test_a_dtype_in_which_operands_meet_is_named() -> None:
    """An int32 and a float32 are compared in float64, though the result is a bool."""
    spec = spec_of(lambda x, w: (x @ w).astype(np.int32) > x @ w, X, X)
    assert "the epilogue computes in float64" == unrendered(spec, GLSL)
    assert unrendered(spec, C) is None


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, w: (x @ w).astype(np.float16), "the epilogue computes in float16"),
        (
            lambda x, w: (x @ w).astype(np.int64) // 2,
            "the epilogue's floor_divide is in int64",
        ),
    ],
    ids=["float16", "integer division"],
)
def test_what_is_not_rendered_is_named(function: Any, reason: str) -> None:
    """The reason names the operation and its dtype."""
    assert reason == unrendered(spec_of(function, X, X))
