"""Integer opcodes, one by one, run as PTX against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.syntax import PtxError
from tilewise.device.emulator.types import DTYPES

INT = ("u16", "s16", "u32", "s32", "u64", "s64")
NARROW = ("u16", "s16", "u32", "s32")
WIDE = ("u32", "s32", "u64", "s64")


def _operands(type_, count=3):
    info = np.iinfo(DTYPES[type_])
    random = np.random.default_rng(13)
    edges = [info.min, info.max, 0, 1, 5, info.max - 1]
    rows = [[x, y, z] for x in edges for y in edges for z in edges]
    wide = random.integers(info.min, info.max, (40, 3), DTYPES[type_], endpoint=True)
    rows += wide.tolist()
    columns = list(zip(*rows, strict=True))
    return [np.array(c, DTYPES[type_]) for c in columns[:count]]


def wrap(value, type_):
    """Return an integer cut to a type's bits."""
    bits = 8 * DTYPES[type_].itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_[0] == "s" and value >> (bits - 1) else value


def _check(apply, text, type_, function, out=None, count=2):
    operands = _operands(type_, count)
    out = out or type_
    named = {n: (type_, v) for n, v in zip("abc", operands, strict=False)}
    found = apply(text.format(t=type_), out, **named)
    rows = zip(*(v.tolist() for v in operands), strict=True)
    expected = [function(*row) for row in rows]
    if out != "pred":
        expected = [wrap(int(v), out) for v in expected]
    assert expected == found.tolist(), text.format(t=type_)


def _double(type_):
    return f"{type_[0]}{16 * DTYPES[type_].itemsize}"


@pytest.mark.parametrize("type_", INT)
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("add.{t} %d, %a, %b;", lambda a, b: a + b),
        ("sub.{t} %d, %a, %b;", lambda a, b: a - b),
        ("mul.lo.{t} %d, %a, %b;", lambda a, b: a * b),
        ("min.{t} %d, %a, %b;", min),
        ("max.{t} %d, %a, %b;", max),
        ("add.{t} %d, %a, 5;", lambda a, b: a + 5),
        ("sub.{t} %d, 0x7, %b;", lambda a, b: 7 - b),
    ],
)
def test_two_operands(apply, type_, text, function):
    """Sums, differences, products and extremes wrap around."""
    _check(apply, text, type_, function)


@pytest.mark.parametrize("type_", INT)
def test_division(apply, type_):
    """Quotient and remainder cut toward zero."""

    def quotient(a, b):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1

    _check(apply, "div.{t} %d, %a, %b;", type_, quotient)
    _check(
        apply,
        "rem.{t} %d, %a, %b;",
        type_,
        lambda a, b: a - quotient(a, b) * b if b else a,
    )


@pytest.mark.parametrize("type_", INT)
def test_multiply_and_add(apply, type_):
    """mad.lo, mad.hi and mul.hi keep a half of the product."""
    bits = 8 * DTYPES[type_].itemsize
    _check(apply, "mul.hi.{t} %d, %a, %b;", type_, lambda a, b: a * b >> bits)
    _check(
        apply, "mad.lo.{t} %d, %a, %b, %c;", type_, lambda a, b, c: a * b + c, count=3
    )
    _check(
        apply,
        "mad.hi.{t} %d, %a, %b, %c;",
        type_,
        lambda a, b, c: (a * b >> bits) + c,
        count=3,
    )


@pytest.mark.parametrize("type_", NARROW)
def test_wide_products(apply, type_):
    """mul.wide and mad.wide lose nothing."""
    wide = _double(type_)
    _check(apply, "mul.wide.{t} %d, %a, %b;", type_, lambda a, b: a * b, out=wide)
    a, b = _operands(type_, 2)
    c = np.arange(len(a)).astype(DTYPES[wide])

    found = apply(
        f"mad.wide.{type_} %d, %a, %b, %c;",
        wide,
        a=(type_, a),
        b=(type_, b),
        c=(wide, c),
    )

    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    assert [wrap(x * y + z, wide) for x, y, z in rows] == found.tolist()


@pytest.mark.parametrize("type_", ["s16", "s32", "s64"])
def test_signs(apply, type_):
    """Neg and abs wrap at the smallest number."""
    _check(apply, "neg.{t} %d, %a;", type_, lambda a: -a, count=1)
    _check(apply, "abs.{t} %d, %a;", type_, abs, count=1)


