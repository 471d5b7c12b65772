"""Tuning on demand: what a kernel's `tune` asks for, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewise.api.checks import checked_tuning
from tilewise.api.explain import TuneReport
from tilewise.api.progress import progress_of
from tilewise.api.shapes import Made, assumption, question_at
from tilewise.model.resolution import Resolution
from tilewise.runtime.mode import forbidden
from tilewise.runtime.question import Subject
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
    sizes: Sequence[Mapping[str, int]] | None,
    made: Made,
    force: bool,
    budget_s: float | None,
    progress: bool | None,
) -> TuneReport:
    """Measure a kernel's arguments or shapes and report; see `TunedKernel.tune`."""
    if not args and shapes is None and sizes is None:
        sizes = subject.options.sizes or None
    problems = checked_tuning(args, shapes, sizes, budget_s)
    error = forbidden(subject.options.tune)
    if error is not None:
        raise error
    resolutions: list[Resolution] = []
    show = progress_of(subject.name, len(problems), progress)
    interrupted = False
    with show.shown(), watching(show.step):
        try:
            for point in problems:
                question = question_at(subject, args, point, made)
                show.begin("x".join(map(str, point.values())))
                resolution, _ = settled(
                    resolver, question, tally, force=force, budget_s=budget_s,
                    wait_s=PATIENT_S,
                )  # fmt: skip
                resolutions.append(resolution)
                show.end(resolution)
        except KeyboardInterrupt:
            interrupted = True
    assumed = "" if args else assumption(subject, made[2])
    return TuneReport(subject.name, tuple(resolutions), interrupted, assumed)
