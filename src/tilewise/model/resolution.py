"""What a call will run and why."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.model.axes import Posed
from tilewise.model.decision import Decision
from tilewise.model.measurement import Candidate
from tilewise.model.variant import Variant

__all__ = ["REFERENCE", "Resolution"]

REFERENCE = Variant("reference")
"""The user's own function: always there, always right."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """
    The variant of a call with its grade and the reason for both.

    `grade` is "measured", "extrapolated" or "none"; `decision` is the stored
    evidence (or None) and `rejected` what engines refuse for this problem. `final`
    says that there is nothing to measure.
    """

    variant: Variant
    grade: str
    reason: str
    problem: Posed | None = None
    decision: Decision | None = None
    rejected: tuple[Candidate, ...] = ()
    final: bool = False
