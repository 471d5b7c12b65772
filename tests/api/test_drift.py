"""Stored winners are measured again: losers are named, and replaced if asked."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewise import SettingError, ship_defaults, tuned_kernel
from tilewise.api.drift import DriftReport, check_drift
from tilewise.model.variant import Variant
from tilewise.runtime.once import resolver
from tilewise.store import stack
from tilewise.store.decisions import table_name
from tilewise.store.merge import repaired
from tilewise.store.stack import open_store
from tilewise.tuner.claims import claim

SLOW = Variant("user", "slow")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no load on this machine bar a repair."""
    monkeypatch.setattr("tilewise.tuner.planner.CONTENDED", 2.0)


def kernel() -> Any:
    """Return a kernel with a variant that takes 2 ms."""

    @tuned_kernel(budget_s=0.1, engines=["user"])
    def drifts(x: Any, w: Any) -> Any:
        return np.maximum(x @ w, 0)

    @drifts.variant()
    def slow(x: Any, w: Any) -> Any:
        time.sleep(0.002)
        return np.maximum(x @ w, 0)

    return drifts


def decided(winner: Variant | None = None) -> Any:
    """Tune at one problem; make a variant its stored winner."""
    dense = kernel()
    dense.tune(shapes=[(9, 8, 7)])
    (table,) = open_store().tables()
    if winner is not None:
        found = tuple(replace(d, variant=winner) for d in table.decisions)
        open_store().keep_decisions(replace(table, decisions=found), repaired)
    return dense


def stored() -> Variant:
    """Return the stored winner."""
    return open_store().tables()[0].decisions[0].variant


def test_a_winner_that_lost_is_named_and_stays() -> None:
    """Checking reports the loss and changes nothing."""
    report = check_drift(decided(SLOW))
    assert "1 winners measured again, 1 lost, none of them replaced" in str(report)
    assert "m=9, n=8, k=7: user/slow loses" in str(report)
    assert stored() == SLOW


def test_a_repair_replaces_the_winner() -> None:
    """The new one serves the same region, here and in the store."""
    dense = decided(SLOW)
    region = open_store().tables()[0].decisions[0].region
    report = check_drift(dense, repair=True)
    told = dense.explain(m=9, n=8, k=7)
    assert "1 lost and were replaced" in str(report)
    assert ("reference", region) == (str(stored()), told.region)
    assert "reference" == str(told.variant)


def test_a_winner_that_wins_stands() -> None:
    """Nothing has drifted, and a repair changes nothing."""
    dense = decided()
    before = open_store().tables()
    report = check_drift(dense, repair=True)
    assert "reference still stands" in str(report)
    assert before == open_store().tables()


def test_a_table_of_other_arguments_is_not_checked() -> None:
    """What can't be made here is named instead."""
    dense = decided()
    dense(np.ones((8, 9), "f4").T, np.ones((8, 7), "f4"))
    report: DriftReport = check_drift(dense)
    assert (1, 1) == (len(report.checked), len(report.unchecked))
    assert "not checked, no such arguments are made" in str(report)


def test_each_dtype_is_checked() -> None:
    """Arguments are made as a table says, whatever it was tuned with."""
    dense = decided()
    dense.tune(shapes=[(9, 8, 7)], dtype="float64")
    assert 2 == len(check_drift(dense).checked)


def test_a_repair_under_load_is_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report does not claim what the store does not have."""
    dense = decided(SLOW)
    monkeypatch.setattr("tilewise.tuner.planner.CONTENDED", -1.0)
    report = check_drift(dense, repair=True)
    assert "1 lost, none of them replaced" in str(report)
    assert "reference wins, kept in memory: taken under load" in " ".join(
        str(report).split()
    )
    assert False is report.to_dict()["checked"][0]["written"]
    assert SLOW == stored()
    assert "reference" == str(dense.explain(m=9, n=8, k=7).variant)


def test_tables_of_every_device_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second GPU's are posed there; those of hardware that is not here are not."""
    dense, asked = decided(), []
    (table,) = open_store().tables()
    for name in ("cpu_gpu_1", "cpu_gpu_elsewhere"):
        key = replace(table.key, fingerprint=name, residency="device")
        open_store().keep_decisions(replace(table, key=key))
    home = resolver().fingerprint_of(0)
    names = {0: home, 1: "cpu_gpu_1"}
    monkeypatch.setattr(resolver(), "fingerprint_of", names.get)
    monkeypatch.setattr("tilewise.runtime.drifting.visible_gpus", lambda: (0, 1))

    def on_device(value: Any, number: int) -> Any:
        asked.append(number)
        return value

    monkeypatch.setattr("tilewise.api.drift.on_device", on_device)
    report = check_drift(dense)
    assert (1, 1, {1}) == (len(report.checked), len(report.unchecked), set(asked))


def test_tuning_off_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is named."""
    dense = decided()
    monkeypatch.setenv("TILEWISE_TUNE", "off")
    with pytest.raises(SettingError, match="TILEWISE_TUNE"):
        check_drift(dense)


def test_a_table_that_another_measures_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two that measure at once would disturb each other."""
    dense = decided()
    (table,) = open_store().tables()
    monkeypatch.setattr("tilewise.runtime.drifting.PATIENT_S", 0.0)
    with claim(open_store().directory / "claims", table_name(table.key)):
        report = check_drift(dense)
    assert () == report.checked
    assert "not checked, another process measures it" in str(report)


def test_what_is_shipped_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair could not replace it: a package's file is never written."""
    dense = decided(SLOW)
    open_store().export(tmp_path / "defaults.tilewise")
    monkeypatch.setattr(stack, "SHIPPED", [])
    ship_defaults(tmp_path / "defaults.tilewise")
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "other"))
    report = check_drift(dense, repair=True)
    assert (SLOW, ()) == (stored(), report.checked)
