"""Totals of processes: files that are written once, summed, folded and cleared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewise.model.totals import Totals, summed
from tilewise.store.totals import TotalRecords

ONE = Totals("dense", "cpu_x", calls=3, tunings=1, tuning_ms=20.0, saved_ms=1.5)
OTHER = Totals("other", "cpu_x", calls=1)


@pytest.fixture
def records(tmp_path: Path) -> TotalRecords:
    """Return records in a new place."""
    return TotalRecords(tmp_path / "store" / "totals", readonly=False)


def test_rows_of_processes_are_summed(records: TotalRecords) -> None:
    """Counts and times add up per kernel; the hardware keeps them apart."""
    elsewhere = replace(ONE, hardware="cpu_y")
    for rows in ([ONE, OTHER], [ONE], [elsewhere]):
        records.add(rows)
    twice = Totals("dense", "cpu_x", 2, 6, 0, 2, 0, 0, 40.0, 0.0, 3.0)
    assert [twice, elsewhere, OTHER] == records.every()


def test_folding_keeps_the_sums_in_one_file(records: TotalRecords) -> None:
    """Many files become one that says the same."""
    for _ in range(5):
        records.add([ONE])
    before = records.every()
    assert 4 == records.fold()
    assert (before, 1) == (records.every(), len(list(records.files())))


def test_a_bad_file_counts_as_none_and_goes(records: TotalRecords) -> None:
    """Half a file, and one under another's name, are no rows."""
    records.add([ONE])
    (path,) = records.directory.iterdir()
    data = path.read_bytes()
    path.with_name("1-1.totals").write_bytes(data)
    path.with_name("2-2.totals").write_bytes(data[:-3])
    assert [ONE] == records.every()
    assert [path] == list(records.directory.iterdir())


def test_a_read_only_store_is_not_written(tmp_path: Path) -> None:
    """Nor is a directory made."""
    records = TotalRecords(tmp_path / "totals", readonly=True)
    assert (False, []) == (records.add([ONE]), list(tmp_path.iterdir()))


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """A process that ends has nobody to tell."""
    (tmp_path / "file").write_text("")
    assert not TotalRecords(tmp_path / "file" / "totals", readonly=False).add([ONE])


def test_files_are_for_their_user_alone(records: TotalRecords) -> None:
    """Like all of the store."""
    records.add([ONE])
    (path,) = records.directory.iterdir()
    modes = [p.stat().st_mode & 0o777 for p in (path, records.directory)]
    assert [0o600, 0o700] == modes


def test_clearing_removes_all(records: TotalRecords) -> None:
    """Nothing is left to sum."""
    records.add([ONE])
    assert (1, []) == (records.clear(), records.every())


def test_sums_are_sorted() -> None:
    """By kernel, then by hardware."""
    assert ["dense", "other"] == [row.kernel for row in summed([OTHER, ONE])]
