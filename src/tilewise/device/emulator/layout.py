"""
Place a kernel's variables: shared memory, the per-thread frame, the parameters.

Red zones lie around every shared and local array, so an index past its end is seen
where real hardware would read the neighbour. A zone is a jump of 64 bytes wide; what
jumps farther is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewise.device.emulator.syntax import PtxError, Variable

__all__ = ["RED_ZONE", "WINDOWS", "Frame", "lay_out", "param_offsets"]

RED_ZONE: Final = 64
#: Where a state space begins among generic addresses; global memory lies below.
WINDOWS: Final = {"shared": 0x7F00_0000_0000, "local": 0x7E00_0000_0000}
_FIRST: Final = 256


@dataclass(frozen=True, slots=True)
class Frame:
    """
    Offsets of the variables of one space.

    `regions` are (start, end, name) of fixed size; `dynamic` is where dynamic shared
    memory starts, which ends where the launch says; `nbytes` includes red zones.
    """

    offsets: dict[str, int]
    regions: tuple[tuple[int, int, str], ...]
    dynamic: int | None
    nbytes: int


def lay_out(variables: list[Variable], spaces: tuple[str, ...]) -> Frame:
    """Lay the variables of some spaces out with red zones between them."""
    offsets: dict[str, int] = {}
    regions: list[tuple[int, int, str]] = []
    at = _FIRST
    mine = [v for v in variables if v.space in spaces]
    for variable in (v for v in mine if v.nbytes):
        at = _aligned(at, max(variable.align, 16))
        offsets[variable.name] = at
        regions.append((at, at + variable.nbytes, variable.name))
        at += variable.nbytes + RED_ZONE
    dynamic = None
    for variable in (v for v in mine if not v.nbytes):
        if dynamic is None:
            dynamic = at = _aligned(at, 1024)
        offsets[variable.name] = dynamic
    return Frame(offsets, tuple(regions), dynamic, _aligned(at + RED_ZONE, 256))


def param_offsets(params: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    """Return the offsets of kernel parameters, and the bytes of all."""
    offsets, at = {}, 0
    for param in params:
        if param.nbytes == 0:
            raise PtxError(f"parameter {param.name} has no size")
        at = _aligned(at, param.align)
        offsets[param.name] = at
        at += param.nbytes
    return offsets, at


def _aligned(at: int, align: int) -> int:
    return -(-at // align) * align
