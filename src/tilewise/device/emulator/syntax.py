"""
Hold parsed PTX as frozen values.

Names are already resolved: registers are unique within their function, also where an
inner scope declares the same name again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilewise.errors import EngineError

__all__ = [
    "Address",
    "Function",
    "Immediate",
    "Instruction",
    "Label",
    "Mark",
    "Module",
    "Name",
    "Negated",
    "Operand",
    "Pair",
    "PtxError",
    "Register",
    "Sink",
    "Special",
    "Symbol",
    "Variable",
    "Vector",
]


class PtxError(EngineError):
    """
    Refuse PTX that is not understood, by name and line.

    `line` counts from 1 in the PTX text and is 0 where no line applies.
    """

    def __init__(self, what: str, line: int = 0, text: str = "") -> None:
        where = f"PTX line {line}: " if line else ""
        super().__init__(f"{where}{what}" + (f"\n  {text}" if text else ""))
        self.what, self.line, self.text = what, line, text


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register and its declared type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A read-only register such as `tid.x`, without its percent sign."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant: an integer, or the bits of a float (`kind` is int, f32 or f64)."""

    value: int
    kind: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A function's name, as `call` takes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand `_`: a result that nobody wants."""


@dataclass(frozen=True, slots=True)
class Negated:
    """The operand `!p`."""

    register: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """The operand `d|p`: a result and a second, predicate result."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Vector:
    """The operand `{a, b}`, or the parenthesised list of a call."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """The operand `[base + offset]`."""

    base: Register | Symbol | Immediate
    offset: int


Operand: TypeAlias = (
    Register
    | Special
    | Immediate
    | Symbol
    | Label
    | Name
    | Sink
    | Negated
    | Pair
    | Vector
    | Address
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `line` in the PTX, `source` as "file:line" from `.loc`."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | None
    negated: bool
    line: int
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The place of a label in a function body."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """
    A variable of a state space.

    `nbytes` is 0 for dynamic shared memory; `initial` holds bytes, and `pointers`
    the (offset, symbol) pairs that are addresses; `type` is that of an element.
    """

    name: str
    space: str
    nbytes: int
    align: int
    initial: bytes = b""
    pointers: tuple[tuple[int, Symbol], ...] = ()
    type: str = "b8"


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (`entry`) or a device function; `body` is None without a definition."""

    name: str
    entry: bool
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    body: tuple[Instruction | Mark, ...] | None
    line: int


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX module: its target ("sm_90"), functions and module-scope variables."""

    target: str
    functions: dict[str, Function]
    variables: tuple[Variable, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """List the kernels in the order of the text."""
        return tuple(f.name for f in self.functions.values() if f.entry)