def test_saturating_sums(apply):
    """add.sat and sub.sat stop at the ends of s32; relu cuts below zero."""
    least, most = -(2**31), 2**31 - 1

    def clamp(value):
        return min(max(value, least), most)

    _check(apply, "add.sat.s32 %d, %a, %b;", "s32", lambda a, b: clamp(a + b))
    _check(apply, "sub.sat.s32 %d, %a, %b;", "s32", lambda a, b: clamp(a - b))
    _check(apply, "min.relu.s32 %d, %a, %b;", "s32", lambda a, b: max(min(a, b), 0))
    _check(apply, "max.relu.s32 %d, %a, %b;", "s32", lambda a, b: max(a, b, 0))


@pytest.mark.parametrize("type_", WIDE)
def test_carry_chains(apply, type_):
    """The carry goes from .cc into the next instruction."""
    bits = 8 * DTYPES[type_].itemsize
    mask = (1 << bits) - 1

    def after(text, function):
        _check(apply, text, type_, function)

    after(
        "add.cc.{t} %d, %a, %b; addc.{t} %d, 0, 0;",
        lambda a, b: ((a & mask) + (b & mask)) >> bits,
    )
    after(
        "sub.cc.{t} %d, %a, %b; subc.{t} %d, 0, 0;",
        lambda a, b: -((a & mask) < (b & mask)),
    )
    after(
        "add.cc.{t} %d, %a, %b; addc.cc.{t} %d, -1, 0; addc.{t} %d, 0, 0;",
        lambda a, b: ((a & mask) + (b & mask)) >> bits,
    )
    after(
        "sub.cc.{t} %d, %a, %b; subc.cc.{t} %d, 0, 0; subc.{t} %d, 0, 0;",
        lambda a, b: -((a & mask) < (b & mask)),
    )
    after(
        "mad.lo.cc.{t} %d, %a, %b, %b; addc.{t} %d, 0, 0;",
        lambda a, b: ((a * b & mask) + (b & mask)) >> bits,
    )
    after(
        "add.cc.{t} %d, -1, 1; madc.hi.{t} %d, %a, %b, 3;",
        lambda a, b: (a * b >> bits) + 4,
    )
    after(
        "add.cc.{t} %d, -1, 1; madc.lo.cc.{t} %d, %a, %b, 3; addc.{t} %d, 0, 0;",
        lambda a, b: ((a * b & mask) + 4) >> bits,
    )


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_bits(apply, bits):
    """and, or, xor and not, also written with bit types."""
    type_ = f"u{bits}"
    for name, function in (
        ("and", lambda a, b: a & b),
        ("or", lambda a, b: a | b),
        ("xor", lambda a, b: a ^ b),
    ):
        _check(apply, f"{name}.b{bits} %d, %a, %b;", type_, function)
    _check(apply, f"not.b{bits} %d, %a;", type_, lambda a: ~a, count=1)


@pytest.mark.parametrize("type_", INT)
def test_shifts(apply, type_):
    """Shifts past the width give zeros, or the sign."""
    a = _operands(type_, 1)[0]
    by = np.resize([0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 200], len(a)).astype("u4")
    bits = 8 * DTYPES[type_].itemsize
    named = {"a": (type_, a), "b": ("u32", by)}
    rows = list(zip(a.tolist(), by.tolist(), strict=True))

    left = apply(f"shl.b{bits} %d, %a, %b;", type_, **named)
    right = apply(f"shr.{type_} %d, %a, %b;", type_, **named)

    assert [wrap(x << n, type_) for x, n in rows] == left.tolist()
    assert [x >> n for x, n in rows] == right.tolist()


def test_bit_tools(apply):
    """clz, popc, brev, bfind, bfe, bfi, shf, lop3, prmt and dp4a are wired."""
    one = {"a": ("u32", [0, 1, 0x80000000, 0x00F0])}
    four = {"a": ("u32", [0x01020304]), "b": ("u32", [0x0A0B0C0D])}

    assert [32, 31, 0, 24] == apply("clz.b32 %d, %a;", "u32", **one).tolist()
    assert [0, 1, 1, 4] == apply("popc.b32 %d, %a;", "u32", **one).tolist()
    assert [0, 2**31, 1, 0x0F000000] == apply("brev.b32 %d, %a;", "u32", **one).tolist()
    assert [2**32 - 1, 0, 31, 7] == apply("bfind.u32 %d, %a;", "u32", **one).tolist()
    shifted = apply("bfind.shiftamt.u32 %d, %a;", "u32", **one)
    assert [2**32 - 1, 31, 0, 24] == shifted.tolist()
    assert [0, 0, 0, 15] == apply("bfe.u32 %d, %a, 4, 4;", "u32", **one).tolist()
    assert [0x010C0D04] == apply("bfi.b32 %d, %b, %a, 8, 16;", "u32", **four).tolist()
    wrapped = apply("shf.l.wrap.b32 %d, %a, %b, 8;", "u32", **four)
    assert [0x0B0C0D01] == wrapped.tolist()
    clamped = apply("shf.r.clamp.b32 %d, %a, %b, 40;", "u32", **four)
    assert [0x0A0B0C0D] == clamped.tolist()
    assert [0x0B0B0F0D] == apply(
        "lop3.b32 %d, %a, %b, 0, 0xFC;", "u32", **four
    ).tolist()
    assert [0x0D0C0403] == apply("prmt.b32 %d, %a, %b, 0x4501;", "u32", **four).tolist()
    dot = apply("dp4a.u32.u32 %d, %a, %b, 1;", "u32", **four)
    assert [1 + 10 + 22 + 36 + 52] == dot.tolist()
    assert [16] == apply("sad.u32 %d, %a, 5, 10;", "u32", a=("u32", [11])).tolist()


