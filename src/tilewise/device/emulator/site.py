"""Describe the place in a kernel that touches memory or talks to other threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.device.emulator.syntax import Instruction

__all__ = ["Site"]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """
    An instruction as the memory and the reports see it.

    `count` elements of `dtype` make one access of `nbytes`; `strong` accesses
    (relaxed, acquire, release, atomic) don't race with each other.
    """

    instruction: Instruction
    space: str
    dtype: np.dtype[Any]
    count: int = 1
    strong: bool = False
    atomic: str = ""
    type: str = ""
    async_copy: bool = False
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nbytes", self.dtype.itemsize * self.count)

    @property
    def is_load(self) -> bool:
        """Tell plain loads, which may read one value for all threads at once."""
        return self.instruction.opcode.startswith("ld")
