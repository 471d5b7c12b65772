"""
Exponentials and what is built on them, branch-free, so that LLVM vectorises them.

Reduction as in Cody and Waite (Software Manual for the Elementary Functions, 1980):
x = n ln 2 + r with ln 2 in two parts; n is rounded by adding 1.5 * 2^23 (or 2^52),
which leaves it in the low bits. The polynomials in r are Moshier's minimax forms
(Cephes) in float32, made at Chebyshev's points in float64; erf in float32 follows N.
Juffa's two-piece form, in float64 Cephes' ndtr.c.
Errors, from tests against longdouble on 400,000 arguments: at most 2 units in the
last place. `_f4` functions take float32, `_f8` float64; NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__: list[str] = []

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64


def reduced_f4(y: Any) -> Any:
    """Return n and e^r - 1 for y = n ln 2 + r, |y| < 200."""
    shifted = y * f4(1.44269504088896341) + f4(12582912.0)
    n = shifted - f4(12582912.0)
    r = y - n * f4(0.693359375)
    r = r - n * f4(-2.12194440e-4)
    p = f4(1.9875691500e-4)
    p = p * r + f4(1.3981999507e-3)
    p = p * r + f4(8.3334519073e-3)
    p = p * r + f4(4.1665795894e-2)
    p = p * r + f4(1.6666665459e-1)
    p = p * r + f4(5.0000001201e-1)
    return i4(f4(shifted).view(np.int32) - i4(0x4B400000)), p * (r * r) + r


def reduced_f8(y: Any) -> Any:
    """Return n and e^r - 1 for y = n ln 2 + r, |y| < 2000."""
    n, r = remainder_f8(y)
    return n, near_f8(r)


def remainder_f8(y: Any) -> Any:
    """Return n and r for y = n ln 2 + r."""
    shifted = y * f8(1.4426950408889634073599) + f8(6755399441055744.0)
    n = shifted - f8(6755399441055744.0)
    r = y - n * f8(6.93145751953125e-1)
    r = r - n * f8(1.42860682030941723212e-6)
    return i8(f8(shifted).view(np.int64) - i8(0x4338000000000000)), r


def near_f8(r: Any) -> Any:
    """
    Return e^r - 1 for |r| <= 0.5.

    r + r^2 p(r), of which p interpolates at Chebyshev's points: 4e-18 off.
    """
    p = f8(1.6116496514371548e-10)
    p = p * r + f8(2.0962955815976076e-09)
    p = p * r + f8(2.505194670972162e-08)
    p = p * r + f8(2.7557076636642725e-07)
    p = p * r + f8(2.755731943362024e-06)
    p = p * r + f8(2.4801587616145414e-05)
    p = p * r + f8(0.00019841269841146993)
    p = p * r + f8(0.001388888888870455)
    p = p * r + f8(0.00833333333333336)
    p = p * r + f8(0.04166666666666706)
    p = p * r + f8(0.16666666666666666)
    p = p * r + f8(0.5)
    return p * (r * r) + r


def scaled_f4(v: Any, n: Any) -> Any:
    """Return v 2^n in two factors, so that neither leaves the normal numbers."""
    half = n >> i4(1)
    a = i4((half + i4(127)) << i4(23)).view(np.float32)
    b = i4((n - half + i4(127)) << i4(23)).view(np.float32)
    return v * a * b


def scaled_f8(v: Any, n: Any) -> Any:
    """Return v 2^n; see `scaled_f4`."""
    half = n >> i8(1)
    a = i8((half + i8(1023)) << i8(52)).view(np.float64)
    b = i8((n - half + i8(1023)) << i8(52)).view(np.float64)
    return v * a * b


def clamped(x: Any, low: Any, high: Any) -> Any:
    """Return x between two bounds; NaN stays."""
    y = max(x, low)
    return min(y, high)


def exp_f4(x: Any) -> Any:
    """e^x; overflow is inf, underflow is gradual."""
    n, v = reduced_f4(clamped(x, f4(-104.0), f4(89.0)))
    return scaled_f4(v + f4(1.0), n)


def exp_f8(x: Any) -> Any:
    """e^x; overflow is inf, underflow is gradual."""
    n, v = reduced_f8(clamped(x, f8(-746.0), f8(710.0)))
    return scaled_f8(v + f8(1.0), n)


def exp2_f4(x: Any) -> Any:
    """2^x; whole x gives the power itself."""
    y = clamped(x, f4(-151.0), f4(129.0))
    shifted = y + f4(12582912.0)
    _, v = reduced_f4((y - (shifted - f4(12582912.0))) * f4(0.693147180559945309))
    return scaled_f4(v + f4(1.0), i4(f4(shifted).view(np.int32) - i4(0x4B400000)))


def exp2_f8(x: Any) -> Any:
    """2^x; whole x gives the power itself."""
    y = clamped(x, f8(-1076.0), f8(1025.0))
    shifted = y + f8(6755399441055744.0)
    rest = y - (shifted - f8(6755399441055744.0))
    v = near_f8(rest * f8(0.693147180559945309417))
    return scaled_f8(
        v + f8(1.0), i8(f8(shifted).view(np.int64) - i8(0x4338000000000000))
    )


def expm1_f4(x: Any) -> Any:
    """e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)); tiny x is itself."""
    n, v = reduced_f4(clamped(x, f4(-80.0), f4(89.0)))
    a = i4((n + i4(126)) << i4(23)).view(np.float32)
    y = (a * v + (a - f4(0.5))) * f4(2.0)
    return x if abs(x) < f4(2.9802322387695312e-8) else y


def expm1_f8(x: Any) -> Any:
    """e^x - 1; see `expm1_f4`. The polynomial serves up to 1/2."""
    near = abs(x) < f8(0.5)
    n, v = reduced_f8(clamped(x, f8(-700.0), f8(710.0)))
    n, v = i8(0) if near else n, near_f8(x) if near else v
    a = i8((n + i8(1022)) << i8(52)).view(np.float64)
    y = (a * v + (a - f8(0.5))) * f8(2.0)
    return x if abs(x) < f8(5.551115123125783e-17) else y


def tanh_f4(x: Any) -> Any:
    """
    Return tanh |x| = E / (E + 2) with E = e^2|x| - 1 = 2^n v + (2^n - 1).

    What E + 2 loses is made good where E < 2; beyond, it does not show.
    """
    n, v = reduced_f4(clamped(abs(x) * f4(2.0), f4(0.0), f4(20.0)))
    a = i4((n + i4(127)) << i4(23)).view(np.float32)
    e = a * v + (a - f4(1.0))
    down = e + f4(2.0)
    y = e / down
    lost = (down - f4(2.0)) - e
    y = y + y * (lost * f4(0.5)) if down < f4(4.0) else y
    sign = f4(x).view(np.int32) & i4(-0x80000000)
    return i4(f4(y).view(np.int32) | sign).view(np.float32)


def tanh_f8(x: Any) -> Any:
    """Return tanh; see `tanh_f4`. The polynomial serves |x| up to 1/4."""
    y = clamped(abs(x) * f8(2.0), f8(0.0), f8(40.0))
    near = y < f8(0.5)
    n, r = remainder_f8(y)
    n, v = i8(0) if near else n, near_f8(y if near else r)
    a = i8((n + i8(1023)) << i8(52)).view(np.float64)
    e = a * v + (a - f8(1.0))
    down = e + f8(2.0)
    y = e / down
    lost = (down - f8(2.0)) - e
    y = y + y * (lost * f8(0.5)) if down < f8(4.0) else y
    sign = f8(x).view(np.int64) & i8(-0x8000000000000000)
    return i8(f8(y).view(np.int64) | sign).view(np.float64)


def expit_f4(x: Any) -> Any:
    """1 / (1 + e^-x), without overflow, with the digits lost by both sums."""
    n, v = reduced_f4(clamped(-abs(x), f4(-104.0), f4(0.0)))
    e = v + f4(1.0)
    small = scaled_f4(e, n)
    down = small + f4(1.0)
    lost = (v - (e - f4(1.0))) * (f4(1.0) - v)
    lost = lost - (small - (down - f4(1.0))) * (f4(1.5) - f4(0.5) * down)
    q = e / down
    return f4(1.0) / down if x >= f4(0.0) else scaled_f4(q + q * lost, n)


def expit_f8(x: Any) -> Any:
    """1 / (1 + e^-x); see `expit_f4`."""
    n, v = reduced_f8(clamped(-abs(x), f8(-746.0), f8(0.0)))
    e = v + f8(1.0)
    small = scaled_f8(e, n)
    down = small + f8(1.0)
    lost = (v - (e - f8(1.0))) * (f8(1.0) - v)
    lost = lost - (small - (down - f8(1.0))) * (f8(1.5) - f8(0.5) * down)
    q = e / down
    return f8(1.0) / down if x >= f8(0.0) else scaled_f8(q + q * lost, n)


def erf_f4(x: Any) -> Any:
    """Return the error function: a polynomial below 0.9277, else 1 - e^q(|x|)."""
    a = abs(x)
    s = x * x
    r = f4(-1.72853470e-5) * a + f4(3.83197126e-4)
    u = f4(-3.88396438e-3) * a + f4(2.42546219e-2)
    r = r * s + u
    r = r * a + f4(-1.06777877e-1)
    r = r * a + f4(-6.34846687e-1)
    r = r * a + f4(-1.28717512e-1)
    far = f4(1.0) - exp_f4(r * a - a)
    far = f4(1.0) if a > f4(4.0) else far
    far = -far if x < f4(0.0) else far
    p = f4(-5.96761703e-4)
    p = p * s + f4(4.99119423e-3)
    p = p * s + f4(-2.67681349e-2)
    p = p * s + f4(1.12819925e-1)
    p = p * s + f4(-3.76125336e-1)
    p = p * s + f4(1.28379166e-1)
    near = p * x + x
    return near if not a > f4(0.927734375) else far


def erf_f8(x: Any) -> Any:
    """Return the error function: Cephes' (T - U)/U below 1, else 1 - e^(-x^2) P/Q."""
    s = x * x
    t = f8(-1.0) * s + f8(-2.395674042487979357821e1)
    t = t * s + f8(-4.313319300597684108733e2)
    t = t * s + f8(-2.36231848376295808761e3)
    t = t * s + f8(-1.562567492026104266987e4)
    t = t * s + f8(6.3249070401759041682e3)
    u = s + f8(3.35617141647503099647e1)
    u = u * s + f8(5.21357949780152679795e2)
    u = u * s + f8(4.59432382970980127987e3)
    u = u * s + f8(2.26290000613890934246e4)
    u = u * s + f8(4.92673942608635921086e4)
    near = x + x * (t / u)
    far = f8(1.0) - erfc_f8(clamped(abs(x), f8(1.0), f8(6.0)))
    far = -far if x < f8(0.0) else far
    return near if not abs(x) > f8(1.0) else far


def erfc_f8(a: Any) -> Any:
    """Return 1 - erf between 1 and 6, to the precision that 1 - it needs."""
    p = f8(2.46196981473530512524e-10)
    p = p * a + f8(5.64189564831068821977e-1)
    p = p * a + f8(7.46321056442269912687e0)
    p = p * a + f8(4.86371970985681366614e1)
    p = p * a + f8(1.96520832956077098242e2)
    p = p * a + f8(5.26445194995477358631e2)
    p = p * a + f8(9.34528527171957607540e2)
    p = p * a + f8(1.02755188689515710272e3)
    p = p * a + f8(5.57535335369399327526e2)
    q = a + f8(1.32281951154744992508e1)
    q = q * a + f8(8.67072140885989742329e1)
    q = q * a + f8(3.54937778887819891062e2)
    q = q * a + f8(9.75708501743205489753e2)
    q = q * a + f8(1.82390916687909736289e3)
    q = q * a + f8(2.24633760818710981792e3)
    q = q * a + f8(1.65666309194161350182e3)
    q = q * a + f8(5.57535340817727675546e2)
    return exp_f8(-a * a) * (p / q)