@pytest.mark.parametrize("type_", INT)
def test_comparisons(apply, type_):
    """Setp compares as its type does."""
    unsigned = type_[0] == "u"
    for name, function in (
        ("eq", lambda a, b: a == b),
        ("ne", lambda a, b: a != b),
        ("lt", lambda a, b: a < b),
        ("le", lambda a, b: a <= b),
        ("gt", lambda a, b: a > b),
        ("ge", lambda a, b: a >= b),
        *(
            (("hi", lambda a, b: a > b), ("ls", lambda a, b: a <= b))
            if unsigned
            else ()
        ),
    ):
        _check(apply, f"setp.{name}.{{t}} %d, %a, %b;", type_, function, out="pred")


def test_comparison_with_a_second_result_and_a_third_operand(apply):
    """setp.lt.and p|q, a, b, c gives (a < b) and c, and not (a < b) and c."""
    a, b = np.array([1, 2, 1, 2]), np.array([2, 1, 2, 1])
    c = np.array([True, True, False, False])

    p, q = apply(
        "setp.lt.and.s32 %d|%e, %a, %b, %c;",
        {"d": "pred", "e": "pred"},
        a=("s32", a),
        b=("s32", b),
        c=("pred", c),
    )
    negated = apply(
        "setp.lt.or.s32 %d, %a, %b, !%c;",
        "pred",
        a=("s32", a),
        b=("s32", b),
        c=("pred", c),
    )

    assert [True, False, False, False] == p.tolist()
    assert [False, True, False, False] == q.tolist()
    assert [True, False, True, True] == negated.tolist()


def test_selection(apply):
    """selp, slct and set choose by a predicate, a sign and a comparison."""
    a, b, c = ("s32", [1, 2]), ("s32", [3, 4]), ("pred", [True, False])

    assert [1, 4] == apply("selp.b32 %d, %a, %b, %c;", "s32", a=a, b=b, c=c).tolist()
    sign = ("s32", [0, -1])
    chosen = apply("slct.s32.s32 %d, %a, %b, %c;", "s32", a=a, b=b, c=sign)
    assert [1, 4] == chosen.tolist()
    assert [-1, 0] == apply("set.lt.s32.s32 %d, %a, 2;", "s32", a=a).tolist()
    assert [1.0, 0.0] == apply("set.lt.f32.s32 %d, %a, 2;", "f32", a=a).tolist()


def test_predicates_are_logic(apply):
    """and, or, xor and not work on predicates."""
    p, q = [True, True, False, False], [True, False, True, False]
    named = {"a": ("pred", p), "b": ("pred", q)}

    both = apply("and.pred %d, %a, %b;", "pred", **named)
    one = apply("xor.pred %d, %a, %b;", "pred", **named)
    none = apply("not.pred %d, %a;", "pred", **named)

    assert [True, False, False, False] == both.tolist()
    assert [False, True, True, False] == one.tolist()
    assert [False, False, True, True] == none.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "add.sat.u32 %d, %a, %b;",
        "mul.u32 %d, %a, %b;",
        "mul.wide.u64 %d, %a, %b;",
        "add.u32 %d, %a;",
        "add.u32 %d, %a, %b, %b;",
        "setp.hi.s32 %d, %a, %b;",
        "shl.u32 %d, %a, %b;",
        "add.b32 %d, %a, %b;",
        "vadd.u32 %d, %a, %b;",
        "add.u64 %d, %a, %b;",
    ],
)
def test_what_the_isa_does_not_have_is_refused(apply, text):
    """Unknown opcodes, modifiers, operand counts and sizes are errors with a line."""
    with pytest.raises(PtxError) as caught:
        apply(text, "u32", a=("u32", [1]), b=("u32", [2]))

    assert caught.value.line > 0
    assert text.rstrip(";") == caught.value.text
