"""
List floating-point opcodes, one row each (notation: `rows_integer`).

Approximations (`.approx`, `ex2`, `tanh`, ...) are computed in float64 and rounded
once: the ISA bounds their error and does not fix their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator import floats, halves
from tilewise.device.emulator.convert import converter, pair_converter
from tilewise.device.emulator.rows_integer import THREE, TWO, comparison
from tilewise.device.emulator.table import Row

__all__ = ["ROWS"]

Groups: TypeAlias = Mapping[str, str]
Array: TypeAlias = Any
Function: TypeAlias = Callable[..., Array]
ONE: Final = "d:t = a:t"

#: Operations by opcode and size: each takes a rounding mode.
_ROUNDED: Final[Mapping[str, Mapping[str, Callable[[str], Function]]]] = {
    "add": {"f32": floats.add_f32, "f64": floats.add_f64},
    "mul": {"f32": floats.mul_f32, "f64": floats.mul_f64},
    "div": {"f32": floats.div_f32, "f64": floats.div_f64},
    "sqrt": {"f32": floats.sqrt_f32, "f64": floats.sqrt_f64},
    "fma": {"f32": floats.fma_f32, "f64": floats.fma_f64},
}


def _wrapped(function: Function, g: Groups) -> Function:
    """Add `.ftz` on the way in and out, and `.sat` on the way out."""
    ftz, sat = "ftz" in g, "sat" in g
    if not ftz and not sat:
        return function

    def compute(*operands: Array) -> Array:
        if ftz:
            operands = tuple(floats.flush(x) for x in operands)
        out = function(*operands)
        if ftz:
            out = floats.flush(out)
        return floats.saturate(out) if sat else out

    return compute


def _rounded(name: str) -> Callable[[Groups], Function]:
    return lambda g: _wrapped(_ROUNDED[name][g["t"]](g.get("rnd", "rn")), g)


def _subtract(g: Groups) -> Function:
    if g.get("rnd", "rn") == "rn":
        return _wrapped(np.subtract, g)
    add = _ROUNDED["add"][g["t"]](g["rnd"])
    return _wrapped(lambda a, b: add(a, -b), g)


def _reciprocal(g: Groups) -> Function:
    divide = _ROUNDED["div"][g["t"]](g.get("rnd", "rn"))
    one = np.float32(1) if g["t"] == "f32" else np.float64(1)
    return _wrapped(lambda a: divide(one, a), g)


def _approximate(function: Function) -> Callable[[Groups], Function]:
    def factory(g: Groups) -> Function:
        kind = np.float32 if g["t"] == "f32" else np.float64

        def compute(*operands: Array) -> Array:
            wide = [np.asarray(x, np.float64) for x in operands]
            return kind(function(*wide))

        return _wrapped(compute, g)

    return factory


def _half(function: Function) -> Callable[[Groups], Function]:
    def factory(g: Groups) -> Function:
        return halves.half_op(g["t"], function, ftz="ftz" in g, sat="sat" in g)

    return factory


def _extreme(name: str) -> Callable[[Groups], Function]:
    numbers = {"min": floats.minimum, "max": floats.maximum}[name]
    keeps_nan = {"min": np.minimum, "max": np.maximum}[name]

    def factory(g: Groups) -> Function:
        def with_nan(a: Array, b: Array) -> Array:
            return np.where(np.isnan(a) | np.isnan(b), keeps_nan(a, b), numbers(a, b))

        chosen = with_nan if "nan" in g else numbers
        if g["t"] not in ("f32", "f64"):
            return halves.half_op(g["t"], chosen, ftz="ftz" in g)
        return _wrapped(chosen, g)

    return factory


def _sign_op(name: str) -> Callable[[Groups], Function]:
    def factory(g: Groups) -> Function:
        bits = {"f16": np.uint16, "bf16": np.uint16}.get(g["t"], np.uint32)
        mask = bits(0x8000 if bits is np.uint16 else 0x80008000)
        if name == "neg":
            return lambda a: (a.view(bits) ^ mask).view(a.dtype)
        return lambda a: (a.view(bits) & ~mask).view(a.dtype)

    return factory


def _testp(g: Groups) -> Function:
    tiny = {"f32": np.float32(2**-126), "f64": np.float64(2.0**-1022)}[g["t"]]
    tests: Mapping[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return tests[g["test"]]


def _set_half(g: Groups) -> Function | str:
    compare = comparison(g["cmp"], "f64")
    if isinstance(compare, str):
        return compare
    bf16, pair = g["t"].startswith("bf16"), g["t"].endswith("x2")
    if pair != ("pair" in g):
        return f".{g['t']} takes {'p|q' if pair else 'one predicate'}"

    def wide(x: Array) -> Array:
        return halves.from_bf16(x) if bf16 else np.asarray(x).view(np.float16)

    def compute(a: Array, b: Array) -> Array:
        if not pair:
            return compare(wide(a), wide(b))
        lows, highs = zip(halves.split(a), halves.split(b), strict=True)
        low = compare(wide(lows[0]), wide(lows[1]))
        return low, compare(wide(highs[0]), wide(highs[1]))

    return compute


_F32: Final = "<t:f32>"
_F64: Final = "<t:f64>"
_HALVES: Final = "<t:f16|f16x2|bf16|bf16x2>"
_APPROXIMATIONS: Final = (
    ("ex2", np.exp2),
    ("lg2", np.log2),
    ("sin", np.sin),
    ("cos", np.cos),
    ("sqrt", np.sqrt),
    ("rsqrt", lambda x: 1.0 / np.sqrt(x)),
    ("rcp", lambda x: 1.0 / x),
)

_SINGLE: Final = (
    *(
        Row(f"{name}[<rnd>][<ftz>][<sat>]{_F32}", TWO, _rounded(name))
        for name in ("add", "mul")
    ),
    *(Row(f"{name}[<rnd>]{_F64}", TWO, _rounded(name)) for name in ("add", "mul")),
    Row(f"sub[<rnd>][<ftz>][<sat>]{_F32}", TWO, _subtract),
    Row(f"sub[<rnd>]{_F64}", TWO, _subtract),
    *(
        Row(f"{name}<rnd>[<ftz>][<sat>]{_F32}", THREE, _rounded("fma"))
        for name in ("fma", "mad")
    ),
    *(Row(f"{name}<rnd>{_F64}", THREE, _rounded("fma")) for name in ("fma", "mad")),
    Row(f"div<rnd>[<ftz>]{_F32}", TWO, _rounded("div")),
    Row(f"div<rnd>{_F64}", TWO, _rounded("div")),
    Row(f"div<kind:approx|full>[<ftz>]{_F32}", TWO, _approximate(np.divide)),
    Row(f"sqrt<rnd>[<ftz>]{_F32}", ONE, _rounded("sqrt")),
    Row(f"sqrt<rnd>{_F64}", ONE, _rounded("sqrt")),
    Row(f"rcp<rnd>[<ftz>]{_F32}", ONE, _reciprocal),
    Row(f"rcp<rnd>{_F64}", ONE, _reciprocal),
    *(
        Row(f"{name}.approx[<ftz>]{_F32}", ONE, _approximate(function))
        for name, function in _APPROXIMATIONS
    ),
    Row("rcp.approx<ftz><t:f64>", ONE, _approximate(np.reciprocal)),
    Row("rsqrt.approx[<ftz>]<t:f64>", ONE, _approximate(lambda x: 1.0 / np.sqrt(x))),
    Row(f"tanh.approx{_F32}", ONE, _approximate(np.tanh)),
    Row(f"abs[<ftz>]{_F32}", ONE, lambda g: _wrapped(np.abs, g)),
    Row(f"abs{_F64}", ONE, "np.abs({a})"),
    Row(f"neg[<ftz>]{_F32}", ONE, lambda g: _wrapped(np.negative, g)),
    Row(f"neg{_F64}", ONE, "-{a}"),
    *(
        Row(f"{name}[<ftz>][<nan:NaN>]{_F32}", TWO, _extreme(name))
        for name in ("min", "max")
    ),
    *(Row(f"{name}{_F64}", TWO, _extreme(name)) for name in ("min", "max")),
    Row("copysign<t:f32|f64>", TWO, "np.copysign({b}, {a})"),
    Row(
        "testp<test:finite|infinite|number|notanumber|normal|subnormal><t:f32|f64>",
        "d:pred = a:t",
        _testp,
    ),
)

_HALF_ROWS: Final = (
    Row("fma.rn[<ftz>][<sat>]<t:f16|f16x2>", THREE, _half(halves.fma)),
    Row("fma.rn<t:bf16|bf16x2>", THREE, _half(halves.fma)),
    *(
        Row(f"{name}[.rn][<ftz>][<sat>]<t:f16|f16x2>", TWO, _half(function))
        for name, function in (
            ("add", halves.add),
            ("sub", lambda a, b: halves.add(a, -b)),
            ("mul", np.multiply),
        )
    ),
    *(
        Row(f"{name}[.rn]<t:bf16|bf16x2>", TWO, _half(function))
        for name, function in (
            ("add", halves.add),
            ("sub", lambda a, b: halves.add(a, -b)),
            ("mul", np.multiply),
        )
    ),
    *(Row(f"{name}{_HALVES}", ONE, _sign_op(name)) for name in ("neg", "abs")),
    *(
        Row(f"{name}[<ftz>][<nan:NaN>]{_HALVES}", TWO, _extreme(name))
        for name in ("min", "max")
    ),
    Row("ex2.approx<t:f16|f16x2>", ONE, _half(np.exp2)),
    Row("ex2.approx<ftz><t:bf16|bf16x2>", ONE, _half(np.exp2)),
    Row("tanh.approx<t:f16|f16x2|bf16|bf16x2>", ONE, _half(np.tanh)),
    Row("setp<cmp><t:f16|bf16>", "d:pred = a:t b:t", _set_half),
    Row("setp<cmp><t:f16x2|bf16x2>", "d:pred|e:pred = a:t b:t", _set_half),
)

_CVT_TYPES: Final = "u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64"
_CONVERSIONS: Final = (
    Row(
        "cvt[<r:rn|rz|rm|rp|rni|rzi|rmi|rpi>][<ftz>][<relu>][<sat>]"
        f"<d:{_CVT_TYPES}><s:{_CVT_TYPES}>",
        "d:d = a:s",
        converter,
    ),
    Row("cvt<r:rna|rn|rz><d:tf32><s:f32>", "d:d = a:s", converter),
    Row(
        "cvt<r:rn|rz>[<relu>]<d:f16x2|bf16x2>.f32",
        "d:d = a:f32 b:f32",
        pair_converter,
    ),
)

ROWS: Final = _SINGLE + _HALF_ROWS + _CONVERSIONS
