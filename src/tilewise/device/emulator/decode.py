"""
Join an instruction with its row: what it writes, what it reads, of which types.

This is where operand counts are checked: an instruction that does not fit its row is
refused by name with its line.
"""

from __future__ import annotations

from typing import Final

from tilewise.device.emulator.decoded import CARRY, Decoded, Typed
from tilewise.device.emulator.rows_control import ROWS as CONTROL
from tilewise.device.emulator.rows_float import ROWS as FLOAT
from tilewise.device.emulator.rows_integer import ROWS as INTEGER
from tilewise.device.emulator.rows_memory import ROWS as MEMORY
from tilewise.device.emulator.rows_warp import ROWS as WARP
from tilewise.device.emulator.syntax import Instruction, Operand, Pair, PtxError
from tilewise.device.emulator.table import Table
from tilewise.device.emulator.types import widened

__all__ = ["TABLE", "decode"]

TABLE: Final = Table(INTEGER, FLOAT, MEMORY, CONTROL, WARP)


def decode(instruction: Instruction) -> Decoded:
    """Find an instruction's row and pair its operands with the row's."""
    row, groups = TABLE.find(instruction)
    left, _, right = row.operands.partition("=")
    given = list(instruction.operands)
    outs = _pair(left.split(), given, groups)
    ins = _pair(right.split(), given, groups)
    if given or outs is None or ins is None:
        wanted = " ".join(row.operands.replace("=", "").split())
        what = f"{instruction.opcode} takes other operands ({wanted})"
        raise PtxError(what, instruction.line, instruction.text)
    return Decoded(instruction, row, groups, tuple(outs), tuple(ins))


def _pair(
    specs: list[str], given: list[Operand], groups: dict[str, str]
) -> list[Typed] | None:
    found: list[Typed] = []
    for at, spec in enumerate(specs):
        name, _, type_ = spec.rstrip("?").partition("|")[0].partition(":")
        if name == "cc":
            found.append(Typed(name, "pred", CARRY))
            continue
        needed = sum(not later.endswith("?") for later in specs[at + 1 :])
        if spec.endswith("?") and len(given) <= needed:
            continue
        if not given:
            return None
        operand = given.pop(0)
        resolved = _type(type_, groups)
        if "|" in spec and isinstance(operand, Pair):
            groups["pair"] = "pair"
            second = spec.rpartition(":")[2].rstrip("?")
            found.append(Typed(name, resolved, operand.first))
            found.append(Typed(f"{name}2", _type(second, groups), operand.second))
        elif isinstance(operand, Pair):
            return None
        else:
            found.append(Typed(name, resolved, operand))
    return found


def _type(spec: str, groups: dict[str, str]) -> str:
    base, wide, _ = spec.partition("*2")
    named = groups.get(base, base)
    return widened(named) if wide else named
