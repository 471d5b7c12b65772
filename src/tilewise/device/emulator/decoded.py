"""Hold an instruction joined with its row: what it writes and what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewise.device.emulator.syntax import (
    Address,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)
from tilewise.device.emulator.table import Row

__all__ = ["CARRY", "Decoded", "Typed", "registers_of"]

#: The carry flag of extended-precision arithmetic (CC.CF), one per thread.
CARRY: Final = Register("%cc", "pred")


@dataclass(frozen=True, slots=True)
class Typed:
    """An operand, the row's name for it and the type that it is used as."""

    name: str
    type: str
    operand: Operand


@dataclass(frozen=True, slots=True)
class Decoded:
    """An instruction with its row, the row's groups, and its outputs and inputs."""

    instruction: Instruction
    row: Row
    groups: dict[str, str]
    outs: tuple[Typed, ...]
    ins: tuple[Typed, ...]

    @property
    def writes(self) -> tuple[Register, ...]:
        """List the registers that it writes."""
        return tuple(r for typed in self.outs for r in registers_of(typed.operand))

    @property
    def reads(self) -> tuple[Register, ...]:
        """List the registers that it reads, its guard included."""
        found = [r for typed in self.ins for r in registers_of(typed.operand)]
        for typed in self.outs:
            if isinstance(typed.operand, Address):
                found += registers_of(typed.operand)
        if self.instruction.guard is not None:
            found.append(self.instruction.guard)
        return tuple(found)


def registers_of(operand: Operand) -> tuple[Register, ...]:
    """List the registers that an operand names."""
    match operand:
        case Register():
            return (operand,)
        case Negated(register):
            return (register,)
        case Address(Register() as base):
            return (base,)
        case Pair(first, second):
            return registers_of(first) + registers_of(second)
        case Vector(items):
            return tuple(r for item in items for r in registers_of(item))
    return ()
