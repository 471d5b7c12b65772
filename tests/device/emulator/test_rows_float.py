"""Floating-point opcodes, one by one, run as PTX."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewise.device.emulator.halves import from_bf16, narrow_bf16
from tilewise.device.emulator.syntax import PtxError

MODES = ("rn", "rz", "rm", "rp")
KIND = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def _triples(oracle, type_):
    values = oracle.triples(KIND[type_], 200)
    return values[:, :: 40 if type_ == "f64" else 12]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_rounded_arithmetic(apply, oracle, type_, mode):
    """add, sub, mul, div, fma, mad, sqrt and rcp follow their mode."""
    a, b, c = _triples(oracle, type_)
    named = {"a": (type_, a), "b": (type_, b), "c": (type_, c)}
    one = KIND[type_](1)
    for name, function in (
        ("add", np.add),
        ("sub", np.subtract),
        ("mul", np.multiply),
        ("div", np.divide),
        ("sqrt", lambda x, y: np.sqrt(x)),
        ("rcp", lambda x, y: one / x),
    ):
        operands = "%a" if name in ("sqrt", "rcp") else "%a, %b"
        found = apply(f"{name}.{mode}.{type_} %d, {operands};", type_, **named)
        with oracle.rounding(mode):
            expected = function(a, b)
        assert (name, "") == (name, oracle.same(found, expected))
    for name in ("fma", "mad"):
        found = apply(f"{name}.{mode}.{type_} %d, %a, %b, %c;", type_, **named)
        assert (name, "") == (name, oracle.same(found, oracle.fma(a, b, c, mode)))


def test_default_rounding_is_to_nearest(apply, oracle):
    """add, sub and mul without a mode are those of NumPy."""
    a, b, _ = _triples(oracle, "f32")
    named = {"a": ("f32", a), "b": ("f32", b)}
    for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        found = apply(f"{name}.f32 %d, %a, %b;", "f32", **named)

        assert "" == oracle.same(found, function(a, b))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma.rn"])
def test_flush_and_saturate(apply, oracle, name):
    """`.ftz` flushes inputs and result, `.sat` clamps the result."""
    a, b, c = _triples(oracle, "f32")
    named = {"a": ("f32", a), "b": ("f32", b), "c": ("f32", c)}

    def flush(x):
        return np.where(np.abs(x) < np.float32(2**-126), np.copysign(x * 0, x), x)

    x, y, z = flush(a), flush(b), flush(c)
    plain = {
        "add": lambda: x + y,
        "sub": lambda: x - y,
        "mul": lambda: x * y,
        "fma.rn": lambda: oracle.fma(x, y, z),
    }[name]()
    expected = np.clip(np.nan_to_num(flush(plain), nan=0.0), 0, 1).astype(np.float32)
    operands = "%a, %b, %c" if name == "fma.rn" else "%a, %b"

    found = apply(f"{name}.ftz.sat.f32 %d, {operands};", "f32", **named)

    assert "" == oracle.same(found + np.float32(0), expected + np.float32(0))


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("ex2.approx.f32 %d, %a;", lambda x: 2.0**x),
        ("lg2.approx.f32 %d, %a;", math.log2),
        ("sin.approx.f32 %d, %a;", math.sin),
        ("cos.approx.f32 %d, %a;", math.cos),
        ("tanh.approx.f32 %d, %a;", math.tanh),
        ("sqrt.approx.f32 %d, %a;", math.sqrt),
        ("rsqrt.approx.f32 %d, %a;", lambda x: 1 / math.sqrt(x)),
        ("rcp.approx.f32 %d, %a;", lambda x: 1 / x),
        ("div.approx.f32 %d, %a, 0f40400000;", lambda x: x / 3),
        ("div.full.f32 %d, %a, 0f40400000;", lambda x: x / 3),
    ],
)
def test_approximations_are_close(apply, text, function):
    """Approximations are within one unit in the last place of the exact value."""
    a = np.linspace(0.01, 9.5, 300).astype(np.float32)
    expected = np.array([function(x) for x in a.tolist()], np.float32)

    found = apply(text, "f32", a=("f32", a))

    assert (np.abs(found - expected) <= np.spacing(np.abs(expected))).all()


def test_approximations_at_the_edges(apply):
    """Limits of the ISA's tables: ex2, lg2, rcp and rsqrt at zeros and infinities."""
    a = ("f32", [0.0, -0.0, np.inf, -np.inf, np.nan])
    for text, expected in (
        ("ex2.approx.f32 %d, %a;", [1, 1, np.inf, 0, np.nan]),
        ("lg2.approx.f32 %d, %a;", [-np.inf, -np.inf, np.inf, np.nan, np.nan]),
        ("rcp.approx.f32 %d, %a;", [np.inf, -np.inf, 0, -0.0, np.nan]),
        ("rsqrt.approx.f32 %d, %a;", [np.inf, -np.inf, 0, np.nan, np.nan]),
        ("tanh.approx.f32 %d, %a;", [0, -0.0, 1, -1, np.nan]),
    ):
        found = apply(text, "f32", a=a)

        np.testing.assert_array_equal(found, np.array(expected, np.float32), text)


