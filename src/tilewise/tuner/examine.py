"""Examine contestants and open a lane to each: here, or in a worker process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.clock import Clock
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.expect import is_vast
from tilewise.tuner.isolate import Limits, Lost, Relay, bounded
from tilewise.tuner.measure import LEAST_S, MOST_S, Rules
from tilewise.tuner.sampling import Sampler, sampler
from tilewise.tuner.verify import Exam, Verdict, prepare, verify
from tilewise.tuner.watch import tell

__all__ = ["Field", "examine"]

UNTRIED = Verdict("not tried", "not tried (budget)")


@dataclass(slots=True)
class Field:
    """The verdict on each contestant, and a sampler for those that are right."""

    verdicts: dict[Variant, Verdict] = field(default_factory=dict)
    samplers: dict[Variant, Sampler] = field(default_factory=dict)


def examine(
    case: Case,
    contestants: Sequence[Contestant],
    rules: Rules,
    limits: Limits,
    closing: ExitStack,
    budget_s: float | None,
) -> Field:
    """
    Verify every contestant but the reference against the same trials.

    Those that are isolated share one worker, which ends when `closing` is left.
    KeyboardInterrupt passes.
    """
    found, end = Field(), rules.clock.read() + 1e9 * limits.total_s
    judged = [c for c in contestants if c.variant != REFERENCE]
    call_s = reference_s(case, judged, rules.clock)
    outlasts = is_vast(case) and call_s > (MOST_S if budget_s is None else budget_s)
    exam = prepare(case) if judged and not outlasts else None
    entered = contestants if exam else [c for c in contestants if c not in judged]
    samplers = [sampler(c, case, rules.clock, rules.cache) for c in entered]
    limits = bounded(limits, LEAST_S if budget_s is None else budget_s, call_s)
    apart = Apart(exam, entered, samplers, limits)
    closing.callback(apart.relay.close)
    for place, contestant in enumerate(entered):
        if contestant.variant == REFERENCE or exam is None:
            verdict, sample = Verdict("right"), samplers[place]
        elif rules.clock.read() > end:
            continue
        else:
            tell("verifying", contestant.variant)
            verdict, sample = apart.judged(place)
        found.verdicts[contestant.variant] = verdict
        found.samplers[contestant.variant] = sample
    apart.make_ready(found)
    for contestant in judged:
        found.verdicts.setdefault(contestant.variant, UNTRIED)
    return found


def reference_s(case: Case, judged: Sequence[Contestant], clock: Clock) -> float:
    """Return what one call of the reference takes (s), or 0 where nobody asks."""
    asked = is_vast(case) or any(contestant.isolated for contestant in judged)
    if case.bench is not None or not judged or not asked:
        return 0.0
    begun = clock.read()
    case.reference(*case.args)
    return 1e-9 * (clock.read() - begun)


class Apart:
    """
    Contestants by their places, the isolated ones verified and timed in a worker.

    `ran` are, in a worker, those that have run there: what they compile is compiled.
    """

    def __init__(
        self,
        exam: Exam | None,
        contestants: Sequence[Contestant],
        samplers: Sequence[Sampler],
        limits: Limits,
    ) -> None:
        self.exam, self.contestants, self.samplers = exam, contestants, samplers
        self.ran: set[str] = set()
        self.passed: list[int] = []
        self.relay = Relay({"judge": self.judge, "sample": self.sample}, limits)

    def judge(self, place: str) -> list[Any]:
        """Verify a contestant, in a worker."""
        self.ran.add(place)
        verdict = self.verified(int(place))
        return [verdict.status, verdict.reason, verdict.error]

    def sample(self, place: str, calls: str) -> float:
        """Time a contestant, in a worker; one that is new there runs once before."""
        sample = self.samplers[int(place)]
        if place not in self.ran:
            self.ran.add(place)
            sample(1)
        return sample(int(calls))

    def verified(self, place: int) -> Verdict:
        """Verify a contestant in this process."""
        assert self.exam is not None
        return verify(self.contestants[place].run, self.exam.case, self.exam)

    def judged(self, place: int) -> tuple[Verdict, Sampler]:
        """Verify a contestant where it belongs, and return what times it there."""
        isolated = self.contestants[place].isolated
        if not isolated or self.exam is None or self.exam.case.bench is not None:
            return self.verified(place), self.samplers[place]  # CUDA can't be forked.
        try:
            verdict = Verdict(*self.relay.ask("judge", place))
        except Lost as lost:
            if is_openmp(lost):
                return self.verified(place), self.samplers[place]
            return Verdict("failed", str(lost)), self.samplers[place]
        self.passed += [place] * verdict.ok
        return verdict, lambda calls: float(self.relay.ask("sample", place, calls))

    def make_ready(self, found: Field) -> None:
        """Run those once that passed in a worker lost since: they compile anew."""
        for place in self.passed:
            if place not in self.relay.served:
                try:
                    self.relay.ask("sample", place, 1)
                except Lost as lost:
                    variant = self.contestants[place].variant
                    found.verdicts[variant] = Verdict("failed", str(lost))


def is_openmp(lost: Lost) -> bool:
    """
    Say whether numba has ended a worker for using GNU OpenMP, which runs here too.

    It does so with SIGTERM in any fork of a process whose OpenMP threads run, so that
    such a contestant can only be measured in this process.
    """
    return "SIGTERM" in str(lost) and "numba" in sys.modules
