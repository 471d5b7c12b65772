"""
From a question to the entry that calls run: look, measure if it may, load.

What fails to build or load gives way to the next candidate, at last the reference,
once and loudly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewise.engines.base import Run, bound_run
from tilewise.errors import EngineError
from tilewise.model.resolution import REFERENCE, Resolution
from tilewise.model.variant import Variant
from tilewise.runtime.dispatch import Entry
from tilewise.runtime.mode import is_passing
from tilewise.runtime.notice import noticed
from tilewise.runtime.on_device import allocating, reference_on, unfolding
from tilewise.runtime.own import own_call
from tilewise.runtime.question import Question
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.settle import resolved
from tilewise.runtime.tally import Tally

__all__ = ["entry_for", "reference_entry", "saving_us"]


def entry_for(
    resolver: Resolver,
    question: Question,
    pin: Variant | None,
    tally: Tally,
    rest: tuple[Any, ...] = (),
) -> tuple[Entry, bool]:
    """
    Return what a question's calls run, and whether that lasts.

    `rest` are defaulted arguments that the calls leave out.
    """
    with noticed(question.subject.name):
        resolution, lasting = resolved(resolver, question, pin, tally)
        entry = loaded(resolver, question, resolution, pin, tally, rest)
    if not resolution.final and resolution.grade != "measured":
        lasting &= not is_passing()
    return entry, lasting


def loaded(
    resolver: Resolver,
    question: Question,
    resolution: Resolution,
    pin: Variant | None,
    tally: Tally,
    rest: tuple[Any, ...],
) -> Entry:
    """Load the first variant that loads, in the order of the evidence."""
    problem, own, failed = question.fused, question.subject.user.methods, ""
    for variant in in_turn(resolution):
        if variant.engine == "user":
            if variant.method in own:
                return own_entry(question, resolution, variant, rest)
            continue
        if variant == REFERENCE or problem is None:
            break
        try:
            run = resolver.prepared(variant, problem, tally.built).run
            if question.bound:
                run = bound_run(run, question.args)
        except EngineError as error:
            if pin is not None:
                raise
            told(question, variant, error)
            failed = f"{variant} failed: {error}"
            continue
        return fused_entry(question, resolution, variant, with_defaults(run, rest))
    alone = resolution.reason if resolution.final and pin is None else ""
    return reference_entry(
        question.subject.function, question.residency, failed or alone
    )


def in_turn(resolution: Resolution) -> Iterator[Variant]:
    """Yield the resolved variant, then the other measured ones, the fastest first."""
    yield resolution.variant
    decided = resolution.decision
    timed = [(c.timing.median_us, c.variant) for c in decided.candidates
             if c.timing and c.status == "measured"] if decided else []  # fmt: skip
    for _, variant in sorted(timed):
        if variant != resolution.variant:
            yield variant


def told(question: Question, variant: Variant, error: EngineError) -> None:
    """Warn that a variant gave way."""
    warnings.warn(
        f"{question.subject.name}: {variant} failed and gives way: {error}",
        RuntimeWarning,
        stacklevel=2,
    )


def fused_entry(
    question: Question, resolution: Resolution, variant: Variant, run: Run
) -> Entry:
    """Make the entry of a loaded variant."""
    problem = question.fused
    assert problem is not None
    shape, dtype = problem.shape, np.dtype(problem.spec.dtype)
    entry = Entry(str(variant), run, shape, dtype)
    if question.residency == "device":
        run = unfolding(run, problem)
        entry.direct, entry.run, entry.filling = allocating(run, problem), None, run
    if variant == resolution.variant:
        entry.saving_us = saving_us(resolution)
    return entry


def own_entry(
    question: Question, resolution: Resolution, variant: Variant, rest: tuple[Any, ...]
) -> Entry:
    """Make the entry of a user's variant, which returns its result."""
    call = own_call(variant, question.subject, rest)
    entry = Entry(str(variant), None, direct=call)
    if variant == resolution.variant:
        entry.saving_us = saving_us(resolution)
    return entry


def reference_entry(
    function: Callable[..., Any], residency: str, fallback: str
) -> Entry:
    """Make the entry of the user's own function."""
    direct = reference_on(function) if residency == "device" else function
    return Entry("reference", None, direct=direct, fallback=fallback)


def with_defaults(run: Run, rest: tuple[Any, ...]) -> Run:
    """Put defaulted arguments before `out`."""
    return (lambda *args: run(*args[:-1], *rest, args[-1])) if rest else run


def saving_us(resolution: Resolution) -> float:
    """Return what a call saves over the reference (us), by the stored medians."""
    decided = resolution.decision
    if decided is None:
        return 0.0
    best, base = decided.timing(resolution.variant), decided.timing(REFERENCE)
    return base.median_us - best.median_us if best and base else 0.0
