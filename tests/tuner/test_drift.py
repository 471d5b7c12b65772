"""Drift: a stored winner is measured again and falls only to a clear loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tuner.landscape import BLAS, SMALL, Landscape
from tests.tuner.simulated import Machine
from tilewise.model.decision import Range
from tilewise.model.resolution import REFERENCE
from tilewise.tuner.drift import Drift, recheck
from tilewise.tuner.planner import decide

POINT = (("m", 8),)


def drifted(then: dict[Any, float], now: dict[Any, float]) -> Drift:
    """Decide with some times, then check with others."""
    land = Landscape(Machine(noise=0), lambda m: then)
    clock, random = land.machine.clock, np.random.default_rng(0)
    stored = decide(*land.pose(POINT), clock=clock, random=random)
    land.times = lambda m: now
    case, contestants, rejected = land.pose(POINT)
    return recheck(stored, case, contestants, rejected, clock=clock, random=random)


THEN = {REFERENCE: 100.0, SMALL: 50.0, BLAS: 80.0}


def test_a_winner_that_still_wins_stands() -> None:
    """With the times of then nothing has drifted."""
    drift = drifted(THEN, THEN)
    assert (True, "test/small still stands") == (drift.kept, str(drift))


def test_a_small_change_does_not_count() -> None:
    """Another that is 3 % faster now does not replace the winner."""
    assert drifted(THEN, {**THEN, BLAS: 48.5}).kept


def test_a_clear_loss_is_named() -> None:
    """A winner that loses by 60 % is reported with the loss and the new winner."""
    drift = drifted(THEN, {**THEN, SMALL: 128.0})
    assert BLAS == drift.decision.variant
    assert 0.6 == pytest.approx(drift.loss)
    assert "test/small loses 60%: test/blas wins" == str(drift)


def test_a_winner_that_is_gone_is_named() -> None:
    """A stored variant that no engine offers any more gives way."""
    drift = drifted(THEN, {REFERENCE: 100.0, BLAS: 80.0})
    assert "test/small can't run any more: test/blas wins" == str(drift)


def test_the_new_decision_keeps_the_region() -> None:
    """What replaces a decision is for the same sizes."""
    drift = drifted(THEN, {**THEN, SMALL: 128.0})
    assert (Range("m", 8, 15),) == drift.decision.region
