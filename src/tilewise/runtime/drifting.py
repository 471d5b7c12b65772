"""Whether what is stored for a kernel still wins, and what is put in its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tilewise.build.order import Counts
from tilewise.device.fingerprint import visible_gpus
from tilewise.model.decision import Decision, DecisionTable, Point, TableKey
from tilewise.model.variant import Variant
from tilewise.runtime.question import Question
from tilewise.runtime.race import Entrants, entrants, keep_rows
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.settle import PATIENT_S, turn
from tilewise.store.merge import repaired
from tilewise.tuner.drift import Drift, recheck

__all__ = ["drifted"]

Ask = Callable[[Mapping[str, int], TableKey, int], Question]
"""Make sizes by axis as a table's question, on the GPU of a number."""


def drifted(
    resolver: Resolver, ask: Ask, name: str, *, repair: bool, budget_s: float | None
) -> Iterator[Drift | str]:
    """
    Measure the stored winners of a kernel again, each at the point of its evidence.

    Yields a drift for each, and in words which table is not checked and why. To
    `repair` puts new winners in the places of those that lost by the margin. What a
    package ships is not this host's to check: it gives way to what is measured here.
    """
    numbers = reversed(range(max(1, len(visible_gpus()))))
    devices = {resolver.fingerprint_of(number): number for number in numbers}
    for table in resolver.store_of().tables():
        key = table.key
        if key.fingerprint not in devices or table.kernel_name != name:
            continue
        device = devices[key.fingerprint]
        groups: dict[tuple[Point, Variant], list[Decision]] = defaultdict(list)
        for decision in table.decisions:
            if not decision.source:
                groups[decision.point, decision.variant].append(decision)
        with turn(resolver, key, PATIENT_S) as mine:
            if not mine:
                yield f"another process measures it: {key.label}"
                continue
            for (point, _), stored in groups.items():
                entered = posed(resolver, ask(dict(point), key, device), key)
                if entered is None:
                    yield f"no such arguments are made: {key.label}"
                    break
                found = measured(resolver, entered, stored[0], budget_s)
                if repair and not found.kept:
                    written = put(resolver, table, stored, found)
                    found = replace(found, written=written)
                yield found


def posed(resolver: Resolver, question: Question, key: TableKey) -> Entrants | None:
    """Build who can serve a stored point, or None where it is of another table."""
    if question.problem is None or resolver.key(question.problem) != key:
        return None
    return entrants(resolver, question, Counts())


def measured(
    resolver: Resolver, entered: Entrants, stored: Decision, budget_s: float | None
) -> Drift:
    """Race a stored decision's point again."""
    found = recheck(
        stored, entered.case, entered.contestants, entered.unable, budget_s,
        provenance=resolver.provenance_of(),
    )  # fmt: skip
    keep_rows(resolver, entered.key, found.decision, {})
    return found


def put(
    resolver: Resolver, table: DecisionTable, stored: list[Decision], found: Drift
) -> bool:
    """
    Put a new winner in the place of a lost one, in all regions that it had.

    Returns whether it is in the store.
    """
    new = tuple(
        replace(found.decision, region=d.region, regret=d.regret, origin=d.origin)
        for d in stored
    )
    kept = replace(table, decisions=new)
    return resolver.tables.keep(kept, writes=True, join=repaired)
