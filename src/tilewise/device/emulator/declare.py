"""Parse PTX declarations: variables with their initial values, and parameters."""

from __future__ import annotations

import struct
from typing import Final

from tilewise.device.emulator.lexer import Token
from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.syntax import PtxError, Symbol, Variable
from tilewise.device.emulator.types import DTYPES, size_of

__all__ = ["Declarations", "integer_of"]

_MOST_BYTES: Final = 1 << 32
_POINTED: Final = frozenset((".global", ".shared", ".const", ".local", ".param"))


def integer_of(text: str) -> int:
    """Return the value of an integer token: decimal, 0x, 0b or octal, U allowed."""
    digits = text.rstrip("U")
    if len(digits) > 40:
        raise ValueError(f"{text[:12]}... is too long for a number")
    if len(digits) > 1 and digits.isdigit() and digits[0] == "0":
        return int(digits, 8)
    return int(digits, 0)


class Declarations:
    """Read tokens one after the other; base of the parsers of one module."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens, self.text, self.at = tokens, text, 0

    @property
    def peek(self) -> Token:
        """Return the next token and leave it."""
        return self.tokens[self.at]

    def take(self, expected: str = "") -> Token:
        """Return the next token; `expected` is the kind or the text it must have."""
        token = self.tokens[self.at]
        if expected and expected not in (token.kind, token.text):
            found = token.text or "the end of the text"
            raise PtxError(f"expected {expected!r} and found {found!r}", token.line)
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it reads so."""
        if self.peek.text != text:
            return False
        self.take()
        return True

    def integer(self) -> int:
        """Take an integer, with its sign."""
        sign = -1 if self.accept("-") else 1
        token = self.take("int")
        try:
            return sign * integer_of(token.text)
        except ValueError as error:
            raise PtxError(str(error), token.line) from None

    def type_name(self) -> str:
        """Take a type directive and return its name without the dot."""
        token = self.take("directive")
        if token.text[1:] not in DTYPES:
            raise PtxError(f"type {token.text!r} is not understood", token.line)
        return token.text[1:]

    def parameters(self, scope: Scope) -> tuple[Variable, ...]:
        """Parse a parenthesised parameter list."""
        self.take("(")
        found: list[Variable] = []
        while not self.accept(")"):
            if found:
                self.take(",")
            self.take(".param")
            found.append(self.variable("param", scope, closed=False))
        return tuple(found)

    def variable(self, space: str, scope: Scope, *, closed: bool = True) -> Variable:
        """Parse a declaration after its space: `.align 4 .b8 name[16] = {...};`."""
        line = self.peek.line
        align = self._align()
        type_ = self.type_name()
        align = align or self._align()
        self._pointer_hints()
        name = self.take("word").text
        nbytes, whole = self._dimensions(size_of(type_))
        initial: bytes = b""
        pointers: tuple[tuple[int, Symbol], ...] = ()
        if closed:
            initial, pointers = self._initial(type_, nbytes, line)
            self.take(";")
        if nbytes > _MOST_BYTES or align > 1 << 16 or align & (align - 1):
            raise PtxError(f"{name} has no possible size or alignment", line)
        if not whole and space != "shared":
            raise PtxError(f"{name} has no size", line)
        return Variable(
            scope.declare_symbol(name),
            space,
            nbytes,
            max(align, size_of(type_)),
            initial,
            pointers,
            type_,
        )

    def _align(self) -> int:
        return self.integer() if self.accept(".align") else 0

    def _pointer_hints(self) -> None:
        if self.accept(".ptr"):
            if self.peek.text in _POINTED:
                self.take()
            self._align()

    def _dimensions(self, nbytes: int) -> tuple[int, bool]:
        whole = True
        while self.accept("["):
            if self.accept("]"):
                nbytes, whole = 0, False
                continue
            nbytes *= self.integer()
            self.take("]")
        return max(nbytes, 0), whole

    def _initial(
        self, type_: str, nbytes: int, line: int
    ) -> tuple[bytes, tuple[tuple[int, Symbol], ...]]:
        if not self.accept("="):
            return b"", ()
        out, pointers = bytearray(), []
        depth = 0
        while True:
            token = self.peek
            if token.text in "{}," and token.kind == "mark":
                self.take()
                depth += {"{": 1, "}": -1}.get(token.text, 0)
            elif token.kind == "word":
                pointers.append((len(out), self._pointer()))
                out += bytes(8)
            else:
                out += self._scalar(type_)
            if depth <= 0 and self.peek.text != ",":
                break
        if len(out) > nbytes:
            raise PtxError("more initial values than elements", line)
        return bytes(out).ljust(nbytes, b"\0"), tuple(pointers)

    def _pointer(self) -> Symbol:
        word = self.take("word")
        if word.text == "generic" and self.accept("("):
            word = self.take("word")
            self.take(")")
        return Symbol(word.text, self.integer() if self.accept("+") else 0)

    def _scalar(self, type_: str) -> bytes:
        token, size = self.peek, size_of(type_)
        if token.kind in ("f32", "f64"):
            self.take()
            value = struct.unpack(
                ">f" if token.kind == "f32" else ">d", bytes.fromhex(token.text[2:])
            )[0]
            return bytes(DTYPES[type_].type(value).tobytes())
        if token.kind == "float":
            self.take()
            return bytes(DTYPES[type_].type(float(token.text)).tobytes())
        value = self.integer()
        if type_[0] == "f":
            return bytes(DTYPES[type_].type(value).tobytes())
        return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
