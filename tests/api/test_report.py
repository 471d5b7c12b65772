"""A scripted run whose every call, compilation and hit is in the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import tuned_kernel
from tilewise.api.totals import tell
from tilewise.runtime.once import resolver


def counted_kernel(x: Any, w: Any, b: Any) -> Any:
    """Be the function of the run."""
    return np.maximum(x @ w + b, 0)


def told(name: str) -> Any:
    """Return what the report has of a kernel."""
    return dict(tilewise.report().kernels)[name]


def test_the_counts_add_up() -> None:
    """Ten calls in five ways, by two variants; one build and each way to find it."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype("f4") for s in ((4, 3), (3, 5), (5,)))
    resolver().workshop.forget()
    out, kernel = np.empty((4, 5), "f4"), tuned_kernel(name="of a run")(counted_kernel)
    kernel.pin("cpu/small")
    kernel(x, w, b), kernel(x, w, b)  # Built; then served from the table.
    kernel(x, w, b, out=out)
    with kernel.bind(x, w, b, constant=("w", "b")) as bound:  # Found in the store.
        bound(x), bound(x, out=out), bound(x, out=np.empty((5, 4), "f4").T)
    kernel.bind(x, w, b, constant=("w", "b"))(x)  # Found in memory.
    resolver().workshop.forget()
    kernel.forget()
    kernel(x, w, b)  # Found in the store again.
    kernel.unpin()
    kernel(x.tolist(), w, b), kernel(x, w.tolist(), b)

    stats = told("of a run")
    assert {"cpu/small": 8, "reference": 2} == stats.dispatches
    assert (1, 2, 1) == (stats.compiles, stats.artifact_hits, stats.memory_hits)
    assert (2, 0) == (stats.fallbacks, stats.tunings)
    assert {
        "x is a list, not an array or a number": 1,
        "w is a list, not an array or a number": 1,
    } == stats.reasons


def test_a_tuning_is_counted_with_its_calls() -> None:
    """The first of five calls measures; all are dispatched, whatever won."""
    x, w, b = np.ones((4, 3), "f4"), np.ones((3, 5), "f4"), np.ones(5, "f4")
    kernel = tuned_kernel(name="of a tuning", budget_s=0.05)(counted_kernel)
    for _ in range(5):
        kernel(x, w, b)
    stats = told("of a tuning")
    assert (1, 5) == (stats.tunings, sum(stats.dispatches.values()))
    assert 0 < stats.tuning_ms
    assert [(4, 5)] == [kernel.bind(x, w, b, constant="w")(x, b).shape]
    assert 6 == sum(told("of a tuning").dispatches.values())


def test_a_process_that_may_not_tune_keeps_no_totals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it built is used, and nobody is told of it."""
    monkeypatch.setenv("TILEWISE_TUNE", "off")
    kernel = tuned_kernel(name="of a quiet run")(counted_kernel)
    kernel.pin("cpu/small")
    kernel(np.ones((4, 3)), np.ones((3, 5)), np.ones(5))
    tell([kernel])
    kept = resolver().store_of().totals.every()
    assert 1 == kernel.stats.compiles
    assert "of a quiet run" not in [r.kernel for r in kept]


def test_a_wrong_setting_is_not_told_again_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interpreter that ends with a setting that cannot be raises nothing more."""
    monkeypatch.setenv("TILEWISE_TUNE", "of")
    assert tell([]) is None