def test_approximations_flush(apply):
    """`.ftz` makes a subnormal input zero."""
    a = ("f32", np.array([1e-40, -1e-40], np.float32))

    assert [np.inf, -np.inf] == apply("rcp.approx.ftz.f32 %d, %a;", "f32", a=a).tolist()
    assert [1.0, 1.0] == apply("ex2.approx.ftz.f32 %d, %a;", "f32", a=a).tolist()


def test_double_approximations(apply):
    """Rcp and rsqrt of f64 have an approximate form."""
    a = ("f64", [4.0, 0.25])

    assert [0.25, 4.0] == apply("rcp.approx.ftz.f64 %d, %a;", "f64", a=a).tolist()
    assert [0.5, 2.0] == apply("rsqrt.approx.f64 %d, %a;", "f64", a=a).tolist()


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_signs_and_extremes(apply, oracle, type_):
    """neg, abs, copysign, min and max, NaN and zeros included."""
    a, b, _ = _triples(oracle, type_)
    named = {"a": (type_, a), "b": (type_, b)}
    zeros = (a == 0) & (b == 0)
    high = np.where(zeros, a + b, np.fmax(a, b))
    low = np.where(zeros, -((-a) + (-b)), np.fmin(a, b))

    for text, expected in (
        (f"neg.{type_} %d, %a;", -a),
        (f"abs.{type_} %d, %a;", np.abs(a)),
        (f"copysign.{type_} %d, %a, %b;", np.copysign(b, a)),
        (f"max.{type_} %d, %a, %b;", high),
        (f"min.{type_} %d, %a, %b;", low),
    ):
        assert (text, "") == (text, oracle.same(apply(text, type_, **named), expected))


def test_extremes_may_keep_nan(apply):
    """`.NaN` gives NaN when either is one."""
    named = {"a": ("f32", [1.0, np.nan, 2.0]), "b": ("f32", [np.nan, 1.0, 3.0])}

    high = apply("max.NaN.f32 %d, %a, %b;", "f32", **named)
    low = apply("min.NaN.f32 %d, %a, %b;", "f32", **named)

    np.testing.assert_array_equal([np.nan, np.nan, 3.0], high)
    np.testing.assert_array_equal([np.nan, np.nan, 2.0], low)


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_comparisons_and_nan(apply, oracle, type_):
    """Ordered comparisons are false for NaN, unordered ones true."""
    a, b, _ = _triples(oracle, type_)
    nan = np.isnan(a) | np.isnan(b)
    ordered = {
        "eq": a == b,
        "ne": a != b,
        "lt": a < b,
        "le": a <= b,
        "gt": a > b,
        "ge": a >= b,
    }
    expected = {name: value & ~nan for name, value in ordered.items()}
    expected |= {f"{name}u": value | nan for name, value in ordered.items()}
    expected |= {"num": ~nan, "nan": nan}
    for name, value in expected.items():
        text = f"setp.{name}.{type_} %d, %a, %b;"
        found = apply(text, "pred", a=(type_, a), b=(type_, b))

        assert (name, value.tolist()) == (name, found.tolist())


def test_classes(apply):
    """Testp tells finite, infinite, NaN, normal and subnormal apart."""
    a = ("f32", [1.0, np.inf, np.nan, 1e-40, 0.0])
    for name, expected in (
        ("finite", [1, 0, 0, 1, 1]),
        ("infinite", [0, 1, 0, 0, 0]),
        ("number", [1, 1, 0, 1, 1]),
        ("notanumber", [0, 0, 1, 0, 0]),
        ("normal", [1, 0, 0, 0, 0]),
        ("subnormal", [0, 0, 0, 1, 0]),
    ):
        found = apply(f"testp.{name}.f32 %d, %a;", "pred", a=a)

        assert (name, expected) == (name, found.astype(int).tolist())


