"""
Parse function bodies: declarations, labels and instructions in nested scopes.

Operands are resolved when the body is whole, since labels may come after their use.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.device.emulator.declare import Declarations
from tilewise.device.emulator.lexer import Token
from tilewise.device.emulator.operand import OperandReader
from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.syntax import (
    Instruction,
    Mark,
    PtxError,
    Register,
    Variable,
)

__all__ = ["FunctionBody"]

_MOST_DEPTH = 64


@dataclass(frozen=True, slots=True)
class _Raw:
    """An instruction before its names are resolved: tokens per operand."""

    opcode: Token
    operands: tuple[tuple[Token, ...], ...]
    guard: Token | None
    negated: bool
    scope: Scope
    text: str
    source: str


class FunctionBody:
    """Parse one function body out of the module's tokens."""

    def __init__(self, tokens: Declarations, scope: Scope) -> None:
        self.tokens, self.scope = tokens, scope
        self.variables: list[Variable] = []
        self.targets: dict[str, tuple[Token, ...]] = {}
        self._items: list[_Raw | Mark] = []
        self._source = ""
        self._scopes = 0

    def parse(self) -> tuple[Instruction | Mark, ...]:
        """Parse from the opening brace to the closing one."""
        depth = 0
        self.tokens.take("{")
        while True:
            token = self.tokens.take()
            if token.kind == "end":
                raise PtxError("the function body is not closed", token.line)
            if token.text == "{":
                depth += 1
                self._enter(token)
            elif token.text == "}":
                if depth == 0:
                    break
                depth -= 1
                self.scope = self.scope.outer or self.scope
            elif token.kind == "directive":
                self._directive(token)
            elif token.text != ";":
                self._statement(token)
            if depth > _MOST_DEPTH:
                raise PtxError(f"braces nest deeper than {_MOST_DEPTH}", token.line)
        return tuple(
            item if isinstance(item, Mark) else self._resolve(item)
            for item in self._items
        )

    def _resolve(self, raw: _Raw) -> Instruction:
        guard: Register | None = None
        if raw.guard is not None:
            found = raw.scope.find(raw.guard.text)
            if not isinstance(found, Register) or found.type != "pred":
                what = f"{raw.guard.text!r} is not a predicate"
                raise PtxError(what, raw.guard.line, raw.text)
            guard = found
        operands = tuple(
            OperandReader(row, raw.scope, self.targets, raw.text).whole()
            for row in raw.operands
        )
        line = raw.opcode.line
        opcode = raw.opcode.text
        return Instruction(
            opcode, operands, guard, raw.negated, line, raw.text, raw.source
        )

    def _enter(self, token: Token) -> None:
        self._scopes += 1
        self.scope = Scope(self.scope, f"@{self._scopes}")

    def _directive(self, token: Token) -> None:
        tokens = self.tokens
        if token.text == ".reg":
            self._registers()
        elif token.text in (".shared", ".local", ".param"):
            self.variables.append(tokens.variable(token.text[1:], self.scope))
        elif token.text == ".loc":
            self._loc()
        elif token.text == ".pragma":
            tokens.take("string")
            tokens.take(";")
        else:
            raise PtxError(f"{token.text!r} is not understood here", token.line)

    def _registers(self) -> None:
        tokens = self.tokens
        type_ = tokens.type_name()
        while True:
            name = tokens.take("word").text
            if tokens.accept("<"):
                self.scope.declare_range(name, tokens.integer(), type_)
                tokens.take(">")
            else:
                self.scope.declare_register(name, type_)
            if not tokens.accept(","):
                break
        tokens.take(";")

    def _loc(self) -> None:
        tokens = self.tokens
        index, line = tokens.integer(), tokens.integer()
        tokens.integer()
        if line:
            self._source = f"{index}:{line}"
        while tokens.accept(","):
            tokens.take("word")
            if tokens.peek.kind == "word":
                tokens.take("word")
                if tokens.accept("+"):
                    tokens.integer()
            while tokens.peek.kind == "int":
                tokens.take()

    def _statement(self, token: Token) -> None:
        if token.kind == "word" and self.tokens.peek.text == ":":
            self.tokens.take()
            self._label(token)
            return
        guard, negated = None, False
        if token.text == "@":
            negated = self.tokens.accept("!")
            guard = self.tokens.take("word")
            opcode = self.tokens.take("word")
        elif token.kind == "word":
            opcode = token
        else:
            raise PtxError(f"{token.text!r} is not understood here", token.line)
        operands = self._operands()
        stop = self.tokens.take(";")
        text = " ".join(self.tokens.text[token.start : stop.start].split())
        self._items.append(
            _Raw(opcode, operands, guard, negated, self.scope, text, self._source)
        )

    def _label(self, token: Token) -> None:
        if self.tokens.peek.text in (".branchtargets", ".callprototype"):
            kind = self.tokens.take()
            if kind.text != ".branchtargets":
                raise PtxError(f"{kind.text!r} is not understood", kind.line)
            rows = self._operands()
            self.tokens.take(";")
            labels = tuple(t for row in rows for t in row if t.kind == "word")
            self.targets[token.text] = labels
            return
        name = self.scope.declare_label(token.text)
        if name is None:
            raise PtxError(f"label {token.text} is there twice", token.line)
        self._items.append(Mark(name))

    def _operands(self) -> tuple[tuple[Token, ...], ...]:
        rows: list[tuple[Token, ...]] = []
        row: list[Token] = []
        depth = 0
        while True:
            token = self.tokens.peek
            if token.kind == "end" or (token.text == ";" and depth <= 0):
                break
            self.tokens.take()
            depth += {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}.get(
                token.text, 0
            )
            if depth < 0 or token.text == ";":
                raise PtxError(f"unexpected {token.text!r}", token.line)
            if token.text == "," and depth == 0:
                rows.append(tuple(row))
                row = []
            else:
                row.append(token)
        if rows or row:
            rows.append(tuple(row))
        return tuple(rows)
