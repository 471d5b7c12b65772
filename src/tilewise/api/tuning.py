"""Tuning on demand: what a kernel's `tune` asks for, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewise.api.checks import checked_ranges, checked_tuning
from tilewise.api.explain import TuneReport
from tilewise.api.own import stated_sizes
from tilewise.api.progress import Progress, progress_of
from tilewise.api.shapes import Made, assumption, axis_names, question_at
from tilewise.model.resolution import Resolution
from tilewise.model.swept import Ranges, Swept
from tilewise.runtime.mode import forbidden
from tilewise.runtime.question import Question, Subject
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.settle import PATIENT_S, settled
from tilewise.runtime.tally import Tally
from tilewise.tuner.watch import watching

__all__ = ["tune"]


def tune(
    subject: Subject,
    resolver: Resolver,
    tally: Tally,
    args: tuple[Any, ...],
    *,
    shapes: Sequence[tuple[int, int, int]] | None,
    sizes: Sequence[Mapping[str, int] | tuple[int, ...]] | None,
    ranges: Mapping[str, int | tuple[int, int]] | None,
    made: Made,
    force: bool,
    budget_s: float | None,
    progress: bool | None,
) -> TuneReport:
    """Measure a kernel's arguments or shapes and report; see `TunedKernel.tune`."""
    if not args and shapes is None and sizes is None and ranges is None:
        sizes = subject.options.sizes or None
    if sizes is not None:
        sizes = stated_sizes(axis_names(subject), sizes)
    problems = checked_tuning(args, shapes, sizes, budget_s, ranges)
    error = forbidden(subject.options.tune)
    if error is not None:
        raise error
    work = Tuning(subject, resolver, tally, made, force, budget_s)
    count = len(problems) if ranges is None else None  # A sweep probes as it goes.
    work.show = progress_of(subject.name, count, progress)
    with work.show.shown(), watching(work.show.step):
        try:
            if ranges is None:
                work.decide(args, problems)
            else:
                work.sweep(checked_ranges(ranges, axis_names(subject)))
        except KeyboardInterrupt:
            work.interrupted = True
    return work.report("" if args else assumption(subject, made[2]))


@dataclass(slots=True)
class Tuning:
    """One tuning that was asked for, with what is decided so far."""

    subject: Subject
    resolver: Resolver
    tally: Tally
    made: Made
    force: bool
    budget_s: float | None
    show: Progress = field(default_factory=lambda: Progress("", 0))
    resolutions: list[Resolution] = field(default_factory=list)
    sweeps: list[Swept] = field(default_factory=list)
    interrupted: bool = False

    def decide(
        self, args: tuple[Any, ...], problems: Sequence[Mapping[str, int]]
    ) -> None:
        """Settle problems one after the other."""
        for point in problems:
            question = question_at(self.subject, args, point, self.made)
            self.show.begin("x".join(map(str, point.values())))
            resolution, _ = settled(
                self.resolver, question, self.resolver.look(question), self.tally,
                force=self.force, budget_s=self.budget_s, wait_s=PATIENT_S,
            )  # fmt: skip
            self.resolutions.append(resolution)
            self.show.end(resolution)

    def sweep(self, ranges: Ranges) -> None:
        """Sweep ranges; where nobody competes, say why."""
        from tilewise.runtime.sweeps import swept  # A warm process never measures.

        low = {name: span[0] for name, span in ranges.items()}
        least = self.resolver.look(self.asked(low))
        if least.final:
            self.resolutions.append(least)
            return
        for one in swept(
            self.resolver, self.asked, self.tally, ranges, subject=self.subject,
            force=self.force, budget_s=self.budget_s, told=self.show.end,
        ):  # fmt: skip
            self.sweeps.append(one)
            self.interrupted |= one.ended == "interrupted"

    def asked(self, sizes: Mapping[str, int]) -> Question:
        """Make arguments for sizes and put them as a question."""
        self.show.begin("x".join(map(str, sizes.values())))
        return question_at(self.subject, (), sizes, self.made)

    def report(self, assumed: str) -> TuneReport:
        """Return what a tuning came to."""
        found = tuple(self.resolutions), self.interrupted, assumed
        return TuneReport(self.subject.name, *found, tuple(self.sweeps))
