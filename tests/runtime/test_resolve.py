"""What a call would run: fresh, stale, extrapolated, decided elsewhere."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import StoreWarning, tuned_kernel
from tilewise.runtime.once import resolver
from tilewise.store.merge import repaired
from tilewise.store.stack import open_store


def kernel() -> Any:
    """Return a fresh kernel of one function."""
    return tuned_kernel(budget_s=0.05)(lambda x, w, b: np.maximum(x @ w + b, 0))


def inputs() -> list[Any]:
    """Return (x, w, b)."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype("f4") for s in ((9, 8), (8, 7), (7,))]


def rewrite(**changes: Any) -> None:
    """Change every stored decision and forget those in memory."""
    store = open_store()
    for table in store.tables():
        decisions = tuple(replace(d, **changes) for d in table.decisions)
        store.keep_decisions(replace(table, decisions=decisions), repaired)
    resolver().tables.clear()


def older() -> tuple[tuple[str, str], ...]:
    """Return this process's provenance with an older NumPy."""
    now = dict(tilewise.provenance())
    return tuple(sorted({**now, "numpy": "2.0.0"}.items()))


def test_a_changed_version_makes_a_decision_stale() -> None:
    """The reason names the field with both values."""
    dense = kernel()
    dense(*inputs())
    rewrite(provenance=older())
    told = kernel().explain(*inputs())
    assert "none" == told.grade
    assert f"numpy 2.0.0 -> {np.__version__}" in told.reason


def test_a_stale_decision_is_measured_again() -> None:
    """The next call tunes."""
    kernel()(*inputs())
    rewrite(provenance=older())
    dense = kernel()
    dense(*inputs())
    assert (1, "measured") == (dense.stats.tunings, dense.explain(*inputs()).grade)


def test_a_stale_decision_serves_with_a_warning_when_off() -> None:
    """With tuning off what is there is used, and said once."""
    kernel()(*inputs())
    rewrite(provenance=older())
    with tilewise.tuning("off"), pytest.warns(StoreWarning, match="stale"):
        told = kernel().explain(*inputs())
    assert "extrapolated" == told.grade


def test_a_driver_update_does_not_touch_cpu_decisions() -> None:
    """Only the versions that a CPU variant depends on count for it."""
    kernel()(*inputs())
    now = {**dict(tilewise.provenance()), "driver": "1.2.3"}
    rewrite(provenance=tuple(sorted(now.items())))
    assert "measured" == kernel().explain(*inputs()).grade


def test_extrapolation_without_a_regret_is_not_used_when_off() -> None:
    """The reference serves, and the reason says that no regret covers the sizes."""
    kernel()(*inputs())
    rewrite(origin="extrapolated", regret=None)
    with tilewise.tuning("off"):
        told = kernel().explain(*inputs())
    assert ("reference", "extrapolated") == (str(told.variant), told.grade)
    assert "no stored regret" in told.reason


def test_decisions_of_other_hardware_are_a_miss_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reason names the other fingerprint."""
    kernel()(*inputs())
    home = resolver().fingerprint_of(0)
    other = lambda device: "cpu_other_9t_no-gpu"  # noqa: E731
    monkeypatch.setattr(resolver(), "fingerprint_of", other)
    told = kernel().explain(*inputs())
    assert "none" == told.grade
    assert home in told.reason


def test_a_store_that_cannot_be_made_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The call is right, measured once, and remembered in memory."""
    file = tmp_path / "file"
    file.write_text("not a directory")
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(file / "store"))
    dense, args = kernel(), inputs()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            np.testing.assert_allclose(dense(*args), dense.reference(*args), rtol=1e-5)
    told = [w for w in caught if issubclass(w.category, StoreWarning)]
    assert 1 <= len(told) <= 2
    assert 1 == dense.stats.tunings


def test_the_engines_setting_limits_who_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With only the reference allowed nothing is built."""
    monkeypatch.setenv("TILEWISE_ENGINES", "reference")
    dense = kernel()
    dense(*inputs())
    assert {"reference": 1} == dict(dense.stats.dispatches)
    assert 0 == dense.stats.compiles


def test_a_call_reads_its_own_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is stored, a first call does not look through it."""
    kernel()(*inputs())
    resolver().tables.clear()

    def everything(*args: Any) -> Any:
        raise AssertionError("all tables are read")

    monkeypatch.setattr(type(open_store().records), "tables", everything)
    x, w, b = inputs()
    kernel()(x[:1], w, b)
    with pytest.raises(AssertionError, match="all tables"):
        kernel().explain(x[:3], w, b)