def test_half_arithmetic(apply, oracle):
    """f16 sums, products and fma round once; packed pairs do both halves."""
    a, b, c = _triples(oracle, "f16")
    named = {"a": ("f16", a), "b": ("f16", b), "c": ("f16", c)}
    for text, expected in (
        ("add.f16 %d, %a, %b;", a + b),
        ("sub.rn.f16 %d, %a, %b;", a - b),
        ("mul.f16 %d, %a, %b;", a * b),
        ("neg.f16 %d, %a;", -a),
        ("abs.f16 %d, %a;", np.abs(a)),
        ("ex2.approx.f16 %d, %a;", np.exp2(a.astype("f8")).astype("f2")),
        ("tanh.approx.f16 %d, %a;", np.tanh(a.astype("f8")).astype("f2")),
    ):
        assert (text, "") == (text, oracle.same(apply(text, "f16", **named), expected))
    pairs = {
        n: ("f16x2", np.ascontiguousarray(v[: len(v) // 2 * 2]).view("u4"))
        for n, (_, v) in named.items()
    }
    found = apply("fma.rn.f16x2 %d, %a, %b, %c;", "f16x2", **pairs).view("f2")
    single = apply("fma.rn.f16 %d, %a, %b, %c;", "f16", **named)[: len(found)]

    assert "" == oracle.same(found, single)


def test_bf16_arithmetic(apply):
    """bf16 works on the upper half of float32 and rounds once."""
    random = np.random.default_rng(17)
    a, b, c = (narrow_bf16(x, "rn") for x in random.standard_normal((3, 500)))
    x, y, z = (from_bf16(v).astype(np.float64) for v in (a, b, c))
    named = {"a": ("bf16", a), "b": ("bf16", b), "c": ("bf16", c)}
    for text, expected in (
        ("add.bf16 %d, %a, %b;", x + y),
        ("sub.bf16 %d, %a, %b;", x - y),
        ("mul.bf16 %d, %a, %b;", x * y),
        ("fma.rn.bf16 %d, %a, %b, %c;", x * y + z),
        ("max.bf16 %d, %a, %b;", np.maximum(x, y)),
        ("neg.bf16 %d, %a;", -x),
    ):
        found = apply(text, "bf16", **named)

        assert (text, narrow_bf16(expected, "rn").tolist()) == (text, found.tolist())


def test_half_comparisons(apply):
    """Setp on halves, and on both halves of a pair."""
    a, b = np.array([1, 2, 3, 4], np.float16), np.array([2, 1, 3, 5], np.float16)

    single = apply("setp.lt.f16 %d, %a, %b;", "pred", a=("f16", a), b=("f16", b))
    low, high = apply(
        "setp.lt.f16x2 %d|%e, %a, %b;",
        {"d": "pred", "e": "pred"},
        a=("f16x2", a.view("u4")),
        b=("f16x2", b.view("u4")),
    )

    assert [True, False, False, True] == single.tolist()
    assert [True, False] == low.tolist()
    assert [False, True] == high.tolist()


@pytest.mark.parametrize(
    ("text", "d", "s", "value", "expected"),
    [
        ("cvt.rzi.s32.f32 %d, %a;", "s32", "f32", -2.7, -2),
        ("cvt.rni.f32.f32 %d, %a;", "f32", "f32", 2.5, 2.0),
        ("cvt.rmi.f64.f64 %d, %a;", "f64", "f64", -2.5, -3.0),
        ("cvt.sat.f32.f32 %d, %a;", "f32", "f32", 7.0, 1.0),
        ("cvt.rn.f16.f32 %d, %a;", "f16", "f32", 1.0004, 1.0),
        ("cvt.rp.f16.f32 %d, %a;", "f16", "f32", 1.0004, 1.0009765625),
        ("cvt.f32.f16 %d, %a;", "f32", "f16", 1.5, 1.5),
        ("cvt.rn.f32.f64 %d, %a;", "f32", "f64", 0.1, np.float32(0.1)),
        ("cvt.f64.f32 %d, %a;", "f64", "f32", 0.5, 0.5),
        ("cvt.rn.bf16.f32 %d, %a;", "bf16", "f32", 1.0, 0x3F80),
        ("cvt.f32.bf16 %d, %a;", "f32", "bf16", 0x3F80, 1.0),
        ("cvt.rna.tf32.f32 %d, %a;", "tf32", "f32", 1.0, 0x3F800000),
        ("cvt.rn.f32.s64 %d, %a;", "f32", "s64", -3, -3.0),
        ("cvt.u64.u32 %d, %a;", "u64", "u32", 2**32 - 1, 2**32 - 1),
        ("cvt.s64.s32 %d, %a;", "s64", "s32", -1, -1),
        ("cvt.u16.u32 %d, %a;", "u16", "u32", 0x12345, 0x2345),
        ("cvt.s32.s8 %d, %a;", "s32", "s32", 0x80, -128),
        ("cvt.sat.u8.s32 %d, %a;", "u32", "s32", 300, 255),
        ("cvt.rn.f16x2.f32 %d, %a, %a;", "f16x2", "f32", 1.0, 0x3C003C00),
    ],
)
def test_conversions(apply, text, d, s, value, expected):
    """Cvt reads and writes registers of the right types and sizes."""
    assert [expected] == apply(text, d, a=(s, [value])).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "fma.f32 %d, %a, %b, %c;",
        "add.rn.sat.rz.f32 %d, %a, %b;",
        "ex2.f32 %d, %a;",
        "div.f32 %d, %a, %b;",
        "sqrt.rn.f16 %d, %a;",
        "cvt.s32.f32 %d, %a;",
        "max.xorsign.abs.f32 %d, %a, %b;",
        "fma.rn.relu.f32 %d, %a, %b, %c;",
        "setp.lo.f32 %d, %a, %b;",
        "tanh.approx.f64 %d, %a;",
    ],
)
def test_what_is_not_there_is_refused(apply, text):
    """A modifier that would be ignored is an error with its line."""
    with pytest.raises(PtxError) as caught:
        apply(text, "f32", **{n: ("f32", [1.0]) for n in "abc"})

    assert caught.value.line > 0
