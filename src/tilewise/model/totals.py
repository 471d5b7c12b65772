"""What a kernel cost and saved in one process, or in many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

__all__ = ["Totals", "summed"]


@dataclass(frozen=True, slots=True)
class Totals:
    """
    Counts of one kernel, by name, on one hardware.

    `processes` counts those that reported. `tuning_ms` includes compiling for a
    tuning; `compile_ms` is all compiling. `saved_ms` is what the winners saved over
    the reference, by the medians that chose them.
    """

    kernel: str
    hardware: str
    processes: int = 1
    calls: int = 0
    fallbacks: int = 0
    tunings: int = 0
    compiles: int = 0
    artifact_hits: int = 0
    tuning_ms: float = 0.0
    compile_ms: float = 0.0
    saved_ms: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        """Add the counts of one kernel."""
        counts = (field.name for field in fields(self)[2:])
        sums = (getattr(self, name) + getattr(other, name) for name in counts)
        return Totals(self.kernel, self.hardware, *sums)


def summed(rows: Iterable[Totals]) -> list[Totals]:
    """Return one row per kernel and hardware, sorted by both."""
    found: dict[tuple[str, str], Totals] = {}
    for row in rows:
        key = (row.kernel, row.hardware)
        found[key] = found[key] + row if key in found else row
    return [found[key] for key in sorted(found)]
