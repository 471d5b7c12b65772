"""Text is cut into tokens that keep their lines."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.lexer import strip_comments, tokens_of
from tilewise.device.emulator.syntax import PtxError


def test_kinds_and_lines():
    """Opcodes, registers, numbers of all notations and marks are told apart."""
    text = (
        "ld.global.v4.f32\n{%f1}, [%rd2+-4]; 0f3F800000 0d3FF0000000000000\n1.5e3 0xFFU"
    )

    found = [(t.kind, t.text, t.line) for t in tokens_of(text)]

    assert [
        ("word", "ld.global.v4.f32", 1),
        ("mark", "{", 2),
        ("word", "%f1", 2),
        ("mark", "}", 2),
        ("mark", ",", 2),
        ("mark", "[", 2),
        ("word", "%rd2", 2),
        ("mark", "+", 2),
        ("mark", "-", 2),
        ("int", "4", 2),
        ("mark", "]", 2),
        ("mark", ";", 2),
        ("f32", "0f3F800000", 2),
        ("f64", "0d3FF0000000000000", 2),
        ("float", "1.5e3", 3),
        ("int", "0xFFU", 3),
        ("end", "", 3),
    ] == found


def test_modifiers_with_two_colons_belong_to_the_opcode():
    """cp.async...L2::128B is one word; a label's colon is none."""
    found = [t.text for t in tokens_of("a.L2::128B x: .shared")]

    assert ["a.L2::128B", "x", ":", ".shared", ""] == found


def test_comments_keep_places():
    """Comments become blanks, line by line, also where they are not closed."""
    text = "a // b\nc /* d\ne */ f /* g"

    assert "a     \nc     \n     f     " == strip_comments(text)


@pytest.mark.parametrize("text", ["a\n`", "\n\x00", "\n\u00e4", "\n0f3F8", "\n12abc"])
def test_foreign_characters_are_refused(text):
    """What no token begins with is named with its line."""
    with pytest.raises(PtxError) as caught:
        tokens_of(text)

    assert 2 == caught.value.line
