"""Explanations of a hit, a miss, and all that lies between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import tuned_kernel
from tilewise.model.decision import Decision, DecisionTable, cell
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.runtime.once import resolver
from tilewise.runtime.question import ask
from tilewise.store.merge import repaired
from tilewise.store.stack import open_store

PACKED = Variant("cpu", "packed", (("threads", 1),))
SMALL, BLAS = Variant("cpu", "small"), Variant("cpu", "blas_serial")
US = {"reference": 20.0, "cpu/small": 5.0, "cpu/blas_serial": 5.05}


def kernel(**options: Any) -> Any:
    """Return a fresh kernel of one function."""

    @tuned_kernel(budget_s=0.05, **options)
    def relu(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    return relu


def inputs(m: int = 9, n: int = 8, k: int = 7) -> list[Any]:
    """Return (x, w, b)."""
    return [np.ones(s, "f4") for s in ((m, k), (k, n), (n,))]


def figure(variant: Variant) -> Candidate:
    """Return a variant's part: figures where there are some, else it was no use."""
    us = US.get(variant.name)
    if us is None:
        return Candidate(variant, "rejected", "too little for threads")
    return Candidate(variant, "measured", "", Timing(us, us * 0.9, us * 1.1, 15))


def stored(**changes: Any) -> Any:
    """Store a decision of which every figure is known; return the kernel."""
    dense = kernel()
    problem = ask(dense._subject, tuple(inputs())).problem
    assert problem is not None
    able, unable = resolver().workshop.survey(problem, ())  # type: ignore[arg-type]
    told = tuple(map(figure, (REFERENCE, *able))) + tuple(unable)
    made = Decision(cell(problem.point), SMALL, problem.point, told, (BLAS,))
    made = replace(
        made,
        **{"made_utc": "2026-01-01", "provenance": tilewise.provenance(), **changes},
    )
    table = DecisionTable(resolver().key(problem), "relu", (made,))
    open_store().keep_decisions(table)
    open_store().keep_decisions(table, repaired)
    return dense


def test_a_hit_has_winner_interval_tie_and_evidence() -> None:
    """The figures of all, who is tied, the region, and how far the evidence is."""
    told = stored(regret=0.012).explain(*inputs(12))
    text = str(told)
    assert ("cpu/small", "measured") == (str(told.variant), told.grade)
    assert "4.00x of the reference's speed" in told.reason
    flat = " ".join(text.split())
    for part in (
        "region: 8 <= m <= 15, 8 <= n <= 15, 4 <= k <= 7",
        "measured at m=9, n=8, k=7, sizes within 1.3x",
        "expected loss in the region 1.2%",
        "4.50 .. 5.50 us",
    ):
        assert part in flat
    assert "tied" in next(line for line in text.splitlines() if "blas_serial" in line)


def test_a_rival_of_a_sweeps_winner_has_a_status() -> None:
    """Where the evidence was measured another may be as fast as the region's winner."""
    told = str(stored(origin="sweep", variant=SMALL, ties=()).explain(*inputs(12)))
    lines = told.splitlines()
    assert "near-equal" in next(line for line in lines if "blas_serial" in line)
    other = str(stored(origin="sweep", variant=REFERENCE, ties=()).explain(*inputs(12)))
    rows = [line for line in other.splitlines() if "cpu/" in line and "us" in line]
    assert all("faster at this point" in row for row in rows)
    lone = str(stored(origin="sweep", variant=PACKED, ties=()).explain(*inputs(12)))
    assert "fastest at this point" in next(
        line for line in lone.splitlines() if "cpu/small" in line and "us" in line
    )


def test_a_hit_is_the_same_in_json() -> None:
    """Every part of the text is a value."""
    told = stored(regret=0.012).explain(*inputs(12)).to_dict()
    timing = {c["variant"]: c["timing"] for c in told["candidates"]}["cpu/small"]
    assert ("cpu/small", "measured", 0.012) == (
        told["variant"], told["grade"], told["regret"],
    )  # fmt: skip
    assert (["cpu/blas_serial"], 4.5, 15) == (
        told["ties"], timing["low_us"], timing["rounds"],
    )  # fmt: skip
    assert pytest.approx(12 / 9) == told["distance"]


@pytest.mark.parametrize("winner", [SMALL, BLAS, REFERENCE], ids=str)
def test_a_call_runs_what_explain_says(winner: Variant) -> None:
    """What is printed is what the call acts on."""
    dense = stored(variant=winner)
    assert winner == dense.explain(*inputs(12)).variant
    dense(*inputs(12))
    assert {str(winner): 1} == dense.stats.dispatches


