"""Examine contestants and open a lane to each: here, or in a worker of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.clock import Clock
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.expect import is_vast
from tilewise.tuner.isolate import Answers, Limits, Lost, Worker
from tilewise.tuner.measure import MOST_S, Rules, Sampler, sampler
from tilewise.tuner.verify import Exam, Verdict, prepare, verify
from tilewise.tuner.watch import tell

__all__ = ["Field", "examine"]


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

    Workers end when `closing` is left. KeyboardInterrupt passes.
    """
    found = Field()
    judged = [c for c in contestants if c.variant != REFERENCE]
    if judged and outlasts(case, rules.clock, budget_s):
        untried = Verdict("not tried", "not tried (budget)")
        found.verdicts = {c.variant: untried for c in judged}
    exam = prepare(case) if judged and not found.verdicts else None
    for contestant in contestants:
        if contestant.variant in found.verdicts:
            continue
        tell("verifying", contestant.variant)
        sample = sampler(contestant, case, rules.clock, rules.cache)
        if contestant.variant == REFERENCE or exam is None:
            verdict = Verdict("right")
        elif contestant.isolated and case.bench is None:  # CUDA does not survive forks.
            verdict, sample = apart(contestant, exam, sample, limits, closing)
        else:
            verdict = verify(contestant.run, case, exam)
        found.verdicts[contestant.variant] = verdict
        found.samplers[contestant.variant] = sample
    return found


def outlasts(case: Case, clock: Clock, budget_s: float | None) -> bool:
    """Say whether one call of the reference on a large problem takes the budget."""
    if case.bench is not None or not is_vast(case):
        return False
    begun = clock.read()
    case.reference(*case.args)
    return clock.read() - begun > 1e9 * (MOST_S if budget_s is None else budget_s)


def apart(
    contestant: Contestant,
    exam: Exam,
    sample: Sampler,
    limits: Limits,
    closing: ExitStack,
) -> tuple[Verdict, Sampler]:
    """Verify a contestant in a worker, which then stays to be timed by `sample`."""

    def judge() -> list[Any]:
        verdict = verify(contestant.run, exam.case, exam)
        return [verdict.status, verdict.reason, verdict.error]

    try:
        answers: Answers = {
            "judge": judge,
            "sample": lambda calls: sample(int(calls)),
        }
        worker = Worker(answers, limits)
        closing.callback(worker.close, "was stopped")
        return Verdict(*worker.ask("judge")), asking(worker)
    except Lost as lost:
        if is_openmp(lost):
            return verify(contestant.run, exam.case, exam), sample
        return Verdict("failed", str(lost)), sample


def is_openmp(lost: Lost) -> bool:
    """
    Say whether numba has ended a worker for using GNU OpenMP, which runs here too.

    It does so with SIGTERM in any fork of a process whose OpenMP threads run, so that
    such a contestant can only be measured in this process.
    """
    return "SIGTERM" in str(lost) and "numba" in sys.modules


def asking(worker: Worker) -> Callable[[int], float]:
    """Return a sampler that lets a worker take the time."""
    return lambda calls: float(worker.ask("sample", calls))
