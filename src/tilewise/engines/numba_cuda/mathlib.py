"""
What epilogues call in numba.cuda kernels: libdevice by type, the rest in Python.

numba's own `math` functions and NumPy's ufuncs do not all compile without a driver,
so each function of libdevice is called by its name: `__nv_expf` for float32,
`__nv_exp` for float64. Constants are made of their argument's type. Called outside
kernels, the functions below use Python's `math`.
"""

# ruff: noqa: PLR0124 - only a NaN differs from itself

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from math import exp, floor, fmod, log, log1p
from types import MappingProxyType
from typing import Any

__all__ = ["LIBDEVICE", "PYTHON", "digest_text", "namespace"]

LIBDEVICE: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "exp": ("exp", 1), "exp2": ("exp2", 1), "expm1": ("expm1", 1),
        "log": ("log", 1), "log1p": ("log1p", 1), "log2": ("log2", 1),
        "sqrt": ("sqrt", 1), "tanh": ("tanh", 1), "sin": ("sin", 1),
        "cos": ("cos", 1), "arctan": ("atan", 1), "floor": ("floor", 1),
        "rint": ("rint", 1), "erf": ("erf", 1), "hypot": ("hypot", 2),
        "power": ("pow", 2), "fmod": ("fmod", 2),
    }
)  # fmt: skip
"""Functions by NumPy's name: libdevice's name and the number of arguments."""


def absolute(x: Any) -> Any:
    """|x|."""
    return abs(x)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger; NaN where either is NaN."""
    return x if x > y or x != x else y


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller; NaN where either is NaN."""
    return x if x < y or x != x else y


def square(x: Any) -> Any:
    """X * x."""
    return x * x


def reciprocal(x: Any) -> Any:
    """1 / x."""
    return type(x)(1) / x


def sign(x: Any) -> Any:
    """-1, 0 or 1 in x's type; NaN stays."""
    one, zero = type(x)(1), type(x)(0)
    return x if x != x else (one if x > zero else (-one if x < zero else zero))


def heaviside(x: Any, y: Any) -> Any:
    """0 below zero, 1 above, y at zero; NaN stays."""
    one, zero = type(x)(1), type(x)(0)
    return x if x != x else (zero if x < zero else (one if x > zero else y))


def isnan(x: Any) -> Any:
    """Whether x is NaN."""
    return x != x


def isfinite(x: Any) -> Any:
    """Whether x is neither NaN nor infinite."""
    return x - x == x - x


def where(condition: Any, x: Any, y: Any) -> Any:
    """X where the condition holds, else y."""
    return x if condition else y


def logical_and(x: Any, y: Any) -> Any:
    """Whether both are not zero."""
    return bool(x) and bool(y)


def logical_or(x: Any, y: Any) -> Any:
    """Whether one is not zero."""
    return bool(x) or bool(y)


def logical_not(x: Any) -> Any:
    """Whether x is zero."""
    return not bool(x)


def remainder(x: Any, y: Any) -> Any:
    """NumPy's remainder: of y's sign; NaN where y is zero."""
    zero = type(x)(0)
    r = fmod(x, y)
    return r + y if r != zero and (y < zero) != (r < zero) else r


def floor_divide(x: Any, y: Any) -> Any:
    """NumPy's floor division (npy_divmod); x / y where y is zero."""
    zero, one, half = type(x)(0), type(x)(1), type(x)(0.5)
    r = fmod(x, y)
    d = (x - r) / y
    d = d - one if r != zero and (y < zero) != (r < zero) else d
    f = floor(d)
    f = f + one if d - f > half else f
    return x / y if y == zero else f


def logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y), from the larger of both; equal infinities stay."""
    d = x - y
    high = x if d > type(x)(0) else y
    near = high + log1p(exp(-abs(d)))
    return x + log(type(x)(2)) if x == y else (d if d != d else near)


def expit(x: Any) -> Any:
    """1 / (1 + e^-x), without overflow."""
    one = type(x)(1)
    e = exp(-abs(x))
    return (one if x >= type(x)(0) else e) / (one + e)


PYTHON = (
    absolute, maximum, minimum, square, reciprocal, sign, heaviside, isnan, isfinite,
    where, logical_and, logical_or, logical_not, remainder, floor_divide,
    logaddexp, expit,
)  # fmt: skip


def digest_text() -> str:
    """Return the text that kernels depend on beside their own source."""
    return inspect.getsource(sys.modules[__name__])


def namespace() -> dict[str, Any]:
    """Return the functions as numba inlines them; imports numba."""
    import types as python_types

    from numba import cuda

    inlined = cuda.jit(device=True, inline="always")
    space: dict[str, Any] = {name: libdevice(*row) for name, row in LIBDEVICE.items()}
    for function in PYTHON:
        bound = python_types.FunctionType(
            function.__code__, space, function.__name__, function.__defaults__
        )
        space[function.__name__] = inlined(bound)
    space["invert"] = invert()
    return space


def invert() -> Any:
    """Return the complement of an integer's bits, or of a truth value."""
    from numba.cuda.extending import intrinsic

    def typed(typingctx: Any, x: Any) -> tuple[Any, Any]:
        return x(x), lambda context, builder, signature, args: builder.not_(args[0])

    return intrinsic(typed)


def libdevice(name: str, arity: int) -> Any:
    """Return a function of libdevice that takes float32 or float64."""
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    def typed(x: Any) -> tuple[Any, Any]:
        symbol = f"__nv_{name}f" if x == types.float32 else f"__nv_{name}"

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = context.get_value_type(signature.return_type)
            known = builder.module.globals.get(symbol)
            called = known or ir.Function(
                builder.module, ir.FunctionType(kind, [kind] * arity), symbol
            )
            return builder.call(called, args)

        return x(*[x] * arity), emit

    def one(typingctx: Any, x: Any) -> Any:
        return typed(x)

    def two(typingctx: Any, x: Any, y: Any) -> Any:
        return typed(x)

    return intrinsic(one if arity == 1 else two)
