"""
Write a code object as text that depends on what it does, not on where it stands.

The instructions are those of Python's `dis`, with constants and names in place of
their indexes and with jumps by number of instruction: comments, docstrings, line
numbers and file names leave no trace, and a function made by `exec` needs no source.
Another minor version of Python compiles to other instructions and so to another text.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

__all__ = ["Reference", "Step", "references", "steps", "text"]

UNSEEN = ("NOP", "CACHE", "EXTENDED_ARG")
READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GLOBAL_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL")
CELL_WRITES = ("STORE_DEREF", "DELETE_DEREF")
HELD = set(dis.hasconst)
NAMED = {*dis.hasname, *dis.haslocal, *dis.hasfree}
JUMPS = {*dis.hasjrel, *dis.hasjabs}


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: its name and what it works on, of the named kind."""

    name: str
    kind: str
    value: Any

    def __str__(self) -> str:
        """Write the instruction; constants are written by `text`."""
        return f"{self.name} {self.value}"


@dataclass(frozen=True, slots=True)
class Reference:
    """
    What a function takes from outside itself.

    `kind` is "global", "cell" (a closure's variable), "import" (inside the function),
    "write" (of a global) or "cell write". `path` is the name with the
    attributes taken from it, for an import the module with the names taken from it;
    `level` is an import's number of leading dots.
    """

    kind: str
    path: tuple[str, ...]
    level: int = 0

    def __str__(self) -> str:
        """Write the reference as it stands in the source."""
        return "." * self.level + ".".join(self.path)


def steps(code: CodeType) -> list[Step]:
    """Return a code object's instructions without those that only mark places."""
    listed = list(dis.get_instructions(code))
    places = numbered(listed)
    return [step_of(one, places) for one in listed if one.opname not in UNSEEN]


def numbered(listed: list[dis.Instruction]) -> dict[int, int]:
    """Return for each offset the number of the next instruction that is kept."""
    places, number = {}, 0
    for one in listed:
        places[one.offset] = number
        number += one.opname not in UNSEEN
    return places


def step_of(one: dis.Instruction, places: dict[int, int]) -> Step:
    """Return an instruction as a step."""
    if one.opcode in HELD:
        return Step(one.opname, "const", one.argval)
    if one.opcode in JUMPS:
        return Step(one.opname, "jump", places.get(one.argval, -1))
    if one.opcode in NAMED:
        return Step(one.opname, "name", one.argval)
    return Step(one.opname, "number", one.arg)


def nested(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects that a code object makes functions of."""
    for step in steps(code):
        if isinstance(step.value, CodeType):
            yield step.value


def text(code: CodeType) -> str:
    """Return the text of a code object and of those inside it."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args, **kwargs
    head = (
        f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} "
        f"{code.co_flags & 0x2AC} {code.co_varnames[:count]}"
    )
    body = [
        f"{step.name} {constant(step.value)}" if step.kind == "const" else str(step)
        for step in steps(code)
    ]
    return "\n".join([head, *body, *guards(code)])


def guards(code: CodeType) -> Iterator[str]:
    """Yield a line for each range of instructions that an exception leaves."""
    places = numbered(list(dis.get_instructions(code)))
    entries: list[Any] = getattr(dis.Bytecode(code), "exception_entries", [])
    for entry in entries:
        ends = (places.get(at, len(places)) for at in (entry.start, entry.end))
        yield f"guard {[*ends, places.get(entry.target)]} {entry.depth} {entry.lasti}"


def constant(value: Any) -> str:
    """Write a constant; equal numbers of different types or signs are told apart."""
    if isinstance(value, CodeType):
        return "{\n" + text(value) + "\n}"
    if isinstance(value, tuple):
        return f"({', '.join(map(constant, value))})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(sorted(map(constant, value)))})"
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(map(constant, parts))})"
    return f"{type(value).__name__} {value!r}"


def references(code: CodeType) -> list[Reference]:
    """Return what a code object and those inside it take from outside, in order."""
    found = dict.fromkeys(own_references(code))
    for inner in nested(code):
        found.update(dict.fromkeys(references(inner)))
    return list(found)


def own_references(code: CodeType) -> Iterator[Reference]:
    """Yield what one code object takes from outside."""
    listed = steps(code)
    for at, step in enumerate(listed):
        if step.name in READS:
            yield Reference("global", (step.value, *attributes(listed, at)))
        elif step.name in CELLS and step.value in code.co_freevars:
            yield Reference("cell", (step.value, *attributes(listed, at)))
        elif step.name == "IMPORT_NAME":
            level = listed[at - 2].value
            names = tuple(taken(listed, at))
            yield Reference("import", (step.value, *names), int(level or 0))
        elif step.name in GLOBAL_WRITES:
            yield Reference("write", (step.value,))
        elif step.name in CELL_WRITES and step.value in code.co_freevars:
            yield Reference("cell write", (step.value,))


def attributes(listed: list[Step], at: int) -> Iterator[str]:
    """Yield the attributes that are taken from what an instruction loads."""
    for step in listed[at + 1 :]:
        if step.name not in ATTRIBUTES:
            return
        yield str(step.value)


def taken(listed: list[Step], at: int) -> Iterator[str]:
    """Yield the names that `from module import ...` takes."""
    for step in listed[at + 1 :]:
        if step.name == "IMPORT_FROM":
            yield str(step.value)
        elif not step.name.startswith("STORE_"):
            return
