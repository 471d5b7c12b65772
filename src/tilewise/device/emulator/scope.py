"""
Look names up as PTX scopes them.

Inner braces may declare registers, variables and labels again (inline assembly does);
each gets a name that is unique within its function. Ranges (`%r<11>`) are kept as
ranges, so that a huge one costs nothing.
"""

from __future__ import annotations

import re
from typing import Final

from tilewise.device.emulator.syntax import (
    Label,
    Operand,
    Register,
    Special,
    Symbol,
)

__all__ = ["SPECIALS", "Scope"]

SPECIALS: Final = frozenset(
    [f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
    + ["laneid", "warpid", "nwarpid", "warpsize", "smid", "nsmid", "gridid"]
    + ["clock", "clock64", "clock_hi", "globaltimer"]
    + [f"lanemask_{relation}" for relation in ("eq", "le", "lt", "ge", "gt")]
    + ["dynamic_smem_size", "total_smem_size"]
)
_NUMBERED: Final = re.compile(r"(.*?)(0|[1-9]\d*)\Z")


class Scope:
    """Hold what one pair of braces declares, and the scope around it."""

    def __init__(self, outer: Scope | None, suffix: str = "") -> None:
        self.outer, self.suffix = outer, suffix
        self._registers: dict[str, Register] = {}
        self._ranges: dict[str, tuple[int, str]] = {}
        self._symbols: dict[str, Symbol] = {}
        self._labels: dict[str, Label] = {}

    def declare_register(self, name: str, type_: str) -> None:
        """Add a register."""
        self._registers[name] = Register(name + self.suffix, type_)

    def declare_range(self, base: str, count: int, type_: str) -> None:
        """Add the registers base0 to base(count-1)."""
        self._ranges[base] = (count, type_)

    def declare_symbol(self, name: str) -> str:
        """Add a variable and return its unique name."""
        self._symbols[name] = Symbol(name + self.suffix)
        return name + self.suffix

    def declare_label(self, name: str) -> str | None:
        """Add a label and return its unique name, None where it was there before."""
        if name in self._labels:
            return None
        self._labels[name] = Label(name + self.suffix)
        return name + self.suffix

    def find(self, name: str) -> Operand | None:
        """Return the register, variable or label of a name, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            found = (
                scope._registers.get(name)
                or scope._in_range(name)
                or scope._symbols.get(name)
                or scope._labels.get(name)
            )
            if found is not None:
                return found
            scope = scope.outer
        if name.startswith("%") and name[1:] in SPECIALS:
            return Special(name[1:])
        return None

    def _in_range(self, name: str) -> Register | None:
        numbered = _NUMBERED.match(name)
        if numbered is None or len(numbered[2]) > 9:
            return None
        count, type_ = self._ranges.get(numbered[1], (0, ""))
        if int(numbered[2]) >= count:
            return None
        return Register(name + self.suffix, type_)
