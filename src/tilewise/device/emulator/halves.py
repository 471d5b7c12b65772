"""
Hold f16 and bf16 arithmetic, single and packed in pairs.

NumPy's float16 rounds straight from float64 (`astype`), once. bf16 is the upper half
of a float32; sums are rounded to odd first, so the narrowing rounds once. Source of
the formats: PTX ISA, "Alternate Floating-Point Data Formats".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.floats import F64, flush, odd_sum, toward

__all__ = [
    "add",
    "fma",
    "from_bf16",
    "half_op",
    "join",
    "narrow_bf16",
    "narrow_f16",
    "narrow_f32",
    "narrow_tf32",
    "split",
]

Array: TypeAlias = Any
_U16: Final = np.uint16


def from_bf16(x: Array) -> Array:
    """Return the float32 value of bf16 bits."""
    return (np.asarray(x, np.uint32) << np.uint32(16)).view(np.float32)


def _odd_f32(x: Array) -> Array:
    """Round float64 to float32 to odd, so a later narrowing rounds once."""
    near = np.asarray(x, F64).astype(np.float32)
    cut = toward(near, np.asarray(x, F64) - near, "rz")
    inexact = (cut != x) & ~np.isnan(x)
    return (cut.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)


def narrow_f32(x: Array, mode: str) -> Array:
    """Round float64 to float32 in a mode."""
    near = np.asarray(x).astype(np.float32)
    return toward(near, x - near, mode) if mode != "rn" else near


def narrow_f16(x: Array, mode: str) -> Array:
    """Round float32 or float64 to float16 in a mode."""
    near = np.asarray(x).astype(np.float16)
    return toward(near, x - near, mode) if mode != "rn" else near


def narrow_bf16(x: Array, mode: str) -> Array:
    """Round float32 or float64 to bf16 bits in a mode; NaN becomes 0x7fff."""
    x = np.asarray(x)
    if x.dtype == F64:
        x = _odd_f32(x)
    bits = x.view(np.uint32)
    cut = (bits >> np.uint32(16)).astype(np.uint32)
    rest = bits & np.uint32(0xFFFF)
    if mode == "rn":
        up = rest + (cut & np.uint32(1)) > np.uint32(0x8000)
    else:
        negative = np.signbit(x)
        up = {"rz": False, "rm": negative, "rp": ~negative}[mode] & (rest != 0)
    out = cut + np.asarray(up, np.uint32)
    return np.where(np.isnan(x), _U16(0x7FFF), out.astype(_U16))


def narrow_tf32(x: Array, mode: str) -> Array:
    """Round float32 to tf32 (10 bits of fraction) held in 32 bits: rna, rn or rz."""
    bits = np.asarray(x).view(np.uint32)
    rest, cut = bits & np.uint32(0x1FFF), bits & ~np.uint32(0x1FFF)
    if mode == "rna":
        up = rest >= np.uint32(0x1000)
    elif mode == "rn":
        up = rest + ((cut >> np.uint32(13)) & np.uint32(1)) > np.uint32(0x1000)
    else:
        up = np.zeros(rest.shape, bool)
    out = cut + (np.asarray(up, np.uint32) << np.uint32(13))
    return np.where(
        np.isnan(x), np.uint32(0x7FFFFFFF), np.where(np.isinf(x), bits, out)
    )


def split(x: Array) -> tuple[Array, Array]:
    """Return the lower and upper 16 bits of 32."""
    return x.astype(_U16), (x >> np.uint32(16)).astype(_U16)


def join(low: Array, high: Array) -> Array:
    """Return 32 bits of a lower and an upper half."""
    upper = np.asarray(high).view(_U16).astype(np.uint32) << np.uint32(16)
    return np.asarray(low).view(_U16).astype(np.uint32) | upper


def half_op(
    type_: str, compute: Callable[..., Array], *, ftz: bool = False, sat: bool = False
) -> Callable[..., Array]:
    """
    Return an operation on f16, bf16, f16x2 or bf16x2 values.

    `compute` takes and returns float64; the result is rounded to nearest even.
    """
    bf16 = type_.startswith("bf16")

    def wide(x: Array) -> Array:
        value = from_bf16(x) if bf16 else np.asarray(x).view(np.float16)
        if ftz:
            value = flush(value)
        return np.asarray(value, F64)

    def single(*operands: Array) -> Array:
        result = compute(*(wide(x) for x in operands))
        if sat:
            result = np.where(result > 0, np.minimum(result, 1.0), 0.0)
        if ftz and bf16:
            tiny = np.abs(result) < 2.0**-126
            result = np.where(tiny, np.copysign(0.0, result), result)
        out = narrow_bf16(result, "rn") if bf16 else narrow_f16(result, "rn")
        return flush(out) if ftz and not bf16 else out

    def pair(*operands: Array) -> Array:
        lows, highs = zip(*(split(x) for x in operands), strict=True)
        return join(single(*lows), single(*highs))

    return pair if type_.endswith("x2") else single


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of halves in float64, rounded to odd: the product is exact."""
    return odd_sum(a * b, c)


def add(a: Array, b: Array) -> Array:
    """Return a + b of halves in float64, rounded to odd."""
    return odd_sum(a, b)
