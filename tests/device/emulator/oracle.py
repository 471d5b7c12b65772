"""Round as IEEE 754 says, by other means than the emulator: libm and the FPU's mode."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np

_LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
for _name, _kind in (("fma", ctypes.c_double), ("fmaf", ctypes.c_float)):
    getattr(_LIBM, _name).restype = _kind
    getattr(_LIBM, _name).argtypes = [_kind] * 3
_ARM = platform.machine() in ("aarch64", "arm64")
_MODES = {
    "rn": 0,
    "rm": 0x800000 if _ARM else 0x400,
    "rp": 0x400000 if _ARM else 0x800,
    "rz": 0xC00000 if _ARM else 0xC00,
}
MODES = tuple(_MODES)


@contextmanager
def rounding(mode: str) -> Iterator[None]:
    """Set the FPU's rounding mode: NumPy's float32 and float64 follow it."""
    with np.errstate(all="ignore"):
        _LIBM.fesetround(_MODES[mode])
        try:
            yield
        finally:
            _LIBM.fesetround(0)


def fma(a, b, c, mode="rn"):
    """Return libm's fused multiply-add of equal-shaped arrays in a mode."""
    function = _LIBM.fmaf if a.dtype == np.float32 else _LIBM.fma
    rows = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    with rounding(mode):
        found = [function(*row) for row in rows]
    return np.array(found, a.dtype)


def specials(dtype):
    """Return values where float arithmetic goes wrong."""
    info = np.finfo(dtype)
    positive = [0.0, 1.0, 1 + info.eps, 1 - info.epsneg, 3.0, 0.1, info.max, np.inf]
    positive += [info.tiny, info.smallest_subnormal, info.tiny * (1 - info.epsneg)]
    positive += [info.max / 2, 2.0**-10, 65504.0, 0.5 + info.eps]
    values = np.array([*positive, np.nan], dtype)
    return np.concatenate([values, -values])


def triples(dtype, count=4000, seed=0):
    """Return special and random triples, with many near-cancellations and ties."""
    cube = np.array(list(itertools.product(specials(dtype), repeat=3)), dtype).T
    random = np.random.default_rng(seed)
    spread = 20 if dtype == np.float16 else 100
    scale = np.exp2(random.integers(-spread // 4, spread // 4, (3, count)))
    values = (random.standard_normal((3, count)) * scale).astype(dtype)
    near = values.copy()
    with np.errstate(all="ignore"):
        near[2] = -(near[0] * near[1])
    bits = random.integers(
        0, np.iinfo(f"u{dtype().itemsize}").max, (3, count), f"u{dtype().itemsize}"
    )
    few = values.copy()
    few[:2] = np.round(few[:2] * 8) / 8
    return np.concatenate([cube, values, near, few, bits.view(dtype)], axis=1)


def same(found, expected):
    """Compare bit by bit, with all NaN equal."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    bits = f"u{found.dtype.itemsize}"
    equal = np.ascontiguousarray(found).view(bits) == np.ascontiguousarray(
        expected
    ).view(bits)
    if found.dtype.kind == "f":
        equal |= np.isnan(found) & np.isnan(expected)
    wrong = np.flatnonzero(~equal)
    return (
        ""
        if not len(wrong)
        else (
            f"{len(wrong)} differ, first at {wrong[0]}: "
            f"{found[wrong[0]]!r} instead of {expected[wrong[0]]!r}"
        )
    )


def round_exact(exact: Fraction, digits: int, least: int, most: float, mode: str):
    """
    Round a rational to `digits` bits, exponents from 2**least upward.

    Works on integers alone: the quotient by the unit in the last place is floored
    and the remainder decides.
    """
    if exact == 0:
        return 0.0
    size = abs(exact)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** power > size:
        power -= 1
    unit = Fraction(2) ** max(power - digits + 1, least)
    steps, rest = divmod(size, unit)
    up = {
        "rn": rest * 2 > unit or (rest * 2 == unit and steps % 2 == 1),
        "rz": False,
        "rm": exact < 0 and rest > 0,
        "rp": exact > 0 and rest > 0,
        "rna": rest * 2 >= unit,
    }[mode]
    value = (steps + up) * unit
    sign = -1.0 if exact < 0 else 1.0
    if value > Fraction(most):
        inward = mode == "rz" or ((mode == "rm") == (exact > 0) and mode != "rn")
        return sign * (most if inward and mode in ("rz", "rm", "rp") else float("inf"))
    return sign * float(value)
