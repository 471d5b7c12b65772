"""
List integer, bit, comparison and selection opcodes, one row each.

Operands read "results = sources", each "name:type"; a type is a PTX type or a group
of the pattern. `cc` is the carry flag. `emit` is an expression over the sources, or a
function of the pattern's groups that returns the function to call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator import integers
from tilewise.device.emulator.floats import flush
from tilewise.device.emulator.table import Row
from tilewise.device.emulator.types import DTYPES, is_float, size_of, widened

__all__ = ["ROWS", "THREE", "TWO", "comparison"]

Groups: TypeAlias = Mapping[str, str]
TWO: Final = "d:t = a:t b:t"
THREE: Final = "d:t = a:t b:t c:t"
CARRY: Final = "d:t cc:pred = a:t b:t"
CARRIED: Final = "d:t = a:t b:t cc:pred"
CARRY_ON: Final = "d:t cc:pred = a:t b:t cc:pred"
NO_CARRY: Final = np.zeros((), bool)


def _saturating(sign: int) -> Callable[[Groups], Callable[[Any, Any], Any]]:
    def compute(a: Any, b: Any) -> Any:
        total = np.asarray(a, np.int64) + sign * np.asarray(b, np.int64)
        return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)

    return lambda g: compute


def _carry(kind: str, *, writes: bool) -> Callable[[Groups], Any]:
    step = integers.add_carry if kind == "add" else integers.sub_borrow

    def compute(a: Any, b: Any, carry: Any = NO_CARRY) -> Any:
        result = step(a, b, carry)
        return result if writes else result[0]

    return lambda g: compute


def _mad_carry(*, writes: bool) -> Callable[[Groups], Any]:
    def factory(g: Groups) -> Any:
        high = integers.mul_hi(g["t"]) if g["half"] == "hi" else np.multiply

        def compute(a: Any, b: Any, c: Any, carry: Any = NO_CARRY) -> Any:
            result = integers.add_carry(high(a, b), c, carry)
            return result if writes else result[0]

        return compute

    return factory


def _mad_hi(g: Groups) -> Any:
    high = integers.mul_hi(g["t"])
    return lambda a, b, c: high(a, b) + c


def _wide(template: str) -> Callable[[Groups], Any]:
    def factory(g: Groups) -> Any:
        kind = DTYPES[widened(g["t"])].type
        if template == "mul":
            return lambda a, b: np.multiply(a, b, dtype=kind)
        return lambda a, b, c: np.multiply(a, b, dtype=kind) + c

    return factory


_ARITHMETIC: Final = (
    Row("add<t:int>", TWO, "{a} + {b}"),
    Row("sub<t:int>", TWO, "{a} - {b}"),
    Row("add.sat<t:s32>", TWO, _saturating(1)),
    Row("sub.sat<t:s32>", TWO, _saturating(-1)),
    Row("add.cc<t:u32|s32|u64|s64>", CARRY, _carry("add", writes=True)),
    Row("addc<t:u32|s32|u64|s64>", CARRIED, _carry("add", writes=False)),
    Row("addc.cc<t:u32|s32|u64|s64>", CARRY_ON, _carry("add", writes=True)),
    Row("sub.cc<t:u32|s32|u64|s64>", CARRY, _carry("sub", writes=True)),
    Row("subc<t:u32|s32|u64|s64>", CARRIED, _carry("sub", writes=False)),
    Row("subc.cc<t:u32|s32|u64|s64>", CARRY_ON, _carry("sub", writes=True)),
    Row("mul.lo<t:int>", TWO, "{a} * {b}"),
    Row("mul.hi<t:int>", TWO, lambda g: integers.mul_hi(g["t"])),
    Row("mul.wide<t:u16|u32|s16|s32>", "d:t*2 = a:t b:t", _wide("mul")),
    Row("mad.lo<t:int>", THREE, "{a} * {b} + {c}"),
    Row("mad.hi<t:int>", THREE, _mad_hi),
    Row("mad.wide<t:u16|u32|s16|s32>", "d:t*2 = a:t b:t c:t*2", _wide("mad")),
    Row(
        "mad<half:lo|hi>.cc<t:u32|s32|u64|s64>",
        "d:t cc:pred = a:t b:t c:t",
        _mad_carry(writes=True),
    ),
    Row(
        "madc<half:lo|hi><t:u32|s32|u64|s64>",
        "d:t = a:t b:t c:t cc:pred",
        _mad_carry(writes=False),
    ),
    Row(
        "madc<half:lo|hi>.cc<t:u32|s32|u64|s64>",
        "d:t cc:pred = a:t b:t c:t cc:pred",
        _mad_carry(writes=True),
    ),
    Row("div<t:int>", TWO, lambda g: integers.divide),
    Row("rem<t:int>", TWO, lambda g: integers.remainder),
    Row("abs<t:sint>", "d:t = a:t", "np.abs({a})"),
    Row("neg<t:sint>", "d:t = a:t", "-{a}"),
    Row("min<t:int>", TWO, "np.minimum({a}, {b})"),
    Row("max<t:int>", TWO, "np.maximum({a}, {b})"),
    Row("min.relu<t:s32>", TWO, "np.maximum(np.minimum({a}, {b}), 0)"),
    Row("max.relu<t:s32>", TWO, "np.maximum(np.maximum({a}, {b}), 0)"),
    Row(
        "dp4a<x:u32|s32><y:u32|s32>",
        "d:s32 = a:x b:y c:s32",
        lambda g: integers.dp4a(g["x"], g["y"]),
    ),
    Row(
        "sad<t:int>",
        THREE,
        "{c} + (np.maximum({a}, {b}) - np.minimum({a}, {b}))",
    ),
)

_BITS: Final = (
    Row("and<t:pred|b16|b32|b64>", TWO, "{a} & {b}"),
    Row("or<t:pred|b16|b32|b64>", TWO, "{a} | {b}"),
    Row("xor<t:pred|b16|b32|b64>", TWO, "{a} ^ {b}"),
    Row("not<t:pred|b16|b32|b64>", "d:t = a:t", "~{a}"),
    Row("shl<t:bits>", "d:t = a:t b:u32", "{a} << ({b}).astype(({a}).dtype)"),
    Row(
        "shr<t:b16|b32|b64|u16|u32|u64|s16|s32|s64>",
        "d:t = a:t b:u32",
        lambda g: _shift_right,
    ),
    Row(
        "shf<dir:l|r><mode:wrap|clamp>.b32",
        "d:b32 = a:b32 b:b32 c:u32",
        lambda g: integers.funnel(g["dir"], g["mode"]),
    ),
    Row("clz<t:b32|b64>", "d:u32 = a:t", lambda g: integers.clz),
    Row("popc<t:b32|b64>", "d:u32 = a:t", lambda g: integers.popc),
    Row("brev<t:b32|b64>", "d:t = a:t", lambda g: integers.brev),
    Row(
        "bfind[<amt:shiftamt>]<t:u32|u64|s32|s64>",
        "d:u32 = a:t",
        lambda g: integers.bfind(g["t"], shiftamt="amt" in g),
    ),
    Row(
        "bfe<t:u32|u64|s32|s64>",
        "d:t = a:t b:u32 c:u32",
        lambda g: integers.bfe(g["t"]),
    ),
    Row(
        "bfi<t:b32|b64>",
        "d:t = a:t b:t c:u32 e:u32",
        lambda g: integers.bfi(8 * size_of(g["t"])),
    ),
    Row("lop3.b32", "d:b32 = a:b32 b:b32 c:b32 e:u32", lambda g: integers.lop3),
    Row(
        "prmt.b32[<mode:f4e|b4e|rc8|ecl|ecr|rc16>]",
        "d:b32 = a:b32 b:b32 c:b32",
        lambda g: integers.prmt(g.get("mode", "")),
    ),
)


def _shift_right(a: Any, b: Any) -> Any:
    return a >> np.minimum(b, np.uint32(64)).astype(a.dtype)


def _ordered_ne(a: Any, b: Any) -> Any:
    return (a < b) | (a > b)


def _is_nan(a: Any, b: Any) -> Any:
    return np.isnan(a) | np.isnan(b)


def _not(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: ~compare(a, b)


#: An unordered comparison is the negation of the ordered opposite.
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "num": _not(_is_nan),
    "nan": _is_nan,
    "equ": _not(_ordered_ne),
    "neu": np.not_equal,
    "ltu": _not(np.greater_equal),
    "leu": _not(np.greater),
    "gtu": _not(np.less_equal),
    "geu": _not(np.less),
}
_UNORDERED: Final = ("num", "nan", "equ", "neu", "ltu", "leu", "gtu", "geu")
_UNSIGNED: Final = ("lo", "ls", "hi", "hs")
_LOGIC: Final = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_COMPARED: Final = "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"


def comparison(cmp: str, type_: str) -> Callable[[Any, Any], Any] | str:
    """Return the function of a comparison, or why the type does not have it."""
    floating = is_float(type_)
    refused = {
        "f": _UNSIGNED,
        "s": (*_UNSIGNED, *_UNORDERED),
        "u": _UNORDERED,
        "b": tuple(set(_COMPARE) - {"eq", "ne"}),
    }["f" if floating else type_[0]]
    if cmp in refused:
        return f".{cmp} does not go with .{type_}"
    return _ordered_ne if cmp == "ne" and floating else _COMPARE[cmp]


def _setp(g: Groups) -> Any:
    compare = comparison(g["cmp"], g["t"])
    if isinstance(compare, str):
        return compare
    join = _LOGIC.get(g.get("bool", ""))

    def compute(a: Any, b: Any, c: Any = None) -> Any:
        if "ftz" in g:
            a, b = flush(a), flush(b)
        first = compare(a, b)
        joined = first if join is None else join(first, c)
        if "pair" not in g:
            return joined
        return joined, ~first if join is None else join(~first, c)

    plain = join is None and "ftz" not in g and "pair" not in g
    return compare if plain else compute


def _set(g: Groups) -> Any:
    compare = comparison(g["cmp"], g["t"])
    if isinstance(compare, str):
        return compare
    zero = DTYPES[g["d"]].type(0)
    one = np.float32(1) if g["d"] == "f32" else ~zero
    return lambda a, b: np.where(compare(a, b), one, zero)


_SELECTION: Final = (
    Row(f"setp<cmp>[<ftz>]<t:{_COMPARED}>", "d:pred|e:pred = a:t b:t", _setp),
    Row(
        f"setp<cmp><bool>[<ftz>]<t:{_COMPARED}>",
        "d:pred|e:pred = a:t b:t c:pred",
        _setp,
    ),
    Row("set<cmp><d:u32|s32|f32><t:u32|s32|f32>", "d:d = a:t b:t", _set),
    Row("selp<t:scalar>", "d:t = a:t b:t c:pred", "np.where({c}, {a}, {b})"),
    Row(
        "slct<t:scalar><c:s32|f32>",
        "d:t = a:t b:t c:c",
        "np.where({c} >= 0, {a}, {b})",
    ),
)

ROWS: Final = _ARITHMETIC + _BITS + _SELECTION
