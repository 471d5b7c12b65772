"""A matrix product in long double at the speed of float64's BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.tuner.inputs import Array

__all__ = ["product"]

DIRECT = 1 << 22
"""Multiplications that NumPy's own long double loop may take (about 10 ms)."""

SLICES = 3


def product(x: Array, w: Array) -> Any:
    """
    Return x @ w; large long double products are split into exact float64 ones.

    Ozaki, Ogita, Oishi and Rump, Numer. Algorithms 59, 2012: slices of x and w short
    enough that float64 multiplies them without rounding. Three slices of about 20 bits
    leave less than 2**-60 of a row's largest times a column's largest element. What is
    not finite is taken from the float64 product.
    """
    work = x.size * (w.shape[-1] if w.ndim > 1 else 1)
    if (
        np.result_type(x, w) != np.longdouble
        or work <= DIRECT
        or min(x.ndim, w.ndim) < 2
    ):
        return np.matmul(x, w)
    bits = (53 - int(np.ceil(np.log2(x.shape[-1])))) // 2
    left, right = slices(x, -1, bits), slices(w, -2, bits)
    total: Any = np.longdouble(0)
    for i, j in ((0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)):
        total = total + np.matmul(left[i], right[j])
    rough = np.matmul(x.astype(np.float64), w.astype(np.float64))
    return np.where(np.isfinite(rough) & np.isfinite(total), total, rough)


def slices(array: Array, axis: int, bits: int) -> list[Array]:
    """Split into float64 arrays of `bits` bits below the largest along an axis."""
    rest, found = array.astype(np.longdouble), []
    for _ in range(SLICES):
        top = np.max(np.abs(rest), axis=axis, keepdims=True, initial=0.0)
        _, exponent = np.frexp(top)
        unit = np.ldexp(np.longdouble(1), exponent - bits)
        part = np.rint(rest / unit) * unit
        found.append(part.astype(np.float64))
        rest = rest - part
    return found
