"""Operands of every form are read to their last token."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.lexer import tokens_of
from tilewise.device.emulator.operand import OperandReader
from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.syntax import (
    Address,
    Immediate,
    Label,
    Name,
    Negated,
    Pair,
    PtxError,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

R1, R2, Q = Register("%r1", "b32"), Register("%r2", "b32"), Register("%q", "pred")


def read(text):
    """Read one operand in a scope with a few names."""
    scope = Scope(None)
    scope.declare_range("%r", 9, "b32")
    scope.declare_register("%q", "pred")
    scope.declare_symbol("x")
    scope.declare_label("L")
    tokens = tuple(tokens_of(text)[:-1])
    return OperandReader(
        tokens, scope, {"table": tuple(tokens_of("L")[:1])}, text
    ).whole()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", R1),
        ("%tid.x", Special("tid.x")),
        ("-5", Immediate(-5, "int")),
        ("0f80000000", Immediate(0x80000000, "f32")),
        ("-0d3FF0000000000000", Immediate(0xBFF0000000000000, "f64")),
        ("1.0", Immediate(0x3FF0000000000000, "f64")),
        ("x+8", Symbol("x", 8)),
        ("L", Label("L")),
        ("_", Sink()),
        ("!%q", Negated(Q)),
        ("%r1|%q", Pair(R1, Q)),
        ("_|%q", Pair(Sink(), Q)),
        ("{%r1, %r2, 3}", Vector((R1, R2, Immediate(3, "int")))),
        ("(%r1)", Vector((R1,))),
        ("()", Vector(())),
        ("[%r1+-4]", Address(R1, -4)),
        ("[x + 4 + 8]", Address(Symbol("x"), 12)),
        ("[64]", Address(Immediate(64, "int"), 0)),
        ("printf", Name("printf")),
        ("table", Vector((Label("L"),))),
    ],
)
def test_forms(text, expected):
    """Registers, constants, addresses, vectors, pairs and names."""
    assert expected == read(text)


@pytest.mark.parametrize(
    "text",
    ["%r9", "%x", "[", "[%r1", "[%r1 %r2]", "{%r1", "%r1 %r2", "!x", "[L]", "+", "-"],
)
def test_what_is_no_operand_is_refused(text):
    """The error has the instruction's text."""
    with pytest.raises(PtxError) as caught:
        read(text)

    assert text == caught.value.text
