"""
Parse PTX text into `syntax.Module`.

Source: PTX ISA 9, "Directives" and "Instruction Statements". Everything that is not
understood is a PtxError with its line; nothing is skipped but line tables, pragmas,
debug sections and performance hints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilewise.device.emulator.declare import Declarations
from tilewise.device.emulator.lexer import strip_comments, tokens_of
from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.statement import FunctionBody
from tilewise.device.emulator.syntax import (
    Function,
    Instruction,
    Mark,
    Module,
    PtxError,
    Variable,
)

__all__ = ["parse"]

_LINKAGE: Final = frozenset((".visible", ".extern", ".weak", ".common"))
_SPACES: Final = frozenset((".global", ".const", ".shared"))
_HINTS: Final = frozenset(
    (
        ".maxntid",
        ".reqntid",
        ".minnctapersm",
        ".maxnreg",
        ".maxnctapersm",
        ".noreturn",
        ".pragma",
    )
)


def parse(text: str) -> Module:
    """Parse one PTX module; PtxError says what was not understood, and where."""
    return _ModuleParser(text).module()


class _ModuleParser(Declarations):
    """Parse the module level."""

    def __init__(self, text: str) -> None:
        clean = strip_comments(text)
        super().__init__(tokens_of(clean), clean)
        self.target = ""
        self.functions: dict[str, Function] = {}
        self.variables: list[Variable] = []
        self.files: dict[int, str] = {}
        self.top = Scope(None)

    def module(self) -> Module:
        """Parse to the end of the text."""
        while self.peek.kind != "end":
            self._item()
        if not self.functions:
            raise PtxError("there is no .entry and no .func", self.peek.line)
        named = {n: self._with_files(f) for n, f in self.functions.items()}
        return Module(self.target, named, tuple(self.variables))

    def _item(self) -> None:
        token = self.take()
        if token.text == ".version":
            self.take("float")
        elif token.text == ".target":
            self.target = self.take("word").text
            while self.accept(","):
                self.take("word")
        elif token.text == ".address_size":
            if self.take("int").text != "64":
                raise PtxError("only .address_size 64 is understood", token.line)
        elif token.text == ".file":
            self._file()
        elif token.text == ".section":
            self._skip_section()
        elif token.text in _LINKAGE:
            self._linked(token.text == ".extern")
        elif token.text in _SPACES:
            self.variables.append(self.variable(token.text[1:], self.top))
        elif token.text in (".entry", ".func"):
            self._function(token.text == ".entry")
        else:
            raise PtxError(f"{token.text!r} is not understood here", token.line)

    def _linked(self, extern: bool) -> None:
        while self.peek.text in _LINKAGE:
            extern = self.take().text == ".extern" or extern
        token = self.take("directive")
        if token.text in _SPACES:
            variable = self.variable(token.text[1:], self.top)
            if extern and variable.space != "shared":
                raise PtxError(f"extern {variable.name} is defined nowhere", token.line)
            self.variables.append(variable)
        elif token.text in (".entry", ".func"):
            self._function(token.text == ".entry")
        else:
            raise PtxError(f"{token.text!r} is not understood here", token.line)

    def _file(self) -> None:
        index = self.integer()
        self.files[index] = self.take("string").text.strip('"')
        while self.accept(","):
            self.integer()

    def _skip_section(self) -> None:
        self.take()
        depth, opening = 0, self.peek.line
        while True:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if token.kind == "end":
                raise PtxError(".section is not closed", opening)
            if depth == 0 and token.text == "}":
                return

    def _function(self, entry: bool) -> None:
        scope = Scope(self.top)
        returns = self.parameters(scope) if self.peek.text == "(" else ()
        name = self.take("word")
        params = self.parameters(scope) if self.peek.text == "(" else ()
        self._hints()
        if self.accept(";"):
            self.functions.setdefault(
                name.text,
                Function(name.text, entry, params, returns, (), None, name.line),
            )
            return
        known = self.functions.get(name.text)
        if known is not None and known.body is not None:
            raise PtxError(f"{name.text} is defined twice", name.line)
        body = FunctionBody(self, scope)
        items = body.parse()
        self.functions[name.text] = Function(
            name.text, entry, params, returns, tuple(body.variables), items, name.line
        )

    def _hints(self) -> None:
        while self.peek.kind == "directive":
            token = self.take()
            if token.text not in _HINTS:
                raise PtxError(f"{token.text!r} is not understood here", token.line)
            while self.peek.kind in ("int", "string") or self.peek.text == ",":
                self.take()
            if token.text == ".pragma":
                self.take(";")

    def _with_files(self, function: Function) -> Function:
        if function.body is None:
            return function
        body = tuple(
            item if isinstance(item, Mark) else replace(item, source=self._named(item))
            for item in function.body
        )
        return replace(function, body=body)

    def _named(self, instruction: Instruction) -> str:
        index, _, line = instruction.source.partition(":")
        return f"{self.files.get(int(index), index)}:{line}" if index else ""
