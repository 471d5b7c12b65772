"""
Match opcodes against rows written in the PTX ISA's own notation.

A row's pattern is what the ISA prints, with classes in angle brackets:
"fma<rnd>[.ftz][.sat].f32". Square brackets are optional parts, `<rnd>` is one of a
named class, `<a|b>` one of those given. An opcode that no row matches in full is
refused by name, so an unknown modifier can't be ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tilewise.device.emulator.syntax import Instruction, PtxError

__all__ = ["CLASSES", "Action", "Row", "Table", "compile_pattern"]

_INT: Final = "u16|u32|u64|s16|s32|s64"
_CMP: Final = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"

#: Named classes of the patterns; the name is also the group that a row reads.
CLASSES: Final[Mapping[str, str]] = {
    "rnd": "rn|rz|rm|rp",
    "int": _INT,
    "sint": "s16|s32|s64",
    "bits": "b16|b32|b64",
    "scalar": f"b16|b32|b64|{_INT}|f32|f64",
    "memory": f"b8|u8|s8|b16|b32|b64|{_INT}|f32|f64",
    "cmp": _CMP,
    "bool": "and|or|xor",
    "sem": "weak|relaxed|acquire|release|acq_rel|volatile",
    "scope": "cta|cluster|gpu|sys",
    "vec": "v2|v4|v8",
    "space": "global|shared|local|const|param",
    "l1": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last"
    "|L1::no_allocate",
    "l2": "L2::evict_normal|L2::evict_first|L2::evict_last",
    "fetch": "L2::64B|L2::128B|L2::256B",
}


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Turn the notation above into a regular expression over the whole opcode."""
    out: list[str] = []
    for part in re.findall(r"<[^>]*>|\[|\]|[^<\[\]]+", pattern):
        if part == "[":
            out.append("(?:")
        elif part == "]":
            out.append(")?")
        elif part[0] == "<":
            name, _, alternatives = part[1:-1].rpartition(":")
            name = name or alternatives
            each = (CLASSES.get(a, a) for a in alternatives.split("|"))
            out.append(rf"\.(?P<{name}>{'|'.join(each)})")
        else:
            out.append(re.escape(part))
    return re.compile("".join(out) + r"\Z")


@dataclass(frozen=True, slots=True)
class Row:
    """
    An opcode that computes values: its pattern, its operands and its function.

    `operands` reads "results = sources", each "name:type"; a type is literal ("u32")
    or the name of a pattern's group. `emit` is an expression over the sources, or
    takes the groups and returns the function to call, or a string why not.
    """

    pattern: str
    operands: str
    emit: Any
    regex: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", compile_pattern(self.pattern))


class Action(Row):
    """An opcode that does more: `emit` takes the block writer and the instruction."""

    __slots__ = ()


class Table:
    """Find the row of an opcode."""

    def __init__(self, *rooms: tuple[Row, ...]) -> None:
        self._rows: dict[str, list[Row]] = {}
        for row in (row for room in rooms for row in room):
            name = re.split(r"[.<\[]", row.pattern, maxsplit=1)[0]
            self._rows.setdefault(name, []).append(row)

    def find(self, instruction: Instruction) -> tuple[Row, dict[str, str]]:
        """Return the row and its groups; PtxError names an opcode without one."""
        opcode = instruction.opcode
        rows = self._rows.get(opcode.split(".")[0], ())
        for row in rows:
            match = row.regex.match(opcode)
            if match is not None:
                groups = {k: v for k, v in match.groupdict().items() if v}
                return row, groups
        what = f"{opcode} is not supported"
        if not rows:
            what = f"opcode {opcode.split('.')[0]!r} is not supported"
        raise PtxError(what, instruction.line, instruction.text)

    @property
    def patterns(self) -> tuple[str, ...]:
        """List all patterns, for the documentation and the tests."""
        return tuple(row.pattern for rows in self._rows.values() for row in rows)
