"""Examining: a verdict and a sampler for each contestant."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from tests.tuner import contestants as c
from tilewise.model.resolution import REFERENCE
from tilewise.tuner.clock import WALL
from tilewise.tuner.contest import filling
from tilewise.tuner.examine import examine
from tilewise.tuner.isolate import Limits
from tilewise.tuner.measure import Rules


def statuses(*runs: object, isolated: bool = False) -> dict[str, str]:
    """Examine the reference and some runs; return their statuses by name."""
    field = [filling(c.case()), *(c.entry(run, isolated=isolated) for run in runs)]
    with ExitStack() as closing:
        found = examine(c.case(), field, Rules(), Limits(), closing, 1.0)
    return {
        v.method or v.engine: verdict.status for v, verdict in found.verdicts.items()
    }


def test_the_reference_is_never_judged() -> None:
    """The reference is the oracle: it is right by definition."""
    assert {"reference": "right"} == statuses()


def test_judges_every_other() -> None:
    """Each contestant has its own verdict."""
    expected = {"reference": "right", "right": "right", "raiser": "failed"}
    assert expected == statuses(c.right, c.raiser)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_judges_in_workers() -> None:
    """The verdicts of isolated contestants are the same."""
    expected = {"reference": "right", "right": "right", "raiser": "failed"}
    assert expected == statuses(c.right, c.raiser, isolated=True)


def test_samplers_time_what_they_name() -> None:
    """Every contestant that is right gets a sampler that returns nanoseconds."""
    with ExitStack() as closing:
        found = examine(c.case(), [filling(c.case())], Rules(), Limits(), closing, 1.0)
    assert found.samplers[REFERENCE](3) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_worker_keeps_the_rules() -> None:
    """Under the cold protocol an isolated contestant gets other copies, too."""
    calls, seen = iter([c.right] * 7), set[int]()

    def run(x: Any, *rest: Any) -> Any:
        if next(calls, None) is None and x.ctypes.data in seen:
            raise ValueError("these are in the cache")
        seen.add(x.ctypes.data)
        return c.right(x, *rest)

    entry, rules = c.entry(run, isolated=True), Rules(cache="cold")
    with ExitStack() as closing:
        found = examine(c.case(), [entry], rules, Limits(), closing, 1.0)
        assert 0 < found.samplers[entry.variant](4)


def test_who_is_not_verified_in_time_is_not_tried() -> None:
    """What is left of a sweep bounds verifying, too; the reference is always there."""
    clock = replace(WALL, read=iter(range(0, 10**9, 10**8)).__next__)
    field = [filling(c.case()), c.entry(c.lazy), c.entry(c.right)]
    with ExitStack() as closing:
        found = examine(
            c.case(), field, Rules(clock=clock), Limits(total_s=0.15), closing, 1.0
        )
    told = [found.verdicts[one.variant].status for one in field]
    assert ["right", "right", "not tried"] == told
