"""Whether a stored winner still wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewise.model.decision import Decision
from tilewise.model.measurement import Candidate, Provenance
from tilewise.tuner.clock import WALL, Clock
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.planner import decide

__all__ = ["Drift", "recheck"]


@dataclass(frozen=True, slots=True)
class Drift:
    """
    A stored decision beside a new measurement of its point.

    `kept` says that the stored winner still stands; `loss` is what it costs over the
    new one (0.1 is 10 %), None where it can't be measured any more. `decision` is
    what to store in its place, for the same region; `written` says whether that
    was done, None where it was not asked for.
    """

    stored: Decision
    decision: Decision
    kept: bool
    loss: float | None
    written: bool | None = None

    def __str__(self) -> str:
        """Write the result in one line."""
        if self.kept:
            return f"{self.stored.variant} still stands"
        lost = "can't run any more" if self.loss is None else f"loses {self.loss:.0%}"
        told = f"{self.stored.variant} {lost}: {self.decision.variant} wins"
        if self.written is not False:
            return told
        why = "taken under load" if self.decision.contended else "it can't be stored"
        return f"{told}, kept in memory: {why}"


def recheck(
    stored: Decision,
    case: Case,
    contestants: Sequence[Contestant],
    rejected: Sequence[Candidate] = (),
    budget_s: float | None = None,
    *,
    margin: float = 0.05,
    clock: Clock = WALL,
    random: np.random.Generator | None = None,
    provenance: Provenance = (),
) -> Drift:
    """
    Measure a stored decision's point again, its winner being the incumbent.

    It falls only to one that beats it by the margin. `case` must be at the stored
    point.
    """
    new = decide(
        case, contestants, rejected, stored.variant, budget_s,
        margin=margin, clock=clock, random=random, provenance=provenance,
    )  # fmt: skip
    new = replace(new, region=stored.region, regret=stored.regret, origin=stored.origin)
    was, now = new.timing(stored.variant), new.timing(new.variant)
    loss = max(0.0, was.median_us / now.median_us - 1) if was and now else None
    return Drift(stored, new, new.variant == stored.variant, loss)
