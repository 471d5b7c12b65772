"""What sweeping ranges of sizes left in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewise.model.decision import Decision, Region

__all__ = ["Ranges", "Swept"]

Ranges = Mapping[str, tuple[int, int]]
"""The least and the largest size of each axis."""


@dataclass(frozen=True, slots=True)
class Swept:
    """
    What a sweep left in one table.

    `box` is what was asked; `regions` are its decisions, the measured ones first; of
    `points` problems measured; `regret` is the expected relative loss inside. `ended`
    says why: "regret", "settled", "budget", "interrupted", "decided" (nothing was
    measured) or "busy" (another process measures). `measured_s` counts verifying too,
    as the budget does, but not compiling.
    """

    label: str
    box: Region
    regions: tuple[Decision, ...]
    points: int
    regret: float
    ended: str
    measured_s: float
