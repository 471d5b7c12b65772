"""Deciding: verified, raced, and written down with all the evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.tuner import contestants as c
from tests.tuner.landscape import BLAS, SMALL, TALL, Landscape
from tests.tuner.simulated import Machine
from tilewise.model.decision import Decision, cell
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.planner import decide

POINT = (("m", 16), ("n", 16), ("k", 16))


def made(times: dict[Variant, float], machine: Machine | None = None) -> Landscape:
    """Make a landscape with the same times everywhere."""
    return Landscape(machine or Machine(noise=0), lambda *sizes: times)


def settle(land: Landscape, incumbent: Variant | None = None, **more: Any) -> Decision:
    """Decide a point of a landscape."""
    posed = land.pose(POINT)
    random = np.random.default_rng(0)
    clock = land.machine.clock
    return decide(*posed, incumbent, 1.0, clock=clock, random=random, **more)


def statuses(decision: Decision) -> dict[str, str]:
    """Return the candidates' statuses by name."""
    return {str(part.variant): part.status for part in decision.candidates}


def test_chooses_the_fastest() -> None:
    """The variant that beats the reference by the margin wins."""
    assert SMALL == settle(made({REFERENCE: 100.0, SMALL: 50.0, BLAS: 80.0})).variant


def test_keeps_all_figures() -> None:
    """Losers are stored with their figures, the reference among them."""
    decision = settle(made({REFERENCE: 100.0, SMALL: 50.0, BLAS: 80.0}))
    medians = [p.timing.median_us for p in decision.candidates if p.timing]
    assert [100.0, 50.0, 80.0] == pytest.approx(medians)


def test_decides_the_log2_cell() -> None:
    """The region is the cell around the point."""
    decision = settle(made({REFERENCE: 100.0, SMALL: 50.0}))
    assert (cell(POINT), POINT) == (decision.region, decision.point)


def test_keeps_the_incumbent() -> None:
    """One that is 3 % faster than the incumbent does not replace it, and is a tie."""
    times = {REFERENCE: 200.0, SMALL: 100.0, BLAS: 97.0}
    decision = settle(made(times), SMALL)
    assert (SMALL, (BLAS,)) == (decision.variant, decision.ties)


def test_an_incumbent_that_is_gone_does_not_count() -> None:
    """Without its incumbent among the contestants the reference is it."""
    decision = settle(made({REFERENCE: 100.0, SMALL: 98.0}), TALL)
    assert REFERENCE == decision.variant


def test_carries_rejections() -> None:
    """What engines reject stands in the decision with the reason."""
    land = made({REFERENCE: 100.0, SMALL: 50.0, BLAS: 80.0})
    land.rejects = lambda variant, point: "k is odd" if variant == SMALL else None
    decision = settle(land)
    assert BLAS == decision.variant
    assert Candidate(SMALL, "rejected", "k is odd") == decision.candidates[-1]


def test_a_wrong_candidate_never_wins() -> None:
    """However fast, a contestant whose results are wrong is kept out of the race."""
    decision = decide(c.case(), [c.entry(c.bias_forgetter)], (), None, 0.01)
    assert REFERENCE == decision.variant
    assert "wrong" == statuses(decision)["test/bias_forgetter"]


@pytest.mark.parametrize("depth", [0, 12], ids=("one trial", "more"))
def test_half_writers_cannot_pass_each_others_check(depth: int) -> None:
    """Two that each write half are both refused: outputs are fresh for each run."""

    def other_half(x: Any, w: Any, b: Any, out: Any) -> Any:
        out[-1:] = c.dense(x, w, b)[-1:]
        return out

    entries = [c.entry(c.half_writer), c.entry(other_half)]
    found = statuses(decide(c.case(depth=depth), entries, (), None, 0.01))
    assert ["wrong", "wrong"] == [found["test/half_writer"], found["test/other_half"]]


def test_when_all_fail_the_reference_wins() -> None:
    """With nothing right the reference wins alone, and nothing ties with it."""
    entries = [c.entry(c.raiser), c.entry(c.half_writer)]
    decision = decide(c.case(), entries, (), None, 0.01)
    assert (REFERENCE, ()) == (decision.variant, decision.ties)
    figures = [p.timing for p in decision.candidates if p.variant != REFERENCE]
    assert [None, None] == figures


def test_reports_errors_and_compile_times() -> None:
    """A candidate's error in units of the bound and its compile time are kept."""
    entries = [c.entry(c.right, compile_ms=12.5)]
    part = decide(c.case(), entries, (), None, 0.01).candidates[-1]
    assert 12.5 == part.compile_ms
    assert part.error is not None
    assert part.error < 1


def test_marks_decisions_under_load() -> None:
    """With a third of the machine in others' hands a decision is contended."""
    times = {REFERENCE: 100.0, SMALL: 50.0}
    assert settle(made(times, Machine(noise=0, busy=0.33))).contended
    assert not settle(made(times, Machine(noise=0, busy=0.1))).contended


def test_reuses_known_figures() -> None:
    """A new variant measures only itself; the others' figures are taken over."""
    land = made({REFERENCE: 100.0, SMALL: 50.0})
    known = settle(land).candidates
    land.runs.clear()
    land.times = lambda *sizes: {REFERENCE: 100.0, SMALL: 50.0, BLAS: 20.0}
    decision = settle(land, SMALL, known=known)
    assert BLAS == decision.variant
    assert 0 == land.runs.get((SMALL, POINT), 0)
    assert known == decision.candidates[:2]


def test_figures_of_other_code_are_taken_anew() -> None:
    """What a variant's older code took says nothing of the new."""
    land = made({REFERENCE: 100.0, SMALL: 50.0})
    known = [replace(c, version="older") for c in settle(land).candidates]
    land.runs.clear()
    settle(land, SMALL, known=known)
    assert 0 < land.runs[SMALL, POINT]


def test_known_figures_need_the_margin_too() -> None:
    """A new variant that is 3 % faster than a known incumbent leaves it in place."""
    known = [
        Candidate(v, "measured", "", Timing(us, us - 1, us + 1, 20))
        for v, us in ((REFERENCE, 200.0), (SMALL, 100.0))
    ]
    land = made({REFERENCE: 200.0, SMALL: 100.0, BLAS: 97.0})
    assert SMALL == settle(land, SMALL, known=known).variant


def test_the_callers_arguments_are_not_written() -> None:
    """Contestants that write their arguments only reach copies."""
    posed = c.case()
    before = [a.copy() for a in posed.args]
    decide(posed, [c.entry(c.input_changer)], (), None, 0.01)
    assert all(map(np.array_equal, before, posed.args))


def test_ctrl_c_passes() -> None:
    """Ctrl-C in this process ends the tuning, not just the contestant."""
    with pytest.raises(KeyboardInterrupt):
        decide(c.case(), [c.entry(c.interrupter)], (), None, 0.01)


def test_nobody_is_verified_who_cannot_be_timed() -> None:
    """One call of the reference takes the budget: the others are not tried."""
    posed = c.case(shape=(520, 512, 512))
    decision = decide(posed, [c.entry(c.raiser)], budget_s=1e-6)
    told = [(one.status, one.reason) for one in decision.candidates]
    assert [("measured", ""), ("not tried", "not tried (budget)")] == told
