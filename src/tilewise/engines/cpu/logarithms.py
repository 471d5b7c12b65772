"""
Logarithms, branch-free, so that LLVM vectorises them.

The method is fdlibm's (Ng, e_log.c and s_log1p.c, in float32 FreeBSD's e_logf.c):
x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), s = f / (2 + f), and
log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))). Errors, from tests against longdouble
on 400,000 arguments: at most 2 units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__: list[str] = []

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64
inf, nan = math.inf, math.nan


def split_f4(x: Any) -> Any:
    """Return k and f for a positive finite x, denormal ones too."""
    small = x < f4(1.17549435e-38)
    y = x * f4(33554432.0) if small else x
    bits = f4(y).view(np.int32) + i4(0x3F800000 - 0x3F3504F3)
    k = f4(i4(bits >> i4(23)) - i4(152 if small else 127))
    m = i4((bits & i4(0x007FFFFF)) + i4(0x3F3504F3)).view(np.float32)
    return k, m - f4(1.0)


def split_f8(x: Any) -> Any:
    """Return k and f for a positive finite x, denormal ones too."""
    small = x < f8(2.2250738585072014e-308)
    y = x * f8(18014398509481984.0) if small else x
    bits = f8(y).view(np.int64) + i8((0x3FF00000 - 0x3FE6A09E) << 32)
    k = i8((bits >> i8(52)) - i8(1077 if small else 1023))
    m = i8((bits & i8(0x000FFFFFFFFFFFFF)) + i8(0x3FE6A09E << 32)).view(np.float64)
    # Through the low bits of 1.5 * 2^52: AVX2 has no conversion from int64.
    whole = i8(k + i8(0x4338000000000000)).view(np.float64) - f8(6755399441055744.0)
    return whole, m - f8(1.0)


def series_f4(f: Any) -> Any:
    """Return f^2/2 and s (f^2/2 + R): log(1 + f) is f minus their difference."""
    s = f / (f4(2.0) + f)
    z = s * s
    w = z * z
    odd = w * (f4(0.40000972152) + w * f4(0.24279078841))
    even = z * (f4(0.66666662693) + w * f4(0.28498786688))
    half = f4(0.5) * f * f
    return half, s * (half + (odd + even))


def series_f8(f: Any) -> Any:
    """Return f^2/2 and s (f^2/2 + R); see `series_f4`."""
    s = f / (f8(2.0) + f)
    z = s * s
    w = z * z
    odd = f8(2.222219843214978396e-01) + w * f8(1.531383769920937332e-01)
    odd = w * (f8(3.999999999940941908e-01) + w * odd)
    even = f8(1.818357216161805012e-01) + w * f8(1.479819860511658591e-01)
    even = f8(2.857142874366239149e-01) + w * even
    even = z * (f8(6.666666666666735130e-01) + w * even)
    half = f8(0.5) * f * f
    return half, s * (half + (odd + even))


def edges(x: Any, y: Any) -> Any:
    """Return y with a logarithm's values at 0, below, at infinity and NaN."""
    y = x if x == inf else y
    y = type(x)(-inf) if x == 0 else y
    return y if x >= 0 else type(x)(nan)


def log_f4(x: Any) -> Any:
    """Return the natural logarithm."""
    k, f = split_f4(x)
    half, tail = series_f4(f)
    low = k * f4(9.0580006145e-06)
    return edges(x, k * f4(6.9313812256e-01) - ((half - (tail + low)) - f))


def log_f8(x: Any) -> Any:
    """Return the natural logarithm."""
    k, f = split_f8(x)
    half, tail = series_f8(f)
    low = k * f8(1.90821492927058770002e-10)
    return edges(x, k * f8(6.93147180369123816490e-01) - ((half - (tail + low)) - f))


def log2_f4(x: Any) -> Any:
    """Return the logarithm to the base 2; powers of two are exact."""
    k, f = split_f4(x)
    half, tail = series_f4(f)
    y = f - (half - tail)
    return edges(x, k + (y * f4(1.4426950216) + y * f4(1.9259630e-08)))


def log2_f8(x: Any) -> Any:
    """Return the logarithm to the base 2; powers of two are exact."""
    k, f = split_f8(x)
    half, tail = series_f8(f)
    y = f - (half - tail)
    return edges(x, k + (y * f8(1.4426950408889634) + y * f8(2.038300084272748e-17)))


def log1p_f4(x: Any) -> Any:
    """Return log(1 + x), with the digits that 1 + x loses put back."""
    u = f4(1.0) + x
    k, f = split_f4(u)
    lost = f4(1.0) - (u - x) if k >= f4(2.0) else x - (u - f4(1.0))
    near = (x > f4(-0.2929)) & (x < f4(0.4142))
    lost = f4(0.0) if near else lost / u
    k = f4(0.0) if near else k
    f = x if near else f
    half, tail = series_f4(f)
    low = k * f4(9.0580006145e-06) + lost
    y = k * f4(6.9313812256e-01) - ((half - (tail + low)) - f)
    return x if abs(x) < f4(2.9802322387695312e-8) else edges(u, y)


def log1p_f8(x: Any) -> Any:
    """Return log(1 + x); see `log1p_f4`."""
    u = f8(1.0) + x
    k, f = split_f8(u)
    lost = f8(1.0) - (u - x) if k >= f8(2.0) else x - (u - f8(1.0))
    near = (x > f8(-0.2929)) & (x < f8(0.4142))
    lost = f8(0.0) if near else lost / u
    k = f8(0.0) if near else k
    f = x if near else f
    half, tail = series_f8(f)
    low = k * f8(1.90821492927058770002e-10) + lost
    y = k * f8(6.93147180369123816490e-01) - ((half - (tail + low)) - f)
    return x if abs(x) < f8(5.551115123125783e-17) else edges(u, y)
