"""CPU and device engines race for host arrays, transfers counted; classes are apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.runtime.scripted import FAST, TARGET, ScriptedEngine, heavy
from tilewise import tuned_kernel
from tilewise.device.chosen import chosen_device
from tilewise.runtime.once import resolver
from tilewise.runtime.question import ask
from tilewise.store.stack import open_store

Install = Callable[[float], ScriptedEngine]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put an engine whose transfers take some seconds beside those of the process."""
    workshop, target_of = resolver().workshop, resolver().workshop.target_of

    def put(move_s: float) -> ScriptedEngine:
        engine = ScriptedEngine(move_s)
        known = {"cpu": workshop.engines["cpu"], "scripted": engine}
        monkeypatch.setattr(workshop, "engines", known)
        monkeypatch.setattr(
            workshop,
            "target_of",
            lambda name, device: (
                TARGET if name == "scripted" else target_of(name, device)
            ),
        )
        return engine

    workshop.forget()
    yield put
    workshop.forget()


def kernel() -> Any:
    """Return a fresh kernel of the heavy function."""
    return tuned_kernel(budget_s=0.3, engines=["scripted"])(heavy)


def inputs() -> list[Any]:
    """Return (x, w)."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal((48, 48)).astype("f4") for _ in "xw"]


def test_an_instant_device_wins_where_transfers_are_cheap(install: Install) -> None:
    """It races for host arrays, and is chosen."""
    install(0.0)
    dense = kernel()
    np.testing.assert_allclose(dense(*inputs()), heavy(*inputs()), 1e-5)
    assert FAST == dense.explain(*inputs()).variant


def test_transfers_count(install: Install) -> None:
    """Work that takes no time loses where moving two arrays takes 20 ms."""
    install(0.01)
    dense = kernel()
    dense(*inputs())
    told = dense.explain(*inputs())
    times = {c.variant: c.timing for c in told.candidates}
    assert "reference" == str(told.variant)
    assert times[FAST] is not None
    assert times[FAST].median_us >= 2e4


def test_the_cpu_races_with_the_device(install: Install) -> None:
    """Both engines have figures in one decision."""
    install(0.01)
    dense = tuned_kernel(budget_s=0.3)(heavy)
    dense(*inputs())
    told = dense.explain(*inputs()).candidates
    timed = {c.variant.engine for c in told if c.timing}
    assert {"reference", "cpu", "scripted"} <= timed


def test_bound_constants_are_a_class_of_their_own(install: Install) -> None:
    """With both arrays bound nothing moves at a call, and there the device wins."""
    engine = install(0.01)
    dense = kernel()
    dense(*inputs())
    with dense.bind(*inputs(), constant=("x", "w")) as bound:
        engine.moved.clear()
        np.testing.assert_allclose(bound(), heavy(*inputs()), 1e-5)
        assert [] == engine.moved
    assert 2 == len(open_store().tables())
    assert "reference" == str(dense.explain(*inputs()).variant)
    assert [str(FAST)] == [v for v in dense.stats.dispatches if v != "reference"]


def test_each_residency_has_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided for host arrays says nothing of a device's."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    device: Any = chosen_device()
    subject = kernel()._subject
    problems = []
    for args in (inputs(), [moved(device, one) for one in inputs()]):
        problem = ask(subject, tuple(args)).problem
        assert problem is not None
        problems.append(problem)
    keys = [resolver().key(one) for one in problems]
    assert ["host", "device"] == [one.residency for one in problems]
    assert keys[0].table != keys[1].table


def moved(device: Any, array: Any) -> Any:
    """Copy an array to a device."""
    buffer = device.allocate(array.nbytes)
    device.copy_in(buffer, array)
    return device.array(buffer, array.shape, array.dtype)
