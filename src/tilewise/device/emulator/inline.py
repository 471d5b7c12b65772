"""
Inline device calls: a kernel becomes one flat list of instructions.

A call's `.param` variables are per-thread memory, so callee formals become the
caller's actuals by name. Recursion and calls through pointers are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tilewise.device.emulator.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Mark,
    Module,
    Name,
    Negated,
    Operand,
    Pair,
    PtxError,
    Register,
    Symbol,
    Variable,
    Vector,
)

__all__ = ["Flat", "flatten"]

_PRIVATE: Final = ("local", "param")
_MOST_INSTRUCTIONS: Final = 400_000


@dataclass(slots=True)
class Flat:
    """A kernel without calls: its items and all variables that it declares."""

    kernel: Function
    items: list[Instruction | Mark] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)


def flatten(module: Module, entry: str) -> Flat:
    """Inline all calls of an entry; PtxError for recursion and missing functions."""
    kernel = module.functions.get(entry)
    if kernel is None or not kernel.entry:
        known = ", ".join(module.entries) or "none"
        raise PtxError(f"no entry {entry!r}; there are: {known}")
    if kernel.body is None:
        raise PtxError(f"{entry} is declared and not defined", kernel.line)
    flat = Flat(kernel)
    _Inliner(module, flat).expand(kernel, {}, "", (entry,))
    return flat


class _Inliner:
    def __init__(self, module: Module, flat: Flat) -> None:
        self.module, self.flat, self.calls = module, flat, 0

    def expand(
        self,
        function: Function,
        bound: dict[str, str],
        prefix: str,
        stack: tuple[str, ...],
    ) -> None:
        """Add a function's items under a prefix; `bound` maps formals to actuals."""
        private = {v.name for v in function.variables if v.space in _PRIVATE}
        rename = _Renamer(prefix, private, bound)
        known = {v.name for v in self.flat.variables}
        for variable in function.variables:
            name = rename.symbol(variable.name)
            if name not in known:  # a shared variable exists once for all calls
                self.flat.variables.append(replace(variable, name=name))
        for item in function.body or ():
            if isinstance(item, Mark):
                self.flat.items.append(Mark(prefix + item.name))
            elif item.opcode.split(".")[0] == "call":
                self._call(item, rename, stack)
            elif prefix and item.opcode in ("ret", "ret.uni"):
                self.flat.items.append(_jump(item, rename, f"{prefix}return"))
            else:
                self.flat.items.append(rename.instruction(item))
            if len(self.flat.items) > _MOST_INSTRUCTIONS:
                raise PtxError("calls inline to too many instructions", function.line)
        if prefix:
            self.flat.items.append(Mark(f"{prefix}return"))

    def _call(
        self, item: Instruction, rename: _Renamer, stack: tuple[str, ...]
    ) -> None:
        returns, name, actuals = _parts(item)
        callee = self.module.functions.get(name)
        if callee is None or callee.body is None:
            raise PtxError(f"{name} is not defined here", item.line, item.text)
        if name in stack:
            raise PtxError(f"{name} calls itself", item.line, item.text)
        if item.guard is not None:
            raise PtxError("a call under a predicate", item.line, item.text)
        formals = callee.returns + callee.params
        given = (*returns, *actuals)
        if len(formals) != len(given):
            what = f"{name} takes {len(formals)} parameters, not {len(given)}"
            raise PtxError(what, item.line, item.text)
        bound = {}
        for formal, actual in zip(formals, given, strict=True):
            renamed = rename.operand(actual)
            if not isinstance(renamed, Symbol) or renamed.offset:
                raise PtxError("an argument is no .param", item.line, item.text)
            bound[formal.name] = renamed.name
        self.calls += 1
        self.expand(callee, bound, f"{name}#{self.calls}.", (*stack, name))


def _parts(
    item: Instruction,
) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]]:
    if item.opcode not in ("call", "call.uni"):
        raise PtxError(f"{item.opcode} is not understood", item.line, item.text)
    match item.operands:
        case (Vector(returns), Name(name), Vector(actuals)):
            return returns, name, actuals
        case (Name(name), Vector(actuals)):
            return (), name, actuals
        case (Vector(returns), Name(name)):
            return returns, name, ()
        case (Name(name),):
            return (), name, ()
    raise PtxError("only direct calls are understood", item.line, item.text)


def _jump(item: Instruction, rename: _Renamer, label: str) -> Instruction:
    renamed = rename.instruction(item)
    return replace(renamed, opcode="bra", operands=(Label(label),))


class _Renamer:
    """Prefix registers, labels and variables of one inlined call."""

    def __init__(self, prefix: str, own: set[str], bound: dict[str, str]) -> None:
        self.prefix, self.own, self.bound = prefix, own, bound

    def symbol(self, name: str) -> str:
        """Return a variable's name after inlining."""
        if name in self.bound:
            return self.bound[name]
        return self.prefix + name if name in self.own else name

    def instruction(self, item: Instruction) -> Instruction:
        """Rename all operands of an instruction."""
        if not self.prefix:
            return item
        guard = item.guard
        if guard is not None:
            guard = Register(self.prefix + guard.name, guard.type)
        operands = tuple(self.operand(o) for o in item.operands)
        return replace(item, guard=guard, operands=operands)

    def operand(self, operand: Operand) -> Operand:
        """Rename one operand."""
        match operand:
            case Register(name, type_):
                return Register(self.prefix + name, type_)
            case Label(name):
                return Label(self.prefix + name)
            case Symbol(name, offset):
                return Symbol(self.symbol(name), offset)
            case Negated(Register(name, type_)):
                return Negated(Register(self.prefix + name, type_))
            case Pair(first, second):
                return Pair(self.operand(first), self.operand(second))
            case Vector(items):
                return Vector(tuple(self.operand(o) for o in items))
            case Address(base, offset):
                renamed = self.operand(base)
                assert isinstance(renamed, (Register, Symbol, Immediate))
                return Address(renamed, offset)
        return operand
