"""
A sweep: measure a coarse grid, then probe where the winner changes; draw the regions.

It ends when the regret that cross-validation expects is small, when nothing is left
to probe, at the budget, or at Ctrl-C; it returns what there is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from tilewise.model.decision import Decision, Point, Region
from tilewise.model.measurement import Candidate
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.clock import WALL, Clock
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.forecast import Axis, Forecast, Measured
from tilewise.tuner.inputs import Array
from tilewise.tuner.isolate import LIMITS
from tilewise.tuner.planner import decide
from tilewise.tuner.regions import Leaf, opened
from tilewise.tuner.rule import TIE
from tilewise.tuner.survey import Survey, boxes, held_out, levels, risk, survey, volumes

__all__ = ["Axis", "Pose", "Sweep", "sweep"]

Pose = Callable[[Point], tuple[Case, Sequence[Contestant], Sequence[Candidate]] | None]
"""Make a point's case, its contestants and the rejected ones; None skips the point."""

GOAL = 0.03
LEVELS = {1: 9, 2: 5, 3: 3}
"""Sizes on each axis of the coarse grid, by the number of axes; 2 beyond."""

POINTS = 40
POINT_S = 0.5
"""A point gets 1/40 of the budget, at most 0.5 s: more points beat more rounds."""

FAR = 3.0
"""A variant that loses more at all points around is not tried: that costs minutes."""

CLOSE = 0.25
"""Places closer than 1/4 octave to a measured point are not probed."""

LEAST_PROBES = 8
"""Places beyond the grid that are measured before cross-validation is believed."""

FINER = 2
"""Regions are drawn on a lattice of half octaves."""

CALLS = 20
"""What verifying and measuring a large problem once takes, in calls of the fastest."""

