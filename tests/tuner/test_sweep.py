"""Sweeps: the regions follow the landscape, at a known regret."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.tuner.landscape import BLAS, SMALL, TALL, Landscape, plane
from tests.tuner.simulated import Machine
from tilewise.model.decision import Decision
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.contest import Contestant
from tilewise.tuner.sweep import Axis, Sweep, Sweeper, sweep

AXES = [Axis(name, 1, 4096) for name in "mnk"]
ROWS = [Axis("m", 1, 4096)]


def line(m: int) -> dict:
    """Return times along one axis: the small variant wins up to 300 rows."""
    return {REFERENCE: 9 + m / 20, SMALL: 1 + m / 20, BLAS: 10 + m / 50}


@cache
def swept() -> tuple[Landscape, Sweep]:
    """Sweep the landscape over three axes once, with little noise."""
    land = Landscape(Machine(7, noise=0.02, spikes=0))
    return land, sweep(land.pose, AXES, 60, clock=land.machine.clock)


def test_the_regret_is_small() -> None:
    """At 500 sizes drawn afterwards the mean loss is below 3 %."""
    land, found = swept()
    sizes = 2 ** np.random.default_rng(8).uniform(0, 12, (500, 3))
    assert np.mean([land.loss(found.decisions, place) for place in sizes]) < 0.03


def test_states_its_regret() -> None:
    """It ends when the expected regret is below 3 %, and says so."""
    found = swept()[1]
    assert "regret" == found.ended
    assert found.regret < 0.03


def test_each_region_has_its_regret() -> None:
    """Cross-validated regret is stored with each region."""
    assert all(d.regret is not None for d in swept()[1].decisions)


def test_regions_have_no_gap_and_no_overlap() -> None:
    """2,000 random sizes lie in exactly one measured region each."""
    measured = [d for d in swept()[1].decisions if d.origin == "sweep"]
    places = np.random.default_rng(1).integers(1, 4097, (2000, 3)).tolist()
    hits = {
        sum(d.covers(tuple(zip("mnk", p, strict=True))) for d in measured)
        for p in places
    }
    assert {1} == hits


@pytest.mark.parametrize("sizes", [(0, 5, 5), (5000, 5, 5), (9999, 9999, 9999)])
def test_what_lies_beyond_is_extrapolated(sizes: tuple[int, ...]) -> None:
    """Outside the measured sizes one region serves, graded as extrapolated."""
    point = tuple(zip("mnk", sizes, strict=True))
    hits = [d.origin for d in swept()[1].decisions if d.covers(point)]
    assert ["extrapolated"] == hits


def test_hopeless_variants_are_not_run_at_large_sizes() -> None:
    """The small variant, far behind at the points around, is not tried at the top."""
    land, found = swept()
    top = tuple((name, 4096) for name in "mnk")
    decision = next(d for d in found.points if d.point == top)
    part = next(p for p in decision.candidates if p.variant == SMALL)
    assert "not tried" == part.status
    assert "slower at the points around" in part.reason
    assert 0 == land.runs.get((SMALL, top), 0)


def test_finds_the_border_on_one_axis() -> None:
    """Along one axis the winner changes within 15 % of where the times cross."""
    land = Landscape(Machine(noise=0), line)
    found = sweep(land.pose, ROWS, 10, clock=land.machine.clock)
    spans = [d.region[0] for d in found.decisions if d.variant == SMALL]
    assert max(s.high for s in spans if s.high) == pytest.approx(300, rel=0.15)


def test_stops_at_the_budget() -> None:
    """A budget of 20 ms ends the sweep with what there is."""
    land = Landscape(Machine(noise=0.05), plane)
    found = sweep(land.pose, AXES, 0.02, clock=land.machine.clock)
    assert "budget" == found.ended
    assert found.decisions


def test_ctrl_c_keeps_what_there_is() -> None:
    """Ctrl-C ends a sweep; the regions of the measured points are returned."""
    land = Landscape(Machine(noise=0), line)

    def stop(decision: Decision) -> None:
        if decision.point[0][1] > 64:
            raise KeyboardInterrupt

    found = sweep(land.pose, ROWS, 10, clock=land.machine.clock, progress=stop)
    assert "interrupted" == found.ended
    assert {"sweep", "extrapolated"} == {d.origin for d in found.decisions}


def test_a_point_that_cannot_be_posed_is_skipped() -> None:
    """Where a problem cannot be made, the sweep goes on with the others."""
    land = Landscape(Machine(noise=0), line)
    pose = lambda p: None if p[0][1] > 1000 else land.pose(p)  # noqa: E731
    found = sweep(pose, ROWS, 10, clock=land.machine.clock)
    measured = [d.region[0] for d in found.decisions if d.origin == "sweep"]
    assert max(s.high for s in measured if s.high) <= 1000


def test_a_rejected_variant_is_not_chosen_there() -> None:
    """A variant that rejects more than 100 rows has no region beyond the next point."""
    land = Landscape(Machine(noise=0), line)
    land.rejects = lambda v, p: "too tall" if v == SMALL and p[0][1] > 100 else None
    found = sweep(land.pose, ROWS, 10, clock=land.machine.clock)
    high = [d.region[0].high for d in found.decisions if d.variant == SMALL]
    assert max(h for h in high if h) < 150


def test_known_figures_are_not_taken_again() -> None:
    """With a new variant a second sweep runs only that one at known points."""
    land = Landscape(Machine(noise=0), line)
    first = sweep(land.pose, ROWS, 10, clock=land.machine.clock)
    known = {d.point: d.candidates for d in first.points}
    land.runs.clear()
    land.times = lambda m: line(m) | {TALL: 0.5 + m / 100}
    second = sweep(land.pose, ROWS, 10, clock=land.machine.clock, known=known)
    assert {TALL} == {d.variant for d in second.decisions}
    again = {v for v, p in land.runs if p in known and v in (SMALL, BLAS)}
    assert set() == again


def test_a_pass_over_all_rows_meets_measured_regions() -> None:
    """Every m from 1 to 4096 finds a measured region: nothing is tuned again."""
    land = Landscape(Machine(noise=0), line)
    found = sweep(land.pose, ROWS, 10, clock=land.machine.clock)
    origins = {
        next(d for d in found.decisions if d.covers((("m", m),))).origin
        for m in range(1, 4097)
    }
    assert {"sweep"} == origins


def test_load_marks_the_regions() -> None:
    """Regions drawn from figures under load are contended."""
    land = Landscape(Machine(noise=0, busy=0.5), line)
    found = sweep(land.pose, ROWS, 10, clock=land.machine.clock)
    assert all(d.contended for d in found.decisions)


def test_a_problem_that_would_overrun_the_budget_is_left_out() -> None:
    """The largest corner takes 0.9 s a call: with 10 s for all it is not measured."""
    land = Landscape(Machine(noise=0))
    found = sweep(land.pose, AXES, 10, clock=land.machine.clock)
    measured = {tuple(size for _, size in d.point) for d in found.points}
    assert (4096, 4096, 4096) not in measured
    assert found.measured_s <= 10
    assert any(d.covers((("m", 4096), ("n", 4096), ("k", 4096)))
               for d in found.decisions)  # fmt: skip


def test_the_last_race_ends_with_the_budget() -> None:
    """A point is given its share of the budget, or what is left of that."""
    land = Landscape(Machine(3), line)
    state = Sweeper(
        land.pose, tuple(ROWS), 60, land.machine.clock, np.random.default_rng(0), {},
        {}, lambda decision: None,
    )  # fmt: skip
    assert 0.5 == state.share_s()
    state.spent_s = 59.75
    assert 0.25 == state.share_s()


def test_one_that_fails_everywhere_is_tried_twice() -> None:
    """A variant that hangs must not cost its limit at each point of a sweep."""
    runs = []

    def pose(point):
        def hangs(*args):
            runs.append(point)
            raise ValueError("no such tile")

        case, contestants, rejected = land.pose(point)
        return (
            case,
            [*contestants, Contestant(Variant("test", "hangs"), hangs, version="a1")],
            rejected,
        )

    land = Landscape(Machine(3), line)
    found = sweep(pose, ROWS, 20, clock=land.machine.clock)
    reasons = [one.candidates[-1].reason for one in found.points]
    assert 2 == len(set(runs))
    assert {"a1"} == {one.candidates[-1].version for one in found.points}
    assert "failed before: raises ValueError: no such tile" in reasons[2]
