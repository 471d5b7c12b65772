"""From a case and its contestants to a decision with all its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from tilewise.model.decision import Decision, cell
from tilewise.model.measurement import Candidate, Provenance
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.bench import EVENT_GRAIN_NS
from tilewise.tuner.clock import CONTENDED, WALL, Clock
from tilewise.tuner.contest import Case, Contestant, filling
from tilewise.tuner.examine import Field, examine
from tilewise.tuner.isolate import LIMITS, Limits
from tilewise.tuner.measure import Outcome, Rules, race
from tilewise.tuner.rule import apart

__all__ = ["decide", "now"]


def decide(
    case: Case,
    contestants: Sequence[Contestant],
    rejected: Sequence[Candidate] = (),
    incumbent: Variant | None = None,
    budget_s: float | None = None,
    *,
    margin: float = 0.05,
    clock: Clock = WALL,
    random: np.random.Generator | None = None,
    cache: str = "warm",
    limits: Limits = LIMITS,
    known: Sequence[Candidate] = (),
    provenance: Provenance = (),
) -> Decision:
    """
    Verify all contestants, race those that are right, and decide.

    `contestants` come the simplest first. The reference always races, is never judged,
    and wins where nothing else is right. An incumbent (without one the reference)
    stays unless beaten by the margin. `rejected` go into the decision as they are; who
    is among `known`, figures of this case and code, is not run again.
    """
    entered = with_reference(case, contestants)
    kept = holding(known, entered)
    fresh = [c for c in entered if c.variant not in kept]
    rules = Rules(margin, clock_of(case, clock), cache)
    with ExitStack() as closing:
        field = examine(case, fresh, rules, limits, closing, budget_s)
        outcome = raced(field, fresh, incumbent, budget_s, rules, random)
    figures = kept | written(fresh, field, outcome)
    candidates = tuple(figures[c.variant] for c in entered)
    if outcome is None or kept:
        winner, ties = compared(candidates, incumbent, margin)
    else:
        winner, ties = outcome.winner, outcome.ties
    told = (*candidates, *rejected)
    decision = Decision(cell(case.point), winner, case.point, told, ties)
    loaded = outcome is not None and outcome.busy > CONTENDED
    return replace(decision, contended=loaded, made_utc=now(), provenance=provenance)


def holding(
    known: Sequence[Candidate], entered: Sequence[Contestant]
) -> dict[Variant, Candidate]:
    """Return the figures that are of the code that enters."""
    versions = {c.variant: c.version for c in entered}
    return {
        c.variant: c for c in known if c.timing and versions.get(c.variant) == c.version
    }


def clock_of(case: Case, clock: Clock) -> Clock:
    """Return the clock of a race: on a bench the device's events take the time."""
    if case.bench is None:
        return clock
    return replace(clock, name="cuda_event", grain_ns=EVENT_GRAIN_NS)


def now() -> str:
    """Return the time in UTC to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def with_reference(case: Case, contestants: Sequence[Contestant]) -> list[Contestant]:
    """Return the contestants with the reference among them, first if it was not."""
    if any(c.variant == REFERENCE for c in contestants):
        return list(contestants)
    return [filling(case), *contestants]


def raced(
    field: Field,
    fresh: Sequence[Contestant],
    incumbent: Variant | None,
    budget_s: float | None,
    rules: Rules,
    random: np.random.Generator | None,
) -> Outcome | None:
    """Race those of the contestants that are right; None where there are none."""
    racing = [c.variant for c in fresh if field.verdicts[c.variant].ok]
    if not racing:
        return None
    base = incumbent if incumbent in racing else REFERENCE
    place = racing.index(base) if base in racing else 0
    entries = [(variant, field.samplers[variant]) for variant in racing]
    return race(entries, budget_s, place, rules=rules, random=random)


def written(
    fresh: Sequence[Contestant], field: Field, outcome: Outcome | None
) -> dict[Variant, Candidate]:
    """Write down each contestant's part: its figures, or why it has none."""
    lanes = {lane.variant: lane for lane in outcome.lanes} if outcome else {}
    found = {}
    for contestant in fresh:
        variant = contestant.variant
        verdict, lane = field.verdicts[variant], lanes.get(variant)
        status, reason, timing = verdict.status, verdict.reason, None
        if lane is not None and outcome is not None:
            timing = outcome.timing(lane)
            status = "failed" if lane.failed else "measured" if timing else "not tried"
            reason = lane.reason or ("" if timing else "not tried (budget)")
        found[variant] = Candidate(
            variant, status, reason, timing, contestant.compile_ms, verdict.error,
            contestant.version,
        )  # fmt: skip
    return found


def compared(
    candidates: Sequence[Candidate], incumbent: Variant | None, margin: float
) -> tuple[Variant, tuple[Variant, ...]]:
    """Return winner and ties by figures of different races, which are not paired."""
    times = {c.variant: c.timing for c in candidates if c.timing is not None}
    figures = [(t.median_us, t.low_us, t.high_us) for t in times.values()]
    names = list(times)
    base = incumbent if incumbent is not None and incumbent in times else REFERENCE
    if base not in times:
        return REFERENCE, ()
    place, others = apart(figures, names.index(base), margin)
    return names[place], tuple(names[i] for i in others)
