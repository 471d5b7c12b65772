"""Forecasts: exact at measured points, close between them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.tuner.landscape import BLAS, SMALL, Landscape, plane
from tests.tuner.simulated import Machine
from tilewise.model.decision import Decision
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.forecast import Forecast, Measured, fitted, terms

SIZES = [(m, n, k) for m in (1, 64, 4096) for n in (1, 64, 4096) for k in (1, 64)]


def decision(sizes: tuple[int, ...], parts: dict[Variant, float | str]) -> Decision:
    """Write a decision with these figures (or statuses) at a point."""
    candidates = tuple(
        Candidate(v, x)
        if isinstance(x, str)
        else Candidate(v, "measured", "", Timing(x, x, x, 9))
        for v, x in parts.items()
    )
    point = tuple(zip(("m", "n", "k"), sizes, strict=False))
    return Decision((), REFERENCE, point, candidates)


def test_meets_the_measured_points() -> None:
    """At a measured point the forecast is the figure."""
    random = np.random.default_rng(0)
    points = [decision(s, {REFERENCE: random.uniform(1, 99)}) for s in SIZES]
    measured = Measured.of(points)
    times = np.exp(Forecast(measured).times(measured.sizes))
    assert times == pytest.approx(measured.us, rel=1e-3)


def test_knows_work_and_traffic() -> None:
    """A time made of overhead, traffic and work is forecast within 5 % elsewhere."""
    sizes = product((1, 23, 100, 1500), (2, 37, 3000), (1, 50))
    measured = Measured.of([decision(s, plane(*s)) for s in sizes])
    places = np.array([[7, 333, 25], [2000, 11, 999]])
    expected = [[plane(*map(int, p))[v] for v in measured.variants] for p in places]
    times = np.exp(Forecast(measured).times(places))
    assert times == pytest.approx(np.array(expected), rel=0.05)


def test_knows_whole_vectors() -> None:
    """A time that counts whole vectors of n is forecast at sizes between them."""

    def vectors(m: int, n: int, k: int) -> dict[Variant, float]:
        return {REFERENCE: 2 + m * k * -(-n // 16) * 1e-3}

    sizes = product((1, 23, 100), (1, 3, 16, 37, 100), (1, 50))
    measured = Measured.of([decision(s, vectors(*s)) for s in sizes])
    times = np.exp(Forecast(measured).times(np.array([[60, 9, 40], [60, 60, 40]])))
    assert times == pytest.approx(np.array([[4.4], [11.6]]), rel=0.02)


def test_coefficients_are_not_negative() -> None:
    """Times that fall with the work give no negative cost."""
    sizes = np.array([[1], [10], [100]])
    assert fitted(terms(sizes), np.array([9.0, 5.0, 1.0])).min() >= 0


def test_what_is_barred_next_to_a_place_is_barred_there() -> None:
    """A variant that is rejected at the nearest point is forecast as impossible."""
    points = [
        decision((1, 1, 1), {REFERENCE: 5.0, SMALL: 1.0}),
        decision((4096, 1, 1), {REFERENCE: 9.0, SMALL: "rejected"}),
    ]
    times = Forecast(Measured.of(points)).times(np.array([[2, 1, 1], [2000, 1, 1]]))
    assert [True, False] == np.isfinite(times[:, 1]).tolist()


def test_what_was_not_tried_is_forecast() -> None:
    """A variant without a figure at a point is forecast from the others."""
    points = [
        decision((1, 1, 1), {REFERENCE: 5.0, SMALL: 1.0}),
        decision((4096, 1, 1), {REFERENCE: 9.0, SMALL: "not tried"}),
    ]
    times = Forecast(Measured.of(points)).times(np.array([[4096, 1, 1]]))
    assert np.isfinite(times).all()


def test_orders_variants_as_decisions_do() -> None:
    """The simplest comes first, as in the decisions."""
    land = Landscape(Machine(noise=0))
    assert (REFERENCE, SMALL, BLAS) == Measured.of(
        [decision((1, 1, 1), plane(1, 1, 1))]
    ).variants[:3]
    assert land.runs == {}
