"""
Convert between PTX types: `cvt` with its rounding modes and saturation.

Source: PTX ISA, "Data Movement and Conversion Instructions: cvt". Float to integer
clamps to the range and turns NaN to 0; an integer narrows by cutting bits, or clamps
with `.sat`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.floats import F64, flush, saturate, toward
from tilewise.device.emulator.halves import (
    from_bf16,
    join,
    narrow_bf16,
    narrow_f16,
    narrow_f32,
    narrow_tf32,
)
from tilewise.device.emulator.types import DTYPES, is_float, size_of

__all__ = ["converter", "pair_converter"]

Array: TypeAlias = Any
Function: TypeAlias = Callable[[Array], Array]

_WHOLE: Final = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}
_DIRECTED: Final = ("rn", "rz", "rm", "rp")


def converter(groups: Mapping[str, str]) -> Function | str:
    """
    Return the conversion of an opcode's groups r, ftz, sat, relu, d and s.

    A combination that the ISA does not have is a string that says why.
    """
    r, d, s = groups.get("r", ""), groups["d"], groups["s"]
    reason = _reason(r, d, s, groups)
    if reason:
        return reason
    inner = _inner(r, d, s)
    return _wrapped(inner, groups)


def _reason(r: str, d: str, s: str, groups: Mapping[str, str]) -> str:
    if "relu" in groups and d not in ("f16", "bf16"):
        return f".relu needs a half result, not .{d}"
    if "ftz" in groups and "f32" not in (d, s):
        return ".ftz needs .f32"
    if is_float(s) and not is_float(d):
        return "" if r in _WHOLE else f".{d}.{s} needs a rounding to an integer"
    if not is_float(s) and not is_float(d):
        return f".{r} does not go with integers" if r else ""
    if not is_float(s):
        return "" if r in _DIRECTED else f".{d}.{s} needs a rounding mode"
    return _float_reason(r, d, s)


def _float_reason(r: str, d: str, s: str) -> str:
    if d == "tf32":
        ok = s == "f32" and r in ("rna", "rn", "rz")
        return "" if ok else "tf32 is made of f32 with .rna, .rn or .rz"
    if d == s:
        ok = r in ("", *_WHOLE) and (r == "" or d != "bf16")
        return "" if ok else f".{r} does not go with .{d}.{s}"
    narrows = size_of(d) < size_of(s) or (size_of(d) == size_of(s) == 2)
    if narrows:
        return "" if r in _DIRECTED else f".{d}.{s} needs a rounding mode"
    return f".{r} does not go with the wider .{d}" if r else ""


def _wrapped(inner: Function, groups: Mapping[str, str]) -> Function:
    d, s = groups["d"], groups["s"]
    ftz, relu = "ftz" in groups, "relu" in groups
    clamp = "sat" in groups and is_float(d)

    def convert(x: Array) -> Array:
        if ftz and s == "f32":
            x = flush(x)
        out = inner(x)
        if clamp:
            out = saturate(out) if d != "bf16" else out
        if ftz and d == "f32":
            out = flush(out)
        if relu:
            out = _relu(out, d)
        return out

    def clamped(x: Array) -> Array:
        return _clamp_integers(x, d)

    if "sat" in groups and not is_float(d) and not is_float(s):
        return clamped
    return convert if (ftz or relu or clamp) else inner


def _relu(x: Array, d: str) -> Array:
    if d == "bf16":
        return np.where(from_bf16(x) > 0, x, np.where(x == 0x7FFF, x, np.uint16(0)))
    return np.where(np.isnan(x), x, np.maximum(x, np.float16(0)))


def _clamp_integers(x: Array, d: str) -> Array:
    limits, own = np.iinfo(DTYPES[d]), np.iinfo(x.dtype)
    low, high = max(limits.min, own.min), min(limits.max, own.max)
    kind = x.dtype.type
    return np.minimum(np.maximum(x, kind(low)), kind(high)).astype(DTYPES[d])


def _inner(r: str, d: str, s: str) -> Function:
    if is_float(s) and not is_float(d):
        return _to_integer(r, d, s)
    if not is_float(s) and not is_float(d):
        return lambda x: x.astype(DTYPES[d])
    if not is_float(s):
        return _from_integer(r, d)
    return _float_to_float(r, d, s)


def _value(s: str) -> Function:
    return from_bf16 if s == "bf16" else lambda x: x


def _to_integer(r: str, d: str, s: str) -> Function:
    whole, dtype, value = _WHOLE[r], DTYPES[d], _value(s)
    limits = np.iinfo(dtype)

    def convert(x: Array) -> Array:
        rounded = whole(np.asarray(value(x), F64))
        high, low = rounded >= float(limits.max), rounded <= float(limits.min)
        bad = high | low | np.isnan(rounded)
        out = np.where(bad, 0.0, rounded).astype(dtype)
        out = np.where(high, dtype.type(limits.max), out)
        return np.where(low, dtype.type(limits.min), out)

    return convert


def _from_integer(r: str, d: str) -> Function:
    def convert(x: Array) -> Array:
        if d == "f64":
            near = x.astype(F64)
            return toward(near, _integer_error(x, near), r) if r != "rn" else near
        if d == "f32" and r == "rn":
            return x.astype(np.float32)
        odd = _odd_from_integer(x)
        return _narrow(d)(odd, r)

    return convert


def _integer_error(x: Array, near: Array) -> Array:
    """Return the sign of integer minus float64, exactly."""
    x, near = np.broadcast_arrays(x, near)
    pairs = zip(x.ravel().tolist(), near.ravel().tolist(), strict=True)
    signs = [float((i > int(f)) - (i < int(f))) for i, f in pairs]
    return np.array(signs).reshape(x.shape)


def _odd_from_integer(x: Array) -> Array:
    near = np.asarray(x.astype(F64))
    if x.dtype.itemsize < 8:
        return near
    error = _integer_error(x, near)
    even = (error != 0) & (near.view(np.uint64) & np.uint64(1) == 0)
    return np.where(even, np.nextafter(near, error * np.inf), near)


def _narrow(d: str) -> Callable[[Array, str], Array]:
    return {"f16": narrow_f16, "bf16": narrow_bf16, "f32": narrow_f32}[d]


def _float_to_float(r: str, d: str, s: str) -> Function:
    value = _value(s)
    if r in _WHOLE:
        whole = _WHOLE[r]
        return lambda x: whole(x).astype(DTYPES[d])
    if d == "tf32":
        return lambda x: narrow_tf32(x, r)
    if d == s:
        return lambda x: x
    if r:
        narrow = _narrow(d)
        return lambda x: narrow(value(x), r)
    return lambda x: value(x).astype(DTYPES[d])


def pair_converter(groups: Mapping[str, str]) -> Callable[[Array, Array], Array]:
    """Return `cvt` of two f32 into a packed pair: the first is the upper half."""
    d, r = groups["d"].removesuffix("x2"), groups["r"]
    narrow, relu = _narrow(d), "relu" in groups

    def convert(high: Array, low: Array) -> Array:
        halves = [narrow(low, r), narrow(high, r)]
        if relu:
            halves = [_relu(half, d) for half in halves]
        return join(*halves)

    return convert
