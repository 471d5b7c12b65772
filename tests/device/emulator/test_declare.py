"""Declarations have sizes, alignments and initial bytes."""

from __future__ import annotations

import struct

import pytest

from tilewise.device.emulator.declare import Declarations, integer_of
from tilewise.device.emulator.lexer import tokens_of
from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.syntax import Symbol


def declared(text):
    """Parse one declaration after its space."""
    return Declarations(tokens_of(text), text).variable("global", Scope(None))


@pytest.mark.parametrize(
    ("text", "nbytes", "align", "initial"),
    [
        (".u32 x;", 4, 4, b""),
        (".align 16 .b8 x[3] = {1, -1, 0x7f};", 3, 16, b"\1\xff\x7f"),
        (
            ".f32 x[2][3] = {{1, 2.5}, 0f40000000};",
            24,
            4,
            struct.pack("<6f", 1, 2.5, 2, 0, 0, 0),
        ),
        (".f64 x = 0d3FF8000000000000;", 8, 8, struct.pack("<d", 1.5)),
        (".s16 x[2] = {-2, 070};", 4, 2, struct.pack("<2h", -2, 56)),
        (".b8 x[];", 0, 1, b""),
    ],
)
def test_variables(text, nbytes, align, initial):
    """Numbers of all notations fill the elements, zeros the rest."""
    if nbytes == 0:
        found = Declarations(tokens_of(text), text).variable("shared", Scope(None))
    else:
        found = declared(text)

    assert ("x", nbytes, align, initial) == (
        found.name,
        found.nbytes,
        found.align,
        found.initial,
    )


def test_pointers_to_variables():
    """Names stand for addresses, with offsets, also generic ones."""
    found = declared(".u64 x[3] = {a, b+8, generic(c)};")

    assert ((0, Symbol("a")), (8, Symbol("b", 8)), (16, Symbol("c"))) == found.pointers
    assert bytes(24) == found.initial


def test_integers_of_all_notations():
    """Decimal, hexadecimal, binary and octal, with U."""
    texts = ("12", "0xFFU", "0b101", "017", "0", "42U")

    assert [12, 255, 5, 15, 0, 42] == [integer_of(t) for t in texts]
