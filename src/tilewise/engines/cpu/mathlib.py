# ruff: noqa: D401, PLR0124 - x != x is the vectorising test for NaN
"""
The functions that CPU kernels call, as plain Python that numba compiles.

The exponential follows Cody and Waite (Software Manual for the Elementary
Functions, 1980): x = n ln 2 + r with ln 2 in two parts, a polynomial in r (the
minimax coefficients of Moshier's Cephes), and 2^n through the exponent bits. It is
branch-free, so LLVM vectorises it. tanh and expit are built on it. Where no vector
form pays, the C library's function is called.

`f4` functions take float32, `f8` float64; NaN and infinities pass as in NumPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["BOTH", "FLOAT32", "FLOAT64"]

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64
inf, nan = math.inf, math.nan


def exp_f4(x: Any) -> Any:
    """e^x in float32, within 2 ulp; overflow is inf, underflow is gradual to zero."""
    y = min(max(x, f4(-104.0)), f4(89.0))
    n = np.floor(y * f4(1.44269504088896341) + f4(0.5))
    r = y - n * f4(0.693359375)
    r = r + n * f4(2.12194440e-4)
    p = f4(1.9875691500e-4)
    p = p * r + f4(1.3981999507e-3)
    p = p * r + f4(8.3334519073e-3)
    p = p * r + f4(4.1665795894e-2)
    p = p * r + f4(1.6666665459e-1)
    p = p * r + f4(5.0000001201e-1)
    v = p * r * r + r + f4(1.0)
    # 2^n in two factors, so that neither leaves the range of normal numbers.
    k = i4(n)
    half = k >> i4(1)
    a = i4((half + i4(127)) << i4(23)).view(np.float32)
    b = i4((k - half + i4(127)) << i4(23)).view(np.float32)
    return x + x if x != x else v * a * b


def exp_f8(x: Any) -> Any:
    """e^x in float64, within 2 ulp (Cephes' rational form); see `exp_f4`."""
    y = min(max(x, f8(-746.0)), f8(710.0))
    n = np.floor(y * f8(1.4426950408889634073599) + f8(0.5))
    r = y - n * f8(6.93145751953125e-1)
    r = r - n * f8(1.42860682030941723212e-6)
    q = r * r
    p = f8(1.26177193074810590878e-4)
    p = p * q + f8(3.02994407707441961300e-2)
    p = p * q + f8(9.99999999999999999910e-1)
    p = p * r
    d = f8(3.00198505138664455042e-6)
    d = d * q + f8(2.52448340349684104192e-3)
    d = d * q + f8(2.27265548208155028766e-1)
    d = d * q + f8(2.00000000000000000005e0)
    v = f8(1.0) + f8(2.0) * (p / (d - p))
    k = i8(n)
    half = k >> i8(1)
    a = i8((half + i8(1023)) << i8(52)).view(np.float64)
    b = i8((k - half + i8(1023)) << i8(52)).view(np.float64)
    return x + x if x != x else v * a * b


def tanh_f4(x: Any) -> Any:
    """Tanh in float32: a polynomial below 0.625, else 1 - 2 / (e^2|x| + 1)."""
    a = abs(x)
    q = x * x
    p = f4(-5.70498872745e-3)
    p = p * q + f4(2.06390887954e-2)
    p = p * q + f4(-5.37397155531e-2)
    p = p * q + f4(1.33314422036e-1)
    p = p * q + f4(-3.33332819422e-1)
    near = x if x == f4(0.0) else p * q * x + x  # -0.0 keeps its sign
    far = f4(1.0) - f4(2.0) / (exp_f4(a + a) + f4(1.0))
    far = -far if x < f4(0.0) else far
    return near if not a >= f4(0.625) else far


def tanh_f8(x: Any) -> Any:
    """Tanh in float64: Cephes' rational form below 0.625; see `tanh_f4`."""
    a = abs(x)
    q = x * x
    p = f8(-9.64399179425052238628e-1)
    p = p * q + f8(-9.92877231001918586564e1)
    p = p * q + f8(-1.61468768441708447952e3)
    d = q + f8(1.12811678491632931402e2)
    d = d * q + f8(2.23548839060100448583e3)
    d = d * q + f8(4.84406305325125486048e3)
    near = x if x == f8(0.0) else x + x * q * (p / d)
    far = f8(1.0) - f8(2.0) / (exp_f8(a + a) + f8(1.0))
    far = -far if x < f8(0.0) else far
    return near if not a >= f8(0.625) else far


def expit_f4(x: Any) -> Any:
    """1 / (1 + e^-x) in float32, within 2.5 ulp, without overflow."""
    e = exp_f4(-abs(x))
    return (f4(1.0) if x >= f4(0.0) else e) / (f4(1.0) + e)


def expit_f8(x: Any) -> Any:
    """1 / (1 + e^-x) in float64, within 2.5 ulp, without overflow."""
    e = exp_f8(-abs(x))
    return (f8(1.0) if x >= f8(0.0) else e) / (f8(1.0) + e)


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
    """log(e^x + e^y) without overflow, as NumPy's npy_logaddexp."""
    if x == y:
        return x + math.log(type(x)(2))
    d = x - y
    if d > 0:
        return x + math.log1p(math.exp(-d))
    if d <= 0:
        return y + math.log1p(math.exp(d))
    return d


BOTH = {
    f.__name__: f
    for f in (
        absolute, maximum, minimum, where, invert, logical_and, logical_or,
        logical_not, square, reciprocal, sqrt, floor, rint, sign, isnan, isfinite,
        heaviside, remainder, floor_divide, logaddexp,
    )
}  # fmt: skip
"""Functions that serve both widths, by the name that the table of ops calls."""
FLOAT32 = {"exp": exp_f4, "tanh": tanh_f4, "expit": expit_f4}
FLOAT64 = {"exp": exp_f8, "tanh": tanh_f8, "expit": expit_f8}
"""Functions with a vector form of their own for a width."""
