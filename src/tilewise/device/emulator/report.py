"""
Report what the sanitizer finds.

Reports of one kind at one instruction are one report with a count; the block, thread
and address are those of the first occurrence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tilewise.device.emulator.syntax import Instruction

__all__ = ["KINDS", "Faults", "Report"]

#: What is looked for, and what it means.
KINDS: Final = {
    "out_of_bounds": "an access outside every buffer and array",
    "misaligned": "an address that is no multiple of the access's size",
    "uninitialised": "memory is read that nobody wrote",
    "uninitialised_register": "a register is read before it is written",
    "race_raw": "a thread reads what another wrote with no barrier between",
    "race_war": "a thread writes what another read with no barrier between",
    "race_waw": "two threads write the same place with no barrier between",
    "async_unwaited": "an asynchronous copy is used before it was waited for",
    "async_never_waited": "a kernel ends with an asynchronous copy not waited for",
    "barrier_divergence": "threads of a block wait at different barriers",
    "barrier_exited": "threads wait at a barrier that others left by exiting",
    "barrier_deadlock": "too few threads come to a barrier for its count",
    "inactive_lane": "a warp operation reads a thread that does not take part",
    "membermask": "a warp operation whose mask lacks a thread that runs it",
    "warp_divergence": "a warp operation runs without threads that its mask names",
    "read_only": "a store into constant memory or parameters",
    "trap": "the kernel executed trap",
}


@dataclass(frozen=True, slots=True)
class Report:
    """
    One finding of the sanitizer.

    `line` and `text` are the PTX's, `source` is "file:line" of the Python or CUDA
    source where the PTX carries line information. `block` and `thread` are (x, y, z);
    `address` is the offset in bytes inside the space (for global memory the device
    address); `other` names the other side of a race.
    """

    kind: str
    kernel: str
    line: int
    text: str
    source: str
    space: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    address: int | None
    count: int
    other: str = ""

    def __str__(self) -> str:
        source = f" ({self.source})" if self.source else ""
        where = f"block {self.block} thread {self.thread}"
        if self.address is not None:
            where += f" {self.space} {self.address:#x}"
        other = f"; {self.other}" if self.other else ""
        return (
            f"{self.kind}: {KINDS[self.kind]} [{self.count}x]\n"
            f"  {self.kernel}, PTX line {self.line}{source}: {self.text}\n"
            f"  first at {where}{other}"
        )


class Faults:
    """Collect reports while a kernel runs."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self._found: dict[tuple[str, int], Report] = {}

    def add(
        self,
        kind: str,
        instruction: Instruction,
        count: int,
        place: tuple[tuple[int, int, int], tuple[int, int, int]],
        *,
        space: str = "",
        address: int | None = None,
        other: str = "",
    ) -> None:
        """Count a finding; the first of its kind and line is kept as the example."""
        key = (kind, instruction.line)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + count)
            return
        self._found[key] = Report(
            kind,
            self.kernel,
            instruction.line,
            instruction.text,
            instruction.source,
            space,
            *place,
            address,
            count,
            other,
        )

    @property
    def reports(self) -> tuple[Report, ...]:
        """List the reports by PTX line."""
        return tuple(sorted(self._found.values(), key=lambda r: (r.line, r.kind)))
