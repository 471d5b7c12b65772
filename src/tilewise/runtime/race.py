"""
Measuring a question: build who can serve, race them, keep the decision.

Figures are kept by variant, problem, code and versions, and those that hold are not
taken again: a new variant measures only itself.
"""

from __future__ import annotations

import os
import platform
import time
from collections import defaultdict
from dataclasses import dataclass

from tilewise.build.order import Counts
from tilewise.errors import EngineError
from tilewise.model.axes import Posed
from tilewise.model.decision import (
    Decision,
    DecisionTable,
    MeasurementRow,
    Point,
    TableKey,
)
from tilewise.model.measurement import Candidate
from tilewise.model.problem import Problem
from tilewise.model.variant import Variant
from tilewise.runtime.case import case_of
from tilewise.runtime.judge import changed_fields
from tilewise.runtime.mode import mode_of
from tilewise.runtime.own import own_contestant
from tilewise.runtime.question import Question
from tilewise.runtime.resolve import Resolver
from tilewise.tuner import isolate
from tilewise.tuner.clock import CONTENDED
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.planner import decide
from tilewise.tuner.watch import tell

__all__ = ["Entrants", "Figures", "entrants", "figures", "keep_rows", "measured"]

Figures = dict[Point, dict[Variant, Candidate]]
"""What was measured and still holds, by problem and variant."""


@dataclass(frozen=True, slots=True)
class Entrants:
    """Who races for a case, and who may not with the reason."""

    key: TableKey
    case: Case
    contestants: tuple[Contestant, ...]
    unable: tuple[Candidate, ...]


def measured(
    resolver: Resolver,
    question: Question,
    counts: Counts,
    *,
    force: bool = False,
    budget_s: float | None = None,
) -> Decision | None:
    """
    Race whoever can serve a question and keep the decision.

    What is known already is not measured again but with `force`. Returns None where
    only the reference can serve.
    """
    entered = entrants(resolver, question, counts)
    if entered is None:
        return None
    key, point = entered.key, entered.case.point
    known = {} if force else figures(resolver, key).get(point, {})
    before = resolver.tables.find(key, point)
    trusted = before is not None and before.origin != "extrapolated"
    decision = decide(
        entered.case,
        entered.contestants,
        entered.unable,
        before.variant if before is not None and trusted else None,
        question.subject.options.budget_s if budget_s is None else budget_s,
        limits=isolate.LIMITS,
        known=tuple(known.values()),
        provenance=resolver.provenance_of(),
    )
    writes = mode_of(question) != "off"
    subject = question.subject
    table = DecisionTable(key, subject.name, (decision,), subject.place)
    resolver.tables.keep(table, writes=writes)
    if writes:
        keep_rows(resolver, key, decision, known)
    return decision


def entrants(resolver: Resolver, question: Question, counts: Counts) -> Entrants | None:
    """Build all who can serve a question; None where only the reference can."""
    problem = question.problem
    if problem is None:
        return None
    able, unable = resolver.candidates(question, problem)
    if not able:
        return None
    contestants: list[Contestant] = []  # The reference joins by itself.
    for variant in able:
        made = enter(resolver, variant, question, problem, counts)
        if isinstance(made, Candidate):
            unable.append(made)
        else:
            contestants.append(made)
    case = case_of(question, problem)
    return Entrants(resolver.key(problem), case, tuple(contestants), tuple(unable))


def enter(
    resolver: Resolver,
    variant: Variant,
    question: Question,
    problem: Posed,
    counts: Counts,
) -> Contestant | Candidate:
    """Build a variant for the race, or say why it could not be built."""
    if not isinstance(problem, Problem) or variant.engine == "user":
        return own_contestant(variant, question.subject, problem)
    tell("building", variant)
    try:
        made = resolver.prepared(variant, problem, counts)
    except EngineError as error:
        return Candidate(variant, "failed", str(error))
    return Contestant(variant, made.run, made.build_ms, version=made.key[:16])


# What was measured before.


def figures(resolver: Resolver, key: TableKey) -> Figures:
    """
    Return a table's figures that hold, the latest of each.

    Taken under load, or with versions that have changed since and matter to the
    variant, they do not.
    """
    now = resolver.provenance_of()
    found: Figures = defaultdict(dict)
    for row in resolver.store_of().rows(key):
        timing, engine = row.candidate.timing, row.candidate.variant.engine
        quiet = timing is not None and timing.busy <= CONTENDED
        if quiet and not changed_fields({engine}, row.provenance, now):
            found[row.point][row.candidate.variant] = row.candidate
    return found


def keep_rows(
    resolver: Resolver,
    key: TableKey,
    decision: Decision,
    known: dict[Variant, Candidate],
) -> None:
    """Store what was measured for a decision as rows that are never changed."""
    writer = f"{platform.node()} {os.getpid()} {time.monotonic_ns()}"
    told = decision.provenance, writer, decision.made_utc
    resolver.store_of().add_rows(
        MeasurementRow(key, decision.point, one, *told)
        for one in decision.candidates
        if one.timing is not None and one != known.get(one.variant)
    )
