"""Ranges of sizes: swept once, kept as regions, with single cells beside them."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import ArgumentError, tuned_kernel
from tilewise.runtime import sweeps
from tilewise.store.stack import open_store
from tilewise.tuner import sweep as tuner_sweep

ROWS: Any = {"m": (1, 64), "n": 8, "k": 8}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no load on this machine spoil a figure."""
    for module in ("runtime.race", "tuner.planner"):
        monkeypatch.setattr(f"tilewise.{module}.CONTENDED", 2.0)
    monkeypatch.setattr(tuner_sweep, "POINT_S", 0.01)


def kernel(**options: Any) -> Any:
    """Return a fresh kernel of one function."""

    @tuned_kernel(budget_s=0.05, **options)
    def relu(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    return relu


def swept(dense: Any, ranges: Any = ROWS, **options: Any) -> Any:
    """Sweep with little time for each problem, and enough for all."""
    return dense.tune(ranges=ranges, budget_s=60, **options)


def inputs(m: int, n: int = 8, k: int = 8) -> list[Any]:
    """Return (x, w, b)."""
    rng = np.random.default_rng(m)
    return [rng.standard_normal(s).astype("f4") for s in ((m, k), (k, n), (n,))]


def test_every_size_of_a_range_is_decided() -> None:
    """A pass over all rows measures nothing, and all results are right."""
    dense = kernel()
    swept(dense)
    done = dense.stats.tunings
    for m in range(1, 65):
        args = inputs(m)
        np.testing.assert_allclose(dense(*args), dense.reference(*args), 1e-4, 1e-5)
    assert done == dense.stats.tunings


def test_the_report_has_the_regions_that_are_stored() -> None:
    """In their order, the measured ones first, and a peer reads the same."""
    report = swept(kernel())
    (one,) = report.sweeps
    (table,) = open_store().tables()
    origins = [d.origin for d in one.regions]
    assert one.regions == table.decisions
    assert origins == sorted(origins, reverse=True)
    assert "1 <= m <= 64, n = 8, k = 8" in str(report)


def test_a_sweep_keeps_where_the_kernel_is_written() -> None:
    """A program that measures again finds the kernel by it."""
    dense = kernel()
    dense(*inputs(5))
    swept(dense)
    (table,) = open_store().tables()
    assert table.place == f"{__name__}:{dense.__qualname__}"


def test_regions_cover_the_range_once() -> None:
    """Each size lies in one measured region, and in some region beyond the range."""
    (one,) = swept(kernel()).sweeps
    measured = [d for d in one.regions if d.origin == "sweep"]
    points = [(("m", m), ("n", 8), ("k", 8)) for m in range(1, 65)]
    assert {1} == {sum(d.covers(p) for d in measured) for p in points}
    assert any(d.covers((("m", 0), ("n", 9), ("k", 99))) for d in one.regions)


def test_a_sweep_serves_before_the_cells() -> None:
    """What calls had measured serves only where the sweep measured nothing."""
    dense = kernel()
    dense(*inputs(5))
    swept(dense)
    told = [dense.explain(*inputs(5, n)).resolution.decision for n in (8, 9)]
    assert ["sweep", "cell"] == [one.origin for one in told]


def test_other_sizes_of_an_axis_are_extrapolated_at_an_unknown_loss() -> None:
    """With tuning off the reference serves them; else the next call measures."""
    dense = kernel()
    swept(dense)
    told = dense.explain(*inputs(9, k=9))
    assert ("extrapolated", None) == (told.grade, told.resolution.decision.regret)
    with tilewise.tuning("off"):
        assert "reference" == str(dense.explain(*inputs(9, k=9)).variant)


def test_a_cell_measured_beyond_leaves_the_sweep() -> None:
    """A call at k=9 decides its cell; at k=8 the sweep still serves."""
    dense = kernel()
    swept(dense)
    dense(*inputs(9, k=9))
    told = [dense.explain(*inputs(9, k=k)) for k in (8, 9)]
    assert ["measured", "measured"] == [one.grade for one in told]
    assert ["sweep", "cell"] == [one.resolution.decision.origin for one in told]


def test_what_is_swept_is_not_swept_again() -> None:
    """A second one measures nothing; a part of the range neither; force does."""
    dense = kernel()
    swept(dense)
    again = [swept(dense), swept(dense, {**ROWS, "m": (2, 9)})]
    assert ["decided", "decided"] == [one.sweeps[0].ended for one in again]
    assert swept(dense, force=True).sweeps[0].points > 0


def test_a_new_variant_measures_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the others have figures they keep them."""
    monkeypatch.setattr(tuner_sweep, "FAR", float("inf"))
    monkeypatch.setattr(tuner_sweep, "POINT_S", 0.1)
    swept(kernel())
    dense, ran = kernel(), set[str]()

    @dense.variant()
    def plain(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    decide = tuner_sweep.decide

    def watched(case: Any, contestants: Any, *rest: Any, **options: Any) -> Any:
        known = {c.variant for c in options["known"]}
        if known:
            ran.update(c.variant.name for c in contestants if c.variant not in known)
        return decide(case, contestants, *rest, **options)

    monkeypatch.setattr(tuner_sweep, "decide", watched)
    swept(dense)
    assert "user/plain" in ran
    assert "cpu/small" not in ran


def test_a_variant_that_is_left_out_is_not_asked_again() -> None:
    """One that failed at two points is decided on at the others, too."""
    dense = kernel()

    @dense.variant(isolated=False)
    def bad(x: Any, w: Any, b: Any) -> Any:
        raise ValueError("no such tile")

    swept(dense)
    assert {"measured"} == {dense.explain(*inputs(m)).grade for m in range(1, 65)}


def test_sizes_of_one_have_a_table_of_their_own() -> None:
    """Where n is 1, b broadcasts: the range is swept in two parts."""
    report = swept(kernel(), {"m": (1, 2), "n": (1, 3), "k": 8})
    boxes = [str(one.box[1]) for one in report.sweeps]
    assert ["n = 1", "2 <= n <= 3"] == boxes
    assert 2 == len(open_store().tables())


def test_ctrl_c_keeps_the_regions_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three points are measured, regions are drawn from them and stored."""
    posed, calls = sweeps.Sweeping.posed, Counter[str]()

    def stopped(*args: Any) -> Any:
        calls["posed"] += 1
        if calls["posed"] == 4:
            raise KeyboardInterrupt
        return posed(*args)

    monkeypatch.setattr(sweeps.Sweeping, "posed", stopped)
    report = swept(kernel())
    assert (True, 3) == (report.interrupted, report.sweeps[0].points)
    assert "interrupted" in str(report)
    assert report.sweeps[0].regions == open_store().tables()[0].decisions


def test_the_loss_after_one_point_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """One point says nothing of others: with tuning off the reference serves them."""
    monkeypatch.setattr(tuner_sweep, "grid", lambda axes: [(("m", 9),)])
    monkeypatch.setattr(tuner_sweep.Sweeper, "next_probe", lambda self: None)
    dense = kernel()
    report = swept(dense)
    assert {None} == {one.regret for one in report.sweeps[0].regions}
    assert "1 problem measured" in str(report)
    assert "expected loss unknown" in " ".join(str(report).split())
    with tilewise.tuning("off"):
        assert "reference" == str(dense.explain(*inputs(60)).variant)


def test_an_axes_kernel_is_swept_over_its_axes() -> None:
    """The arguments are those that make_inputs makes."""

    @tuned_kernel(
        axes={"size": lambda x: x.size},
        make_inputs=lambda size: np.arange(size, dtype="f8"),
    )
    def total(x: Any) -> Any:
        return x.sum()

    @total.variant()
    def added(x: Any) -> Any:
        return np.add.reduce(x)

    (one,) = swept(total, {"size": (1, 4096)}).sweeps
    assert one.points >= 5
    assert "measured" == total.explain(np.ones(77)).grade


def test_slow_variants_do_not_overrun_a_budget() -> None:
    """Verifying twenty of them at the first points alone would take seconds."""

    @tuned_kernel(
        axes={"size": lambda x: x.size},
        make_inputs=lambda size: np.arange(size, dtype="f8"),
    )
    def total(x: Any) -> Any:
        return x.sum()

    @total.variant(isolated=False, way=list(range(20)))
    def slow(x: Any, *, way: int) -> Any:
        time.sleep(0.05)
        return x.sum()

    (one,) = total.tune(ranges={"size": (1, 64)}, budget_s=0.3).sweeps
    assert "budget" == one.ended
    assert one.measured_s < 0.9


def test_where_nobody_competes_the_report_says_why() -> None:
    """No engine takes half precision: nothing is swept."""
    report = swept(kernel(), dtype="float16")
    assert ((), True) == (report.sweeps, report.resolutions[0].final)


@pytest.mark.parametrize(
    ("ranges", "told"),
    [
        ({"m": (1, 8)}, '"n": (low, high)'),
        ({**ROWS, "q": 3}, "give"),
        ({**ROWS, "m": (8, 1)}, "1 <= low <= high"),
        ({**ROWS, "m": (0, 8)}, "1 <= low <= high"),
        ({**ROWS, "m": (1, 8.5)}, "not (low, high)"),
        ({**ROWS, "m": 8}, "no axis varies"),
    ],
    ids=("missing", "unknown", "reversed", "zero", "float", "fixed"),
)
def test_bad_ranges_are_named(ranges: Any, told: str) -> None:
    """The error shows what was given and what is allowed."""
    with pytest.raises(ArgumentError) as caught:
        kernel().tune(ranges=ranges)
    assert told in str(caught.value)
