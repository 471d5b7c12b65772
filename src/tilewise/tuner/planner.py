"""From a case and its contestants to a decision with all its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from tilewise.model.decision import Decision, cell
from tilewise.model.measurement import Candidate, Provenance
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.clock import CONTENDED, WALL, Clock
from tilewise.tuner.contest import Case, Contestant, filling
from tilewise.tuner.measure import Lane, Outcome, Rules, race, sampler
from tilewise.tuner.verify import Verdict, prepare, verify

__all__ = ["decide"]


def decide(
    case: Case,
    contestants: Sequence[Contestant],
    rejected: Sequence[Candidate] = (),
    incumbent: Variant | None = None,
    budget_s: float = 1.0,
    *,
    margin: float = 0.05,
    clock: Clock = WALL,
    random: np.random.Generator | None = None,
    cache: str = "warm",
    provenance: Provenance = (),
) -> Decision:
    """
    Verify all contestants, race those that are right, and decide.

    `contestants` come the simplest first; the reference always races and is never
    judged. An incumbent stays unless beaten by the margin; without one the reference
    is it. `rejected` are carried into the decision as they are. Where nothing else is
    right the reference wins, and no figure but its own is claimed.
    """
    field = with_reference(case, contestants)
    verdicts = examined(case, field)
    racing = [c for c in field if verdicts[c.variant].ok]
    variants = [c.variant for c in racing]
    base = variants.index(incumbent if incumbent in variants else REFERENCE)
    entries = [(c.variant, sampler(c, case, clock, cache)) for c in racing]
    settings = Rules(margin, clock, cache)
    outcome = race(entries, budget_s, base, rules=settings, random=random)
    lanes = {lane.variant: lane for lane in outcome.lanes}
    figures = [candidate(c, verdicts[c.variant], lanes, outcome) for c in field]
    return concluded(case, outcome, (*figures, *rejected), provenance)


def concluded(
    case: Case,
    outcome: Outcome,
    candidates: tuple[Candidate, ...],
    provenance: Provenance,
) -> Decision:
    """Write a race down as the decision of the log2 cell around its point."""
    variants = [lane.variant for lane in outcome.lanes]
    return Decision(
        region=cell(case.point),
        variant=variants[outcome.standing.winner],
        point=case.point,
        candidates=candidates,
        ties=tuple(variants[i] for i in outcome.standing.ties),
        contended=outcome.busy > CONTENDED,
        made_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance=provenance,
    )


def with_reference(case: Case, contestants: Sequence[Contestant]) -> list[Contestant]:
    """Return the contestants with the reference among them, first if it was not."""
    if any(c.variant == REFERENCE for c in contestants):
        return list(contestants)
    return [filling(case), *contestants]


def examined(case: Case, field: Sequence[Contestant]) -> dict[Variant, Verdict]:
    """Verify every contestant but the reference, against the same trials."""
    exam = prepare(case) if len(field) > 1 else None
    found = {}
    for contestant in field:
        if contestant.variant == REFERENCE:
            found[contestant.variant] = Verdict("right")
        else:
            found[contestant.variant] = verify(contestant.run, case, exam)
    return found


def candidate(
    contestant: Contestant,
    verdict: Verdict,
    lanes: Mapping[Variant, Lane],
    outcome: Outcome,
) -> Candidate:
    """Write down a contestant's part: its figures, or why it has none."""
    variant, compile_ms = contestant.variant, contestant.compile_ms
    lane = lanes.get(variant)
    if lane is None:
        return Candidate(
            variant, verdict.status, verdict.reason, None, compile_ms, verdict.error
        )
    timing = outcome.timing(lane)
    status = "failed" if lane.failed else "measured" if timing else "not tried"
    reason = lane.reason or ("" if timing else "not tried (budget)")
    return Candidate(variant, status, reason, timing, compile_ms, verdict.error)