LEAST_RISK = 1e-3
"""Where no place risks more than this there is nothing left to probe."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """
    What a sweep found.

    `decisions` are the measured regions, then those beyond them, graded
    extrapolated; `points` the measured problems; `regret` the expected relative loss
    inside the regions, inf where it is not known; `ended` says why it ended:
    "regret", "settled", "budget" or "interrupted"; `measured_s` is what measuring took.
    """

    decisions: tuple[Decision, ...]
    points: tuple[Decision, ...]
    regret: float
    ended: str
    measured_s: float


@dataclass(slots=True)
class Sweeper:
    """The state of one sweep."""

    pose: Pose
    axes: tuple[Axis, ...]
    budget_s: float
    clock: Clock
    random: np.random.Generator
    known: Mapping[Point, Sequence[Candidate]]
    options: dict[str, Any]
    progress: Callable[[Decision], object]
    done: dict[Point, Decision] = field(default_factory=dict)
    skipped: set[Point] = field(default_factory=set)
    spent_s: float = 0.0

    def measure(self, point: Point) -> None:
        """Decide one point, once; posing (and compiling) is not counted."""
        if point in self.done or point in self.skipped:
            return
        posed = self.pose(point)
        if posed is None:
            self.skipped.add(point)
            return
        case, contestants, rejected = posed
        far = self.hopeless(point) | self.lost()
        racing = [c for c in contestants if c.variant not in far]
        left = [
            replace(far[c.variant], version=c.version)
            for c in contestants
            if c.variant in far
        ]
        begun, options = self.clock.read(), {"limits": LIMITS} | self.options
        options["limits"] = replace(options["limits"], total_s=self.left_s)
        self.done[point] = decide(
            case, racing, (*left, *rejected), None, self.share_s(),
            clock=self.clock, random=self.random,
            known=self.known.get(point, ()), **options,
        )  # fmt: skip
        self.spent_s += (self.clock.read() - begun) * 1e-9
        self.progress(self.done[point])

    def share_s(self) -> float:
        """Return one point's share of the budget, or what is left of it."""
        return min(POINT_S, self.budget_s / POINTS, self.left_s)

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        return max(0.0, self.budget_s - self.spent_s)

    def affords(self, point: Point) -> bool:
        """Say whether a point is likely to be verified and measured in the budget."""
        if len(self.done) <= len(self.axes):
            return True
        sizes = np.array([[size for _, size in point]])
        times = Forecast(self.measured()).times(sizes)[0]
        return CALLS * math.exp(times.min()) * 1e-6 <= self.left_s

    def hopeless(self, point: Point) -> dict[Variant, Candidate]:
        """Return the variants that were far behind at all points around a new one."""
        if len(self.done) <= len(self.axes):
            return {}
        known = self.measured()
        sizes = np.array([[size for _, size in point]])
        apart = Forecast(known).distances(sizes)[0]
        near = np.argsort(apart, kind="stable")[: len(self.axes) + 1]
        lags = known.us[near] / np.nanmin(known.us[near], axis=1, keepdims=True)
        found = {}
        for variant, lag in zip(known.variants, lags.T, strict=True):
            seen = lag[np.isfinite(lag)]
            if variant != REFERENCE and seen.size and seen.min() > FAR:
                reason = f"at least {seen.min():.1f}x slower at the points around"
                found[variant] = Candidate(variant, "not tried", reason)
        return found

    def lost(self) -> dict[Variant, Candidate]:
        """Return the variants that failed at two points or more and served at none."""
        tried: dict[Variant, list[Candidate]] = defaultdict(list)
        for one in (one for done in self.done.values() for one in done.candidates):
            if one.status not in ("rejected", "not tried"):
                tried[one.variant].append(one)
        return {
            variant: Candidate(variant, "not tried", f"failed before: {seen[0].reason}")
            for variant, seen in tried.items()
            if len(seen) > 1 and all(one.status == "failed" for one in seen)
        }

    def measured(self) -> Measured:
        """Gather what is measured."""
        return Measured.of(list(self.done.values()))

    def space(self) -> tuple[Axis, ...]:
        """Return the box around what is measured."""
        sizes = np.array([[size for _, size in point] for point in self.done])
        spans = zip(self.axes, sizes.min(axis=0), sizes.max(axis=0), strict=True)
        return tuple(Axis(a.name, int(low), int(high)) for a, low, high in spans)

    def run(self, goal: float) -> str:
        """Measure the grid, then probe; returns why it ended."""
        for point in grid(self.axes):
            if self.spent_s > self.budget_s:
                return "budget"
            if self.affords(point):
                self.measure(point)
        look = len(self.done)
        while self.spent_s <= self.budget_s:
            if len(self.done) >= look + LEAST_PROBES:
                look = math.ceil(len(self.done) * 1.3) - LEAST_PROBES
                if self.regret()[0] < goal:
                    return "regret"
            probe = self.next_probe()
            if probe is None:
                return "settled"
            if not self.affords(probe):
                return "budget"
            self.measure(probe)
        return "budget"

    def next_probe(self) -> Point | None:
        """Return the place that risks most, or None when nothing is left."""
        found = survey(self.space(), self.measured())
        loss = risk(found)
        loss[found.forecast.distances(found.sizes).min(axis=1) < CLOSE] = 0.0
        names = [axis.name for axis in self.axes]
        for row in np.argsort(-loss):
            if loss[row] < LEAST_RISK:
                return None
            point = tuple(zip(names, found.sizes[row].tolist(), strict=True))
            if point not in self.done and point not in self.skipped:
                return point
        return None

    def regret(self) -> tuple[float, Array]:
        """
        Return the expected regret over the space, and each point's loss.

        Cross-validation at the measured points, and what the boxes lose between them
        by the forecast itself.
        """
        axes, measured = self.space(), self.measured()
        losses = held_out(axes, measured)
        drawn = boxes(axes, survey(axes, measured))
        places = sum(len(leaf.rows) for leaf in drawn)
        within = sum(leaf.loss * len(leaf.rows) for leaf in drawn) / places
        return float(losses @ volumes(axes, measured.sizes)) + within, losses


