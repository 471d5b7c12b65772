# ruff: noqa: D401, PLR0124 - x != x is the vectorising test for NaN
"""
The functions that generated code calls by NumPy's names, for float32 and float64.

Each is plain Python for numba, inlined into one loop. Exponentials and logarithms
have vector forms in modules of their own; where no vector form pays, `LIBM` says
which function of the C library is called. NaN and infinities pass as in NumPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Kernels call the forms of their own width under these names.
from tilewise.engines.cpu.exponentials import exp_f8 as exp
from tilewise.engines.cpu.logarithms import log1p_f8 as log1p

__all__ = ["BY_WIDTH", "LIBM"]

inf = math.inf
BY_WIDTH = (
    "exp", "exp2", "expm1", "tanh", "expit", "erf", "log", "log1p", "log2",
    "arctan",
)  # fmt: skip
"""Functions with a vector form of their own for each width: exp_f4, exp_f8, ..."""
LIBM: dict[str, Any] = {
    "sin": math.sin, "cos": math.cos, "power": np.power,
}  # fmt: skip
"""Functions of the C library, within 1 ulp of it, called element by element."""


def absolute(x: Any) -> Any:
    """|x|."""
    return abs(x)


def maximum(x: Any, y: Any) -> Any:
    """The larger; NaN wins."""
    return x if x >= y or x != x else y


def minimum(x: Any, y: Any) -> Any:
    """The smaller; NaN wins."""
    return x if x <= y or x != x else y


def where(c: Any, x: Any, y: Any) -> Any:
    """Choose by a mask."""
    return x if c else y


def invert(x: Any) -> Any:
    """Not, for masks."""
    return not x


def logical_and(x: Any, y: Any) -> Any:
    """Both are not zero."""
    return (x != 0) & (y != 0)


def logical_or(x: Any, y: Any) -> Any:
    """One is not zero."""
    return (x != 0) | (y != 0)


def logical_not(x: Any) -> Any:
    """It is zero."""
    return x == 0


def square(x: Any) -> Any:
    """Multiply by itself."""
    return x * x


def reciprocal(x: Any) -> Any:
    """One over x."""
    return type(x)(1) / x


def sqrt(x: Any) -> Any:
    """The square root; NaN below zero."""
    return np.sqrt(x)


def floor(x: Any) -> Any:
    """Round down."""
    return np.floor(x)


def rint(x: Any) -> Any:
    """Round to the nearest, ties to even."""
    return np.rint(x)


def sign(x: Any) -> Any:
    """Return -1, 0, 1 or NaN."""
    return x if x != x else type(x)((x > 0) - (x < 0))


def isnan(x: Any) -> Any:
    """Is no number."""
    return x != x


def isfinite(x: Any) -> Any:
    """Is neither infinite nor NaN."""
    return abs(x) < inf


def heaviside(x: Any, y: Any) -> Any:
    """Return 0, y or 1 as x is below, at or above zero; NaN stays."""
    return x if x != x else (y if x == 0 else type(x)(x > 0))


def remainder(x: Any, y: Any) -> Any:
    """X modulo y with the sign of y, as NumPy's npy_divmod."""
    r = np.fmod(x, y)
    if r != 0:
        return r + y if (r < 0) != (y < 0) else r
    return math.copysign(r, y) if y == y and r == r else r


def floor_divide(x: Any, y: Any) -> Any:
    """The floor of x / y, as NumPy's npy_divmod."""
    r = np.fmod(x, y)
    if y == 0:
        return x / y
    d = (x - r) / y
    if r != 0 and (r < 0) != (y < 0):
        d = d - type(x)(1)
    if d == 0:
        return math.copysign(type(x)(0), x / y)
    f = np.floor(d)
    return f + type(x)(1) if d - f > type(x)(0.5) else f


def logaddexp(x: Any, y: Any) -> Any:
    """Return log(e^x + e^y) without overflow, as NumPy's npy_logaddexp."""
    d = x - y
    high = x if d > 0 else y
    far = high + log1p(exp(-abs(d)))
    return x + type(x)(0.693147180559945309417) if x == y else (d if d != d else far)
