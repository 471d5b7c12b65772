"""The lattice, its risk, and cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tuner.landscape import plane
from tests.tuner.test_forecast import SIZES, decision
from tilewise.model.resolution import REFERENCE
from tilewise.tuner.forecast import Axis, Measured
from tilewise.tuner.survey import held_out, lattice, risk, survey, volumes

AXES = [Axis(name, 1, 4096) for name in "mnk"]


def test_the_lattice_holds_both_ends() -> None:
    """The space's corners are places of the lattice."""
    places = lattice(AXES).tolist()
    assert [1, 1, 1] in places
    assert [4096, 4096, 4096] in places


def test_volumes_share_the_space() -> None:
    """The points' shares are equal for a regular line and add up to one."""
    shares = volumes([Axis("m", 1, 4096)], np.array([[4], [64], [1024]]))
    assert 1 == pytest.approx(shares.sum())
    assert shares == pytest.approx([1 / 3] * 3, abs=0.05)


def test_risk_is_small_at_measured_points() -> None:
    """Where it was measured the choice risks less than far away."""
    found = survey(AXES, Measured.of([decision(s, plane(*s)) for s in SIZES]))
    apart = found.forecast.distances(found.sizes).min(axis=1)
    loss = risk(found)
    assert loss[apart < 0.1].mean() < loss[apart > 2].mean() / 10


def test_one_variant_risks_nothing() -> None:
    """Without a choice there is no risk."""
    points = [decision(s, {REFERENCE: 1.0}) for s in SIZES]
    assert 0 == risk(survey(AXES, Measured.of(points))).max()


def test_cross_validation_sees_an_island() -> None:
    """A winner that only one point shows is a loss at that point when left out."""
    other = next(v for v in plane(1, 1, 1) if v != REFERENCE)
    points = [
        decision(s, {REFERENCE: 10.0, other: 5.0 if i == 4 else 20.0})
        for i, s in enumerate(SIZES)
    ]
    losses = held_out(AXES, Measured.of(points))
    assert 1.0 == pytest.approx(losses[4])