def sweep(
    pose: Pose,
    axes: Sequence[Axis],
    budget_s: float = 60.0,
    *,
    goal: float = GOAL,
    clock: Clock = WALL,
    random: np.random.Generator | None = None,
    known: Mapping[Point, Sequence[Candidate]] | None = None,
    progress: Callable[[Decision], object] = lambda decision: None,
    **options: Any,
) -> Sweep:
    """
    Measure a table over its axes and draw its regions.

    `pose` makes each point's problem; `known` are figures that still hold, by point,
    so that a new variant measures only itself. `options` go to `decide`. One point
    that is being measured is not cut short by the budget.
    """
    state = Sweeper(
        pose, tuple(axes), budget_s, clock, random or np.random.default_rng(0),
        known or {}, options, progress,
    )  # fmt: skip
    try:
        ended = state.run(goal)
    except KeyboardInterrupt:
        ended = "interrupted"
    points = tuple(state.done.values())
    if not points:
        return Sweep((), (), math.inf, ended, state.spent_s)
    regret, losses = state.regret()
    drawn = drawing(state.space(), points, losses)
    if len(points) == 1:  # There is nothing to hold out: nobody knows the loss.
        regret, drawn = math.inf, tuple(replace(d, regret=None) for d in drawn)
    return Sweep(drawn, points, regret, ended, state.spent_s)


def grid(axes: Sequence[Axis]) -> list[Point]:
    """Return the coarse grid, the cheapest problems first."""
    count = LEVELS.get(len(axes), 2)
    spaced = (levels(axis, count) for axis in axes)
    sizes = sorted(product(*spaced), key=lambda place: (math.prod(place), place))
    names = [axis.name for axis in axes]
    return [tuple(zip(names, place, strict=True)) for place in sizes]


def drawing(
    axes: Sequence[Axis], points: Sequence[Decision], losses: Array
) -> tuple[Decision, ...]:
    """Draw the regions: the measured ones, then those beyond them."""
    measured = Measured.of(points)
    found = survey(axes, measured, FINER)
    leaves = boxes(axes, found)
    inside = {leaf.region: region_of(leaf, found, points, losses) for leaf in leaves}
    ends = (measured.sizes.min(axis=0), measured.sizes.max(axis=0))
    border = np.logical_or(*(measured.sizes == end for end in ends)).any(axis=1)
    lost = float(losses[border].mean())
    beyond = [
        replace(inside[leaf.region], region=region, regret=lost, origin="extrapolated")
        for leaf, region in opened(leaves)
    ]
    return (*inside.values(), *beyond)


def region_of(
    leaf: Leaf, found: Survey, points: Sequence[Decision], losses: Array
) -> Decision:
    """
    Write a leaf as a decision; its evidence is the point nearest to its middle.

    Its regret is the mean of the losses of the points inside and of the nearest, and
    what the box loses between them.
    """
    middle = [math.sqrt(max(s.low, 1) * max(s.high or 1, 1)) for s in leaf.region]
    near = int(found.forecast.distances(np.array([middle]))[0].argmin())
    rows = [i for i, d in enumerate(points) if covered(leaf.region, d.point)]
    expected = found.loss[list(leaf.rows)].mean(axis=0)
    close = np.flatnonzero(expected <= expected[leaf.variant] + TIE)
    return replace(
        points[near],
        region=leaf.region,
        variant=found.variants[leaf.variant],
        ties=tuple(found.variants[i] for i in close if i != leaf.variant),
        regret=float(losses[[near, *rows]].mean()) + leaf.loss,
        contended=any(points[row].contended for row in [near, *rows]),
        origin="sweep",
    )


def covered(region: Region, point: Point) -> bool:
    """Say whether a point lies in a region."""
    return all(size in span for (_, size), span in zip(point, region, strict=True))
