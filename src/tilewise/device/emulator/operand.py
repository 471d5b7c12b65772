"""Read one operand of an instruction from its tokens."""

from __future__ import annotations

import struct

from tilewise.device.emulator.declare import integer_of
from tilewise.device.emulator.lexer import Token
from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.syntax import (
    Address,
    Immediate,
    Label,
    Name,
    Negated,
    Operand,
    Pair,
    PtxError,
    Register,
    Sink,
    Symbol,
    Vector,
)

__all__ = ["OperandReader"]


class OperandReader:
    """Turn the tokens of one operand into a syntax value."""

    def __init__(
        self,
        tokens: tuple[Token, ...],
        scope: Scope,
        targets: dict[str, tuple[Token, ...]],
        text: str,
    ) -> None:
        self.tokens, self.scope, self.targets, self.text = tokens, scope, targets, text
        self.at = 0

    def whole(self) -> Operand:
        """Read an operand that takes all the tokens."""
        if not self.tokens:
            raise PtxError("an operand is missing", 0, self.text)
        operand = self._operand()
        if self._peek() == "|":
            self.at += 1
            operand = Pair(operand, self._operand())
        if self.at < len(self.tokens):
            raise self._refuse()
        return operand

    def _peek(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _take(self, expected: str = "") -> Token:
        if self.at >= len(self.tokens):
            raise PtxError("an operand ends early", self.tokens[-1].line, self.text)
        token = self.tokens[self.at]
        if expected and expected not in (token.text, token.kind):
            raise self._refuse()
        self.at += 1
        return token

    def _refuse(self) -> PtxError:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        return PtxError(f"unexpected {token.text!r}", token.line, self.text)

    def _operand(self) -> Operand:
        mark = self._peek()
        if mark in ("{", "("):
            return self._vector({"{": "}", "(": ")"}[mark])
        if mark == "[":
            return self._address()
        if mark == "!":
            self.at += 1
            register = self._scalar()
            if not isinstance(register, Register):
                raise self._refuse()
            return Negated(register)
        return self._scalar()

    def _vector(self, closing: str) -> Vector:
        self._take()
        items: list[Operand] = []
        while self._peek() != closing:
            if items:
                self._take(",")
            items.append(self._scalar())
        self._take(closing)
        return Vector(tuple(items))

    def _address(self) -> Address:
        self._take("[")
        base = self._scalar()
        offset = self._offset()
        self._take("]")
        if isinstance(base, Symbol):
            return Address(Symbol(base.name), base.offset + offset)
        if not isinstance(base, (Register, Immediate)):
            raise self._refuse()
        return Address(base, offset)

    def _offset(self) -> int:
        total = 0
        while self._peek() in ("+", "-"):
            sign = -1 if self._take().text == "-" else 1
            if self._peek() == "-":
                self._take()
                sign = -sign
            total += sign * self._integer(self._take("int"))
        return total

    def _integer(self, token: Token) -> int:
        try:
            return integer_of(token.text)
        except ValueError as error:
            raise PtxError(str(error), token.line, self.text) from None

    def _scalar(self) -> Operand:
        token = self._take()
        if token.text == "-" and self._peek()[:1].isdigit():
            number = self._number(self._take(), -1)
        else:
            number = self._number(token, 1)
        if number is not None:
            return number
        if token.text == "_":
            return Sink()
        if token.kind != "word":
            self.at -= 1
            raise self._refuse()
        return self._word(token)

    def _number(self, token: Token, sign: int) -> Immediate | None:
        if token.kind == "int":
            return Immediate(sign * self._integer(token), "int")
        if token.kind in ("f32", "f64"):
            bits = int.from_bytes(bytes.fromhex(token.text[2:]), "big")
            if sign < 0:
                bits ^= 1 << (int(token.kind[1:]) - 1)
            return Immediate(bits, token.kind)
        if token.kind == "float":
            packed = struct.pack("<d", sign * float(token.text))
            return Immediate(int.from_bytes(packed, "little"), "f64")
        return None

    def _word(self, token: Token) -> Operand:
        if token.text in self.targets:
            labels = [self._label(t) for t in self.targets[token.text]]
            return Vector(tuple(labels))
        found = self.scope.find(token.text)
        if found is None:
            if token.text[0] == "%":
                what = f"{token.text!r} is declared nowhere"
                raise PtxError(what, token.line, self.text)
            return Name(token.text)
        if isinstance(found, Symbol) and self._peek() in ("+", "-"):
            return Symbol(found.name, found.offset + self._offset())
        return found

    def _label(self, token: Token) -> Label:
        found = self.scope.find(token.text)
        if not isinstance(found, Label):
            raise PtxError(f"{token.text!r} is no label", token.line, self.text)
        return found
