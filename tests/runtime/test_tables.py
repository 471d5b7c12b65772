"""Tables of a process: the store's as it is now, and what only memory has."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.store.samples import KEY, decision, table
from tilewise.model.decision import Decision
from tilewise.runtime.tables import Tables
from tilewise.store.stack import open_store

CLEAN = decision(5, "clean", "2026-01-01")
LOADED = replace(decision(5, "loaded", "2026-01-02"), contended=True)


def winner(tables: Tables, m: int = 5) -> str:
    """Return the method that serves a size."""
    found = tables.find(KEY, (("m", m),))
    return found.variant.method if found else ""


def kept(*decisions: Decision) -> Tables:
    """Return tables that keep some decisions one after the other."""
    tables = Tables(open_store)
    for one in decisions:
        tables.keep(table(one), writes=True)
    return tables


def test_load_does_not_replace_a_clean_decision_on_disk() -> None:
    """The contended one serves here, the clean one everywhere else."""
    here = kept(CLEAN, LOADED)

    assert ("loaded", "clean") == (winner(here), winner(Tables(open_store)))


def test_load_replaces_a_stale_decision() -> None:
    """What was made with another version is of no use, so that the new one is kept."""
    old = replace(CLEAN, provenance=(("numpy", "1"),))
    kept(old, replace(LOADED, provenance=(("numpy", "2"),)))

    assert "loaded" == winner(Tables(open_store))


def test_what_only_memory_has_survives_another_write() -> None:
    """A decision for other sizes is stored; the contended one still serves."""
    here = kept(CLEAN, LOADED)
    here.keep(table(decision(100, "other")), writes=True)

    assert ("loaded", "other") == (winner(here), winner(here, 100))


def test_an_older_stored_decision_does_not_come_back() -> None:
    """Another process writes for other sizes; memory is later than the store's."""
    here = kept(CLEAN, LOADED)
    kept(decision(100, "peer"))

    assert ("loaded", "peer") == (winner(here), winner(here, 100))


def test_a_later_one_of_a_peer_is_seen() -> None:
    """What another process decides serves at the next question, without a restart."""
    here = kept(CLEAN)
    assert "clean" == winner(here)
    kept(decision(5, "peer", "2026-01-03"))

    assert "peer" == winner(here)


def test_nothing_is_written_where_it_must_not() -> None:
    """With tuning off a decision stays in memory."""
    here = Tables(open_store)
    here.keep(table(CLEAN), writes=False)

    assert ("clean", "") == (winner(here), winner(Tables(open_store)))


def test_what_is_kept_while_another_thread_reads_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A decision that only memory has comes after the store was read, and serves."""
    here, store = Tables(open_store), open_store()
    keeps = threading.Thread(
        target=here.keep, args=(table(CLEAN),), kwargs={"writes": False}
    )

    def slowly(key: Any) -> None:
        keeps.start()
        keeps.join(0.2)

    with monkeypatch.context() as patch:
        patch.setattr(store, "decisions", slowly)
        winner(here)
    keeps.join()

    assert "clean" == winner(here)
