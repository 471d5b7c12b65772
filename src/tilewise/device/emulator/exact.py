"""
Round exact rationals to float64, lane by lane: slow, for lanes where it matters.

Python's integer true division is correctly rounded to nearest even, also for
subnormal results; directed modes step from there by the sign of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["divide_f64", "exactly", "fma_f64", "sqrt_f64"]


def _rounded(exact: Fraction, mode: str) -> float:
    """Round a rational to float64 in mode rn, rz, rm or rp."""
    try:
        near = exact.numerator / exact.denominator
    except OverflowError:
        near = math.inf if exact > 0 else -math.inf
    if mode == "rn":
        return near
    if math.isinf(near):
        above = near < 0
    else:
        error = exact - Fraction(near)
        if error == 0:
            return near
        above = error > 0
    return _step(near, above, mode, exact < 0)


def _step(near: float, above: bool, mode: str, negative: bool) -> float:
    down = mode == "rm" or (mode == "rz" and not negative)
    if down and not above:
        return math.nextafter(near, -math.inf)
    if not down and above:
        return math.nextafter(near, math.inf)
    return near


def fma_f64(a: float, b: float, c: float, mode: str) -> float:
    """Return a * b + c with one rounding (IEEE 754-2019, 5.4.1)."""
    if not all(map(math.isfinite, (a, b))):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return _rounded(exact, mode) or (-0.0 if exact < 0 else 0.0)
    product_sign = math.copysign(1, a) * math.copysign(1, b)
    if product_sign == math.copysign(1, c):
        return math.copysign(0.0, c)
    return -0.0 if mode == "rm" else 0.0


def divide_f64(a: float, b: float, mode: str) -> float:
    """Return a / b rounded in a directed mode; both are finite and b is not 0."""
    exact = Fraction(a) / Fraction(b)
    sign = math.copysign(1, a) * math.copysign(1, b)
    return _rounded(exact, mode) or math.copysign(0.0, sign)


def sqrt_f64(a: float, mode: str) -> float:
    """Return the square root of a positive finite number in a directed mode."""
    near = math.sqrt(a)
    error = Fraction(a) - Fraction(near) ** 2
    return _step(near, error > 0, mode, negative=False) if error else near


def exactly(
    scalar: Callable[..., float], near: Any, lanes: Any, *operands: Any
) -> np.ndarray[Any, Any]:
    """Replace `near` in the chosen lanes by a scalar function of the operands."""
    out = np.array(np.broadcast_to(near, np.shape(lanes)), np.float64)
    spread = [np.broadcast_to(operand, out.shape) for operand in operands]
    for at in zip(*np.nonzero(lanes), strict=True):
        out[at] = scalar(*(float(operand[at]) for operand in spread))
    return out
