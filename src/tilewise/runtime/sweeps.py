"""
Sweeping ranges of sizes: which tables they meet, and their regions kept in them.

Where NumPy broadcasts an axis of size 1, arguments are of another kind there and have
a table of their own: a range that begins at 1 is then swept in two parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tilewise.model.decision import (
    Decision,
    DecisionTable,
    Point,
    Range,
    Region,
    TableKey,
    enclosing,
    is_inside,
)
from tilewise.model.measurement import Candidate
from tilewise.model.resolution import Resolution
from tilewise.model.swept import Ranges, Swept
from tilewise.runtime.question import Question, Subject
from tilewise.runtime.race import entrants, figures, keep_rows
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.settle import PATIENT_S, turn
from tilewise.runtime.tally import Tally
from tilewise.tuner import isolate
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.planner import now
from tilewise.tuner.sweep import Axis, Sweep, sweep

__all__ = ["swept"]

BUDGET_S = 60.0
PART = 8
"""A part at size 1 gets an eighth of the budget, the largest what is left."""


@dataclass(slots=True)
class Sweeping:
    """Sweeps of one kernel's ranges: `ask` poses sizes by axis as a question."""

    resolver: Resolver
    ask: Callable[[Mapping[str, int]], Question]
    tally: Tally
    subject: Subject
    force: bool
    told: Callable[[Resolution], object]

    def key(self, sizes: Mapping[str, int]) -> TableKey | None:
        """Return the table that sizes belong to, or None where nobody competes."""
        question = self.ask(sizes)
        if question.problem is None or self.resolver.look(question).final:
            return None
        return self.resolver.key(question.problem)

    def parts(self, ranges: Ranges) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield ranges that are of one table each, the largest last."""
        least = {n: low + (low == 1 < high) for n, (low, high) in ranges.items()}
        home = self.key(least)
        choices = []
        for name, (low, high) in ranges.items():
            apart = least[name] != low and self.key({**least, name: low}) != home
            choices.append(
                [(low, low), (least[name], high)] if apart else [(low, high)]
            )
        for spans in product(*choices):
            yield dict(zip(ranges, spans, strict=True))

    def part(self, ranges: Ranges, budget_s: float) -> Swept | None:
        """Sweep ranges of one table, unless they are swept; None for no table."""
        low = {name: span[0] for name, span in ranges.items()}
        key = self.key(low)
        if key is None:
            return None
        with turn(self.resolver, key, PATIENT_S) as mine:
            known = self.known(key, low, ranges)
            if not mine or (known and not self.force):
                ended = "decided" if known else "busy"
                return Swept(key.label, box_of(ranges), known, 0, 0.0, ended, 0.0)
            return self.measured(key, ranges, budget_s)

    def known(
        self, key: TableKey, low: Mapping[str, int], ranges: Ranges
    ) -> tuple[Decision, ...]:
        """Return the stored regions where they cover the ranges and still hold."""
        made: dict[str, list[Decision]] = defaultdict(list)
        table = self.resolver.tables.table(key)
        for decision in table.decisions if table else ():
            if decision.origin == "sweep":
                made[decision.made_utc].append(decision)
        if not made or self.resolver.look(self.ask(low)).grade != "measured":
            return ()
        whole = (
            tuple(d) for d in made.values() if is_inside(box_of(ranges), around(d))
        )
        return next(whole, ())

    def measured(self, key: TableKey, ranges: Ranges, budget_s: float) -> Swept:
        """Sweep and keep the regions; what was measured before is not again."""
        axes = [Axis(name, *span) for name, span in ranges.items() if span[0] < span[1]]
        fixed = {name: low for name, (low, high) in ranges.items() if low == high}
        before = {} if self.force else figures(self.resolver, key)
        known = {
            short(point, fixed): tuple(found.values())
            for point, found in before.items()
            if all(dict(point)[name] == size for name, size in fixed.items())
        }

        def keep(decision: Decision) -> None:
            whole = placed(decision, ranges, fixed)
            keep_rows(self.resolver, key, whole, before.get(whole.point, {}))
            self.tally.tunings += 1
            self.told(Resolution(decision.variant, "measured", "measured"))

        found = sweep(
            lambda point: self.posed(key, {**fixed, **dict(point)}, point), axes,
            budget_s, known=known, progress=keep, limits=isolate.LIMITS,
            provenance=self.resolver.provenance_of(),
        )  # fmt: skip
        regions = drawn(found, ranges, fixed)
        if regions:
            name, place = self.subject.name, self.subject.place
            table = DecisionTable(key, name, regions, place)
            self.resolver.tables.keep(table, writes=True)
        self.tally.tuning_ms += 1e3 * found.measured_s
        return Swept(
            key.label, box_of(ranges), regions, len(found.points), found.regret,
            found.ended, found.measured_s,
        )  # fmt: skip

    def posed(
        self, key: TableKey, sizes: Mapping[str, int], point: Point
    ) -> tuple[Case, Sequence[Contestant], Sequence[Candidate]] | None:
        """Pose sizes for the tuner; None where they are of another table."""
        question = self.ask(sizes)
        if question.problem is None or self.resolver.key(question.problem) != key:
            return None
        entered = entrants(self.resolver, question, self.tally.built)
        if entered is None:
            return None
        case = replace(entered.case, point=point)
        return case, entered.contestants, entered.unable


def swept(
    resolver: Resolver,
    ask: Callable[[Mapping[str, int]], Question],
    tally: Tally,
    ranges: Ranges,
    *,
    subject: Subject,
    force: bool = False,
    budget_s: float | None = None,
    told: Callable[[Resolution], object] = lambda resolution: None,
) -> Iterator[Swept]:
    """Sweep ranges of sizes, table by table; ends after one that is interrupted."""
    work = Sweeping(resolver, ask, tally, subject, force, told)
    parts, total = list(work.parts(ranges)), budget_s or BUDGET_S
    left = total
    for place, part in enumerate(parts, 1):
        done = work.part(part, left if place == len(parts) else total / PART)
        if done is not None:
            left = max(total / PART, left - done.measured_s)
            yield done
            if done.ended == "interrupted":
                return


def around(decisions: Sequence[Decision]) -> Region:
    """Return the box around some decisions."""
    return enclosing([decision.region for decision in decisions])


def box_of(ranges: Ranges) -> Region:
    """Return ranges as a box."""
    return tuple(Range(name, *span) for name, span in ranges.items())


def short(point: Point, fixed: Mapping[str, int]) -> Point:
    """Return a point without the axes that do not vary."""
    return tuple((name, size) for name, size in point if name not in fixed)


def placed(decision: Decision, ranges: Ranges, fixed: Mapping[str, int]) -> Decision:
    """Return a decision with the axes that do not vary put in."""
    spans = {span.axis: span for span in decision.region}
    spans |= {name: Range(name, size, size) for name, size in fixed.items()}
    sizes = {**dict(decision.point), **fixed}
    return replace(
        decision,
        region=tuple(spans[name] for name in ranges),
        point=tuple((name, sizes[name]) for name in ranges),
    )


def drawn(
    found: Sweep, ranges: Ranges, fixed: Mapping[str, int]
) -> tuple[Decision, ...]:
    """
    Return a sweep's regions over all axes, made at one time.

    At other sizes of an axis that did not vary they are extrapolated, at an unknown
    loss.
    """
    changes: dict[str, Any] = {"made_utc": now()}
    inside = [replace(placed(d, ranges, fixed), **changes) for d in found.decisions]
    if not fixed:
        return tuple(inside)
    changes = {"regret": None, "origin": "extrapolated"}
    beyond = [replace(d, region=unfixed(d.region, fixed), **changes) for d in inside]
    return (*inside, *beyond)


def unfixed(region: Region, fixed: Mapping[str, int]) -> Region:
    """Return a region at any size of the axes that did not vary."""
    return tuple(Range(s.axis) if s.axis in fixed else s for s in region)
