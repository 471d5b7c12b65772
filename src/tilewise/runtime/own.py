"""A kernel's own variants: who can serve, what of them still holds, what they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewise.errors import EngineError
from tilewise.model.axes import Posed
from tilewise.model.decision import Decision
from tilewise.model.measurement import Candidate
from tilewise.model.problem import Problem
from tilewise.model.variant import Variant
from tilewise.runtime.question import Subject

if TYPE_CHECKING:
    from tilewise.tuner.contest import Contestant

__all__ = [
    "matching",
    "own_call",
    "own_contestant",
    "pinned_own",
    "survey_own",
    "unraced",
]


def survey_own(
    subject: Subject, problem: Posed
) -> tuple[list[Variant], list[Candidate]]:
    """Return the user's variants that can serve, and why the others can't."""
    able: list[Variant] = []
    unable: list[Candidate] = []
    for variant in subject.user.variants():
        reason = subject.user.methods[variant.method].rejects(variant, problem)
        if reason is None:
            able.append(variant)
        else:
            version = subject.version(variant.method)
            unable.append(Candidate(variant, "rejected", reason, version=version))
    return able, unable


def unraced(
    decision: Decision | None, subject: Subject, able: Iterable[Variant]
) -> tuple[set[Variant], set[Variant]]:
    """
    Return who did not race for a decision, and whose code has changed since.

    A kernel that allows more engines than the one that was decided, and a variant that
    a user adds, have not raced.
    """
    if decision is None:
        return set(), set()
    seen = {c.variant: c.version for c in decision.candidates}
    fresh = {v for v in able if v not in seen}
    own = [v for v in able if v.engine == "user" and v in seen]
    return fresh, {v for v in own if seen[v] != subject.version(v.method)}


def matching(pin: Variant, known: Iterable[Variant]) -> list[Variant]:
    """Return the variants that a pin names: itself, or all of its method."""
    if pin.config:
        return [v for v in known if v == pin]
    return [v for v in known if v.name == pin.name]


def pinned_own(pin: Variant, subject: Subject, problem: Posed) -> Variant | str:
    """Return the first variant of a pin that can serve, or why none can."""
    own = subject.user
    reasons = []
    for variant in matching(pin, own.variants()):
        reason = own.methods[variant.method].rejects(variant, problem)
        if reason is None:
            return variant
        reasons.append(reason)
    known = ", ".join(["reference", *map(str, own.variants())])
    return "; ".join(dict.fromkeys(reasons)) or f"{subject.name} has {known}"


def own_contestant(variant: Variant, subject: Subject, problem: Posed) -> Contestant:
    """Enter a user's variant into a race, in a worker unless it runs here anyway."""
    from tilewise.tuner.contest import returning

    own = subject.user
    apart = own.methods[variant.method].isolated and variant not in own.trusted
    isolated = apart and problem.residency == "host"
    fills = isinstance(problem, Problem)
    entered = returning(variant, own.bare(variant), fills, isolated)
    return replace(entered, version=subject.version(variant.method))


def own_call(
    variant: Variant, subject: Subject, rest: tuple[Any, ...] = ()
) -> Callable[..., Any]:
    """
    Return what a call of a user's variant runs from now on, in this process.

    `rest` are defaulted arguments that the calls leave out. What it raises comes as
    EngineError, so that the reference serves.
    """
    bare = subject.user.bare(variant)
    subject.user.trusted.add(variant)

    def call(*args: Any) -> Any:
        try:
            return bare(*args, *rest)
        except (Exception, SystemExit) as error:
            told = f"{variant} raises {type(error).__name__}: {error}"
            raise EngineError(told[:500]) from error

    return call