def test_a_miss_says_what_the_next_call_does() -> None:
    """Nothing is measured for these sizes; with tuning off nothing will be."""
    dense = stored()
    assert "the next call measures" in dense.explain(*inputs(99)).reason
    with tilewise.tuning("off"):
        told = dense.explain(*inputs(99))
    assert told.reason.endswith("tuning is off, by tuning=off")
    assert "cpu/small" in [str(c.variant) for c in told.candidates]


def test_a_miss_names_other_arguments_that_are_decided() -> None:
    """Sizes alone ask for a row: a matrix in its place has a table of its own."""
    dense = kernel()
    x, w, _ = inputs()
    dense(x, w, np.zeros((9, 8), "f4"))
    told = dense.explain(m=9, n=8, k=7).reason
    assert "it is decided for other arguments: x (m,k) float32" in told
    assert "b (m,n) float32" in told


def test_a_stale_decision_names_both_versions() -> None:
    """The field, what it was and what it is; the old winner is not called measured."""
    old = {**dict(tilewise.provenance()), "numpy": "2.0.0"}
    told = stored(provenance=tuple(sorted(old.items()))).explain(*inputs())
    assert "none" == told.grade
    assert f"stale, numpy 2.0.0 -> {np.__version__}" in told.reason


def test_a_rejected_variant_says_why() -> None:
    """Those who could not race stand below the table with their reasons."""
    text = str(stored().explain(*inputs()))
    assert "not measured:" in text
    assert "too little for threads" in text


def test_a_winner_that_cannot_serve_here_is_named() -> None:
    """The next best serves, and the reason has the engine's own."""
    dense = stored(region=tuple(replace(s, high=None) for s in cell(
        (("m", 9), ("n", 8), ("k", 7)))))  # fmt: skip
    told = dense.explain(*inputs(4096, 4096, 64))
    assert "cpu/blas_serial" == str(told.variant)
    assert "cpu/small won here, but m*n*k=1073741824 is over" in told.reason


def test_a_tie_keeps_the_reference() -> None:
    """Who was not beaten by the margin stays, and the others are tied."""
    told = stored(variant=REFERENCE, ties=(SMALL, BLAS)).explain(*inputs())
    assert "no variant beat the reference" in told.reason
    assert 2 == str(told).count("tied")


def test_an_extrapolation_says_that_it_is_one() -> None:
    """The next call measures; with tuning off it serves where its loss is known."""
    dense = stored(origin="extrapolated", regret=0.01)
    told = dense.explain(*inputs())
    assert "extrapolated" == told.grade
    assert "beyond what is measured: the next call measures" in told.reason
    with tilewise.tuning("off"):
        assert "cpu/small" == str(dense.explain(*inputs()).variant)


def test_a_winner_without_a_figure_is_expected_to_win() -> None:
    """A region's winner that was not tried at the point of its evidence says so."""
    alone = (figure(REFERENCE), replace(figure(SMALL), timing=None, status="not tried"))
    with tilewise.tuning("off"):
        told = stored(candidates=alone).explain(*inputs())
    assert "cpu/small" == str(told.variant)
    assert "expected to be the fastest" in told.reason


def test_a_pin_is_the_reason() -> None:
    """Nothing else counts."""
    dense = stored()
    dense.pin("cpu/blas_serial")
    told = dense.explain(*inputs())
    assert ("cpu/blas_serial", "pinned") == (str(told.variant), told.reason)


def test_load_is_told() -> None:
    """Figures that others disturbed are marked."""
    assert "under load" in stored(contended=True).explain(*inputs()).reason


def test_arguments_for_the_reference_say_why() -> None:
    """No engine takes half precision."""
    halves = [arg.astype("f2") for arg in inputs()]
    told = stored().explain(*halves)
    assert ("reference", "none") == (str(told.variant), told.grade)
    assert "float16" in told.reason


def test_a_changed_variant_says_that_it_did_not_race() -> None:
    """A user's new variant is named, and who won so far still serves."""
    dense = stored()

    @dense.variant()
    def own(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    told = dense.explain(*inputs())
    assert ("cpu/small", "none") == (str(told.variant), told.grade)
    assert "user/own did not race, or changed since" in told.reason


def test_names_the_kinds_of_numbers() -> None:
    """Decisions for ints and for floats can be told apart."""
    kernel = tuned_kernel(lambda x, w, scale: (x @ w) * scale, tune="off", name="s")
    x = np.ones((4, 4), "f4")
    for number, kind in ((2.0, "float"), (2, "int"), (np.float32(2), "float32")):
        assert f"scale {kind}; host" in str(kernel.explain(x, x, number))
