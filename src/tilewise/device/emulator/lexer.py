"""
Cut PTX text into tokens with their lines.

Source: PTX ISA, "Syntax". An opcode with its modifiers is one token
("ld.global.v4.f32"), and so are a special register ("%tid.x") and a directive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilewise.device.emulator.syntax import PtxError

__all__ = ["Token", "strip_comments", "tokens_of"]

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\f\v]+)
    |(?P<newline>\n)
    |(?P<string>"[^"\n]*")
    |(?P<f32>0[fF][0-9a-fA-F]{8}(?![\w.]))
    |(?P<f64>0[dD][0-9a-fA-F]{16}(?![\w.]))
    |(?P<float>\d+\.\d*(?:[eE][+-]?\d+)?(?!\w)|\d+[eE][+-]?\d+(?!\w))
    |(?P<int>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?(?!\w))
    |(?P<directive>\.[A-Za-z_]\w*)
    |(?P<word>[%A-Za-z_$][\w$]*(?:\.[\w$]+(?:::[\w$]+)?)*)
    |(?P<mark>[][{}()<>@!|,;:+=*-])""",
    re.VERBOSE | re.ASCII,
)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (the name of a group above), text, line and place."""

    kind: str
    text: str
    line: int
    start: int


def strip_comments(text: str) -> str:
    """Blank out comments and keep every character's place and line."""
    return _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def tokens_of(text: str) -> list[Token]:
    """Cut text without comments into tokens; PtxError for a foreign character."""
    tokens: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PtxError(f"cannot read {text[at : at + 12]!r}", line)
        kind = match.lastgroup or ""
        if kind == "newline":
            line += 1
        elif kind != "space":
            tokens.append(Token(kind, match[0], line, at))
        at = match.end()
    tokens.append(Token("end", "", line, at))
    return tokens
