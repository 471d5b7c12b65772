"""
How decision tables are joined, so that the first that covers a point still serves.

A table holds a sweep's measured regions, then its regions beyond them, and decisions
for single cells of sizes. A cell is measured when what serves its point is missing,
stale, extrapolated, raced by fewer, or asked for again. It takes from what served its
point the part that both boxes share, and nothing else: a sweep's other regions stay. A
sweep takes all that lies in the box around what it measured; what reaches beyond that
box still serves there, and before what the sweep extrapolates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilewise.model.decision import (
    Decision,
    DecisionTable,
    common,
    enclosing,
    is_inside,
)

__all__ = ["by_age", "merge_tables", "repaired"]

Decisions = tuple[Decision, ...]


def merge_tables(old: DecisionTable | None, new: DecisionTable) -> DecisionTable:
    """Put new decisions into an old table, whenever they were made."""
    kept = old.decisions if old else ()
    return replace(new, decisions=joined(kept, units(new.decisions)))


def by_age(old: DecisionTable | None, new: DecisionTable) -> DecisionTable:
    """Join two tables so that what was decided later serves."""
    parts = [*units(old.decisions if old else ()), *units(new.decisions)]
    ordered = sorted(parts, key=lambda unit: unit[0].made_utc)
    return replace(new, decisions=joined((), ordered))


def repaired(old: DecisionTable | None, new: DecisionTable) -> DecisionTable:
    """Put new decisions in the places of those of the same regions, and no others."""
    found = {decision.region: decision for decision in new.decisions}
    kept = old.decisions if old else ()
    return replace(new, decisions=tuple(found.get(d.region, d) for d in kept))


def units(decisions: Sequence[Decision]) -> list[Decisions]:
    """Return what is joined as one, the last first: sweeps whole, cells one by one."""
    found: dict[object, list[Decision]] = {}
    for place, decision in reversed(list(enumerate(decisions))):
        is_cell = decision.origin == "cell"
        name = place if is_cell else (decision.made_utc, "sweep")
        found.setdefault(name, []).insert(0, decision)
    return [tuple(unit) for unit in found.values()]


def joined(kept: Decisions, parts: Iterable[Decisions]) -> Decisions:
    """Put units into a table, one after the other."""
    for unit in parts:
        kept = amended(kept, *unit) if unit[0].origin == "cell" else swept(kept, unit)
    return kept


def amended(kept: Decisions, cell: Decision) -> Decisions:
    """Put a cell before what served its point, cut to that one's region."""
    place = next((i for i, d in enumerate(kept) if d.covers(cell.point)), None)
    if place is None:
        return cell, *kept
    region = common(cell.region, kept[place].region)
    after = (d for d in kept[place:] if d.region != region)
    return (*kept[:place], replace(cell, region=region), *after)


def swept(kept: Decisions, unit: Decisions) -> Decisions:
    """Put a sweep in the place of all that lies in the box that it measured."""
    measured = tuple(d for d in unit if d.origin != "extrapolated")
    beyond = tuple(d for d in unit if d.origin == "extrapolated")
    box = enclosing([d.region for d in measured])
    outside = (
        d for d in kept
        if d.origin != "extrapolated" and not (measured and is_inside(d.region, box))
    )  # fmt: skip
    return (*measured, *outside, *beyond)
