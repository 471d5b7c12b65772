"""Figures that hold are not taken again; tables are one for each tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import tuned_kernel
from tilewise.runtime import race
from tilewise.runtime.once import resolver
from tilewise.store.stack import open_store


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no load on this machine spoil a figure."""
    for module in ("runtime.race", "tuner.planner"):
        monkeypatch.setattr(f"tilewise.{module}.CONTENDED", 2.0)


def relu(x: Any, w: Any, b: Any) -> Any:
    """Be the function of every kernel here."""
    return np.maximum(x @ w + b, 0)


def inputs() -> list[Any]:
    """Return (x, w, b)."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype("f4") for s in ((9, 8), (8, 7), (7,))]


def kernel(**options: Any) -> Any:
    """Return a fresh kernel of the function."""
    return tuned_kernel(budget_s=0.05, **options)(relu)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of the variants whose figures are not known."""
    found: list[str] = []
    decide = race.decide

    def watched(case: Any, contestants: Any, *rest: Any, **options: Any) -> Any:
        known = {(c.variant, c.version) for c in options["known"]}
        found.extend(
            c.variant.name for c in contestants if (c.variant, c.version) not in known
        )
        return decide(case, contestants, *rest, **options)

    monkeypatch.setattr(race, "decide", watched)
    return found


def with_own(dense: Any, factor: int = 1) -> Any:
    """Add a variant of the user's."""

    @dense.variant()
    def plain(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0) * factor

    return dense


def test_a_new_variant_measures_only_itself(ran: list[str]) -> None:
    """The others keep their figures, and the decision names all."""
    kernel()(*inputs())
    ran.clear()
    dense = with_own(kernel())
    dense(*inputs())
    told = {c.variant.name for c in dense.explain(*inputs()).candidates if c.timing}
    assert ["user/plain"] == ran
    assert {"reference", "cpu/small", "user/plain"} <= told


def test_changed_code_measures_only_itself(ran: list[str]) -> None:
    """Figures of a variant's older code do not hold."""
    with_own(kernel())(*inputs())
    ran.clear()
    with_own(kernel(), factor=True)(*inputs())
    assert ["user/plain"] == ran


def test_force_measures_all(ran: list[str]) -> None:
    """A tuning that is asked for again takes every figure anew."""
    kernel().tune(*inputs())
    ran.clear()
    kernel().tune(*inputs(), force=True)
    assert {"cpu/blas_serial", "cpu/small", "cpu/packed"} == set(ran)


def test_a_forced_process_measures_all_at_its_first_call(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TILEWISE_TUNE=force takes every figure anew too, and once."""
    kernel()(*inputs())
    ran.clear()
    monkeypatch.setenv("TILEWISE_TUNE", "force")
    dense = kernel()
    dense(*inputs()), dense(*inputs())
    assert ["cpu/blas_serial", "cpu/packed", "cpu/small"] == sorted(ran)


def test_figures_of_other_versions_do_not_hold(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another NumPy all are measured again."""
    kernel()(*inputs())
    ran.clear()
    now = tuple(sorted({**dict(tilewise.provenance()), "numpy": "2.0.0"}.items()))
    monkeypatch.setattr(resolver(), "provenance_of", lambda: now)
    kernel()(*inputs())
    assert {"cpu/blas_serial", "cpu/small", "cpu/packed"} == set(ran)


def test_figures_under_load_do_not_hold(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others disturbed is measured again with the new variant."""
    kernel()(*inputs())
    ran.clear()
    monkeypatch.setattr("tilewise.runtime.race.CONTENDED", -1.0)
    with_own(kernel())(*inputs())
    assert {"cpu/small", "user/plain"} <= set(ran)


def test_a_decision_of_fewer_engines_is_not_enough() -> None:
    """A kernel that allows more engines races those that did not."""
    kernel(engines=["reference"])(*inputs())
    some = kernel(engines=["cpu"])
    some(*inputs())
    every = with_own(kernel())
    assert "user/plain did not race, or changed" in every.explain(*inputs()).reason
    every(*inputs())
    assert "measured" == every.explain(*inputs()).grade


def test_a_decision_of_more_engines_serves_fewer() -> None:
    """The best of those that a kernel allows is known: nothing is measured again."""
    kernel()(*inputs())
    some = kernel(engines=["cpu"])
    some(*inputs())
    assert 0 == some.stats.tunings


def loose(actual: Any, expected: Any) -> bool:
    """Accept all."""
    return True


def strict(actual: Any, expected: Any) -> bool:
    """Accept what is close."""
    return bool(np.allclose(actual, expected))


@pytest.mark.parametrize("one", [None, 1e-3, (1e-3, 1e-6), loose])
def test_each_tolerance_has_a_table(one: Any) -> None:
    """What is right for one is not for another: its decision does not serve."""
    kernel(tolerance=one)(*inputs())
    other = kernel(tolerance=strict)
    other(*inputs())
    assert 1 == other.stats.tunings
    assert 2 == len(open_store().tables())


def test_equal_tolerances_share_a_table() -> None:
    """A number and the pair of it are one, and so are two functions of one code."""
    kernel(tolerance=1e-3)(*inputs())
    other = kernel(tolerance=(1e-3, 1e-3))
    other(*inputs())
    assert 0 == other.stats.tunings


def test_where_all_fail_the_function_serves_once_and_for_all() -> None:
    """No winner is made up, and nothing is measured again, here or by a peer."""

    def failing() -> Any:
        dense = kernel(engines=["user"])

        @dense.variant()
        def broken(x: Any, w: Any, b: Any) -> Any:
            raise ValueError("no such tile")

        return dense

    dense, peer = failing(), failing()
    for one in (dense, dense, peer):
        np.testing.assert_allclose(one(*inputs()), relu(*inputs()), 1e-5)
    told = dense.explain(*inputs())
    assert ("reference", 1, 0) == (
        str(told.variant), dense.stats.tunings, peer.stats.tunings,
    )  # fmt: skip
    assert "no such tile" in str(told)


def test_tuning_off_never_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored stays as it is, and nothing comes to it."""
    kernel()(*inputs())
    before = open_store().tables(), open_store().stamp()
    monkeypatch.setenv("TILEWISE_TUNE", "off")
    dense = kernel(tolerance=1e-3)
    dense(*inputs())
    kernel()(*inputs())
    assert before == (open_store().tables(), open_store().stamp())
