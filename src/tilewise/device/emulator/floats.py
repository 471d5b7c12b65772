"""
Compute PTX float arithmetic with its one rounding, over arrays.

Rounded to nearest, NumPy and the host's fma have the result. In the other modes
float32 results come from float64, whose product of two float32 is exact. A sum that
float64 rounds is rounded to odd, so that the second rounding is right (S. Boldo and
G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
rounding to odd", IEEE Trans. Computers 57(4), 2008). float64 results of those modes
are exact rationals, rounded lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator import exact
from tilewise.device.emulator.fused import fused

__all__ = [
    "F64",
    "add_f32",
    "add_f64",
    "div_f32",
    "div_f64",
    "flush",
    "fma_f32",
    "fma_f64",
    "maximum",
    "minimum",
    "mul_f32",
    "mul_f64",
    "odd_sum",
    "saturate",
    "sqrt_f32",
    "sqrt_f64",
    "toward",
    "two_sum",
]

Array: TypeAlias = Any
Binary: TypeAlias = Callable[[Array, Array], Array]

F64: Final = np.float64
_ONE: Final = np.uint64(1)
_TINY: Final = {2: np.float16(2**-14), 4: np.float32(2**-126), 8: F64(2**-1022)}
_BITS: Final = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the float64 sum and its exact error (D. Knuth, TAOCP 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def odd_sum(a: Array, b: Array) -> Array:
    """Return a + b of float64 rounded to odd: inexact sums have a last bit of one."""
    total, error = two_sum(a, b)
    even = (error != 0) & (np.asarray(total).view(np.uint64) & _ONE == 0)
    even &= np.isfinite(error)
    if not even.any():
        return total
    stepped = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(even, stepped, total)


def toward(near: Array, error: Array, mode: str) -> Array:
    """Move a nearest result by the sign of its error to mode rz, rm or rp."""
    if mode == "rn":
        return near
    low, high = error < 0, error > 0
    down = {"rm": low, "rp": False, "rz": low & (near > 0)}[mode]
    up = {"rm": False, "rp": high, "rz": high & (near < 0)}[mode]
    inf = near.dtype.type(np.inf)
    stepped = np.where(down, np.nextafter(near, -inf), near)
    return np.where(up, np.nextafter(near, inf), stepped)


def fma_f32(mode: str) -> Callable[[Array, Array, Array], Array]:
    """Return fma of float32: one rounding of a * b + c."""
    return fused() if mode == "rn" else partial(_fma_f32_directed, mode)


def _fma_f32_directed(mode: str, a: Array, b: Array, c: Array) -> Array:
    product = np.multiply(a, b, dtype=F64)
    return _narrow_sum(product, np.asarray(c, F64), mode)


def _narrow_sum(a: Array, b: Array, mode: str) -> Array:
    total = odd_sum(a, b)
    near = total.astype(np.float32)
    out = toward(near, total - near, mode)
    if mode == "rm":
        cancelled = (total == 0) & (np.signbit(a) != np.signbit(b))
        out = np.where(cancelled, np.float32(-0.0), out)
    return out


def add_f32(mode: str) -> Binary:
    """Return the float32 sum."""
    if mode == "rn":
        return np.add
    return lambda a, b: _narrow_sum(np.asarray(a, F64), np.asarray(b, F64), mode)


def mul_f32(mode: str) -> Binary:
    """Return the float32 product."""
    if mode == "rn":
        return np.multiply

    def product(a: Array, b: Array) -> Array:
        whole = np.multiply(a, b, dtype=F64)
        near = whole.astype(np.float32)
        return toward(near, whole - near, mode)

    return product


def div_f32(mode: str) -> Binary:
    """Return the float32 quotient; the residual a - q * b is exact in float64."""
    if mode == "rn":
        return np.divide

    def quotient(a: Array, b: Array) -> Array:
        near = np.divide(a, b)
        residual = np.asarray(a, F64) - np.multiply(near, b, dtype=F64)
        grown = np.isinf(near) & np.isfinite(a) & (b != 0)
        residual = np.where(grown, np.asarray(-near, F64) * np.sign(b), residual)
        small = (near == 0) & (a != 0) & np.isfinite(b)
        error = np.where(small, np.sign(a), residual) * np.sign(b)
        out = toward(near, error, mode)
        stepped = small & (out == 0)
        return np.where(stepped, np.copysign(out, near), out)

    return quotient


def sqrt_f32(mode: str) -> Callable[[Array], Array]:
    """Return the float32 square root."""
    if mode == "rn":
        return np.sqrt

    def root(a: Array) -> Array:
        near = np.sqrt(a)
        return toward(
            near, np.asarray(a, F64) - np.multiply(near, near, dtype=F64), mode
        )

    return root


def _scalar_fma(mode: str, a: float, b: float, c: float) -> float:
    return exact.fma_f64(a, b, c, mode)


def fma_f64(mode: str) -> Callable[[Array, Array, Array], Array]:
    """Return fma of float64: one rounding of a * b + c."""
    if mode == "rn":
        return fused()

    def directed(a: Array, b: Array, c: Array) -> Array:
        a, b, c = np.broadcast_arrays(a, b, c)
        everywhere = np.ones(a.shape, bool)
        return exact.exactly(partial(_scalar_fma, mode), a, everywhere, a, b, c)

    return directed


def add_f64(mode: str) -> Binary:
    """Return the float64 sum."""
    if mode == "rn":
        return np.add
    return lambda a, b: fma_f64(mode)(a, F64(1), b)


def mul_f64(mode: str) -> Binary:
    """Return the float64 product."""
    if mode == "rn":
        return np.multiply

    def product(a: Array, b: Array) -> Array:
        zero = np.copysign(F64(0), np.multiply(a, b))
        return fma_f64(mode)(a, b, zero)

    return product


def div_f64(mode: str) -> Binary:
    """Return the float64 quotient."""
    if mode == "rn":
        return np.divide

    def quotient(a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        lanes = np.isfinite(a) & np.isfinite(b) & (b != 0)
        scalar = partial(_swapped, exact.divide_f64, mode)
        return exact.exactly(scalar, np.divide(a, b), lanes, a, b)

    return quotient


def sqrt_f64(mode: str) -> Callable[[Array], Array]:
    """Return the float64 square root."""
    if mode == "rn":
        return np.sqrt

    def root(a: Array) -> Array:
        lanes = np.isfinite(a) & (a > 0)
        scalar = partial(_swapped, exact.sqrt_f64, mode)
        return exact.exactly(scalar, np.sqrt(a), lanes, a)

    return root


def _swapped(scalar: Callable[..., float], mode: str, *operands: float) -> float:
    return scalar(*operands, mode)


def flush(x: Array) -> Array:
    """Replace subnormals by zero of their sign (`.ftz`)."""
    tiny = _TINY[x.dtype.itemsize]
    return np.where(np.abs(x) < tiny, np.copysign(x.dtype.type(0), x), x)


def saturate(x: Array) -> Array:
    """Clamp to [0, 1] and turn NaN to +0 (`.sat`)."""
    kind = x.dtype.type
    return np.where(x > 0, np.minimum(x, kind(1)), kind(0))


def maximum(a: Array, b: Array) -> Array:
    """Return the larger, the number where one is NaN, and +0 over -0."""
    bits = _BITS[a.dtype.itemsize]
    same = (a.view(bits) & b.view(bits)).view(a.dtype)
    return np.where(a == b, same, np.fmax(a, b))


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller, the number where one is NaN, and -0 over +0."""
    bits = _BITS[a.dtype.itemsize]
    same = (a.view(bits) | b.view(bits)).view(a.dtype)
    return np.where(a == b, same, np.fmin(a, b))
