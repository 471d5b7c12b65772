"""Workers one after the other: how long an answer may take, and who is to blame."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.tuner import contestants as c
from tilewise.tuner import isolate
from tilewise.tuner.isolate import LIMITS, Limits, Lost, Relay, bounded
from tilewise.tuner.planner import decide

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.mark.parametrize(
    ("budget_s", "call_s", "told"),
    [
        (0.01, 0.001, "2 s, the least that any gets"),
        (0.5, 0.001, "10 s, 20 times the budget"),
        (0.5, 0.3, "30 s, 100 calls of the reference"),
        (10.0, 0.3, "60 s, the most that any gets"),
    ],
)
def test_an_answer_is_given_time_by_the_budget(
    budget_s: float, call_s: float, told: str
) -> None:
    """A variant that hangs costs what a race does, not a minute whatever the budget."""
    found = bounded(LIMITS, budget_s, call_s)
    assert told == f"{found.seconds:g} s, {found.why}"


def test_what_is_left_of_a_sweep_bounds_an_answer() -> None:
    """One that hangs takes no more than a quarter of it, or the least of all."""
    limits = (bounded(Limits(total_s=left), 0.5, 0.0) for left in (60.0, 20.0, 3.0))
    assert [10.0, 5.0, 2.0] == [one.seconds for one in limits]


def test_a_hanging_variant_costs_two_seconds_at_a_small_budget() -> None:
    """The reason says which limit it ran past, and where that comes from."""
    part = decide(c.case(), [c.entry(c.looper, isolated=True)], (), None, 0.01)
    assert "ran past 2 s, the least that any gets" == part.candidates[-1].reason


def test_one_worker_serves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many variants are verified and timed by one process, not by one each."""
    forked, calls = isolate.forked, []

    def counted() -> int:
        calls.append(os.getpid())
        return forked()

    monkeypatch.setattr(isolate, "forked", counted)
    entries = [c.entry(run, isolated=True) for run in (c.right, c.lazy, c.half_writer)]
    found = decide(c.case(), entries, (), None, 10)
    assert ["measured"] * 3 + ["wrong"] == [one.status for one in found.candidates]
    assert 1 == len(calls)


def test_a_lost_worker_is_replaced_for_the_rest() -> None:
    """Those before and after one that crashes are measured all the same."""
    entries = [c.entry(run, isolated=True) for run in (c.lazy, c.aborter, c.right)]
    found = decide(c.case(), entries, (), None, 10)
    told = {str(one.variant): one.status for one in found.candidates[1:]}
    assert {"lazy": "measured", "aborter": "failed", "right": "measured"} == {
        name.removeprefix("test/"): status for name, status in told.items()
    }


def relay(**answers: Any) -> Relay:
    """Return a relay whose answers run by name."""
    return Relay({"go": lambda who: answers[f"a{who}"]()}, Limits(1.0, 1 << 30))


def test_whoever_is_lost_in_company_has_one_more_try() -> None:
    """One that another has spoilt the worker for is served by a new one."""
    spoilt: list[int] = []
    found = relay(a0=lambda: spoilt.append(1), a1=lambda: (spoilt and os._exit(7)) or 5)
    found.ask("go", 0)
    assert 5 == found.ask("go", 1)
    found.close()


def test_there_is_no_third_try() -> None:
    """One that is lost in company again is to blame."""
    spoilt: list[int] = []
    found = relay(a0=lambda: spoilt.append(1), a1=lambda: (spoilt and os._exit(7)) or 5)
    for who in (0, 1, 0):
        found.ask("go", who)
    with pytest.raises(Lost, match="exits with code 7"):
        found.ask("go", 1)


def test_one_that_hangs_has_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second would take as long again."""
    found = relay(a0=lambda: 1, a1=c.looper)
    found.ask("go", 0)
    with pytest.raises(Lost, match="ran past 1 s"):
        found.ask("go", 1)
    assert found.spared == set()


def test_one_that_raises_leaves_the_worker() -> None:
    """The next is served by the same process."""
    found = relay(a0=c.raiser, a1=os.getpid)
    with pytest.raises(Lost, match="no such tile"):
        found.ask("go", 0)
    assert found.worker is not None
    assert found.worker.pid == found.ask("go", 1)
    found.close()
