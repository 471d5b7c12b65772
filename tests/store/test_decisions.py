"""Decisions are merged, never reverted; measurements never change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.samples import KEY, decision, python, table
from tilewise.model.decision import MeasurementRow
from tilewise.store.decisions import (
    DecisionRecords,
    row_name,
    table_name,
)

OTHER = replace(KEY, kernel="spec-2")
ROW = MeasurementRow(KEY, (("m", 5),), decision().candidates[0], (("numpy", "2"),), "w")


@pytest.fixture
def records(tmp_path: Path) -> DecisionRecords:
    """Make records in a directory of their own."""
    return DecisionRecords(tmp_path / "store" / "decisions", False)


def test_table_comes_back(records: DecisionRecords):
    """What was merged into nothing is what is read."""
    records.merge(table(decision()))

    assert (table(decision()), None) == (records.table(KEY), records.table(OTHER))


def test_label_takes_no_part(records: DecisionRecords):
    """Two ways of writing a combination for people name one table."""
    records.merge(table(decision()))

    assert table(decision()) == records.table(replace(KEY, label="float32, host"))


@pytest.mark.parametrize("field", ["fingerprint", "kernel", "table"])
def test_each_part_of_the_key_counts(records: DecisionRecords, field: str):
    """Other hardware, another kernel or other dtypes is another table."""
    records.merge(table(decision()))

    assert None is records.table(replace(KEY, **{field: "other"}))


def test_parts_of_the_key_do_not_run_together():
    """Moving a letter from one part to the next is another key."""
    one, other = replace(KEY, kernel="ab", table="c"), replace(KEY, kernel="a")

    assert table_name(one) != table_name(replace(other, table="bc"))


def test_nothing_is_evicted(records: DecisionRecords):
    """Two hundred tables are all there, in the database itself."""
    keys = [replace(KEY, kernel=f"{number}") for number in range(200)]
    for key in keys:
        records.merge(table(decision(), key=key))

    assert (200, []) == (
        len(records.tables()),
        list(records.database.directory.rglob("*.val")),
    )


def test_tables_are_sorted(records: DecisionRecords):
    """Listing is by kernel and key, in whatever order they were stored."""
    for key in (OTHER, KEY):
        records.merge(table(decision(), key=key))

    assert [KEY, OTHER] == [one.key for one in records.tables()]


def test_rows_come_back_in_time(records: DecisionRecords):
    """The measurements of one table are read in the order of time."""
    rows = [replace(ROW, made_utc=f"{year}", writer=f"{year}") for year in range(9)]
    records.add_rows([*reversed(rows), replace(ROW, key=OTHER)])

    assert rows == records.rows(KEY)


def test_rows_never_change(records: DecisionRecords):
    """A second row of the same name leaves the first as it is."""
    again = replace(ROW, candidate=replace(ROW.candidate, compile_ms=9.0))

    assert (1, 0) == (records.add_rows([ROW]), records.add_rows([again]))
    assert [ROW] == records.rows(KEY)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": OTHER},
        {"point": (("m", 6),)},
        {"candidate": decision(5, "blas").candidates[0]},
        {"provenance": (("numpy", "3"),)},
        {"writer": "other"},
    ],
)
def test_each_part_of_a_row_counts(changes: dict[str, object]):
    """Key, problem, variant, provenance and writer each make another row."""
    assert row_name(ROW) != row_name(replace(ROW, **changes))  # type: ignore[arg-type]


def test_stamp_tells_of_new_decisions(records: DecisionRecords):
    """A process that lives long can ask whether anything was decided since."""
    before = records.stamp()
    records.merge(table(decision()))

    assert before != records.stamp()


MERGES = """
import os, sys, pathlib, warnings
warnings.simplefilter("ignore")  # A write may take more than half a second here.
from tests.store.samples import decision, table
from tilewise.store.decisions import DecisionRecords
for number in range(4):
    if not os.fork():
        records = DecisionRecords(pathlib.Path(sys.argv[1]), False)
        for step in range(12):
            records.merge(table(decision(2 ** (number * 12 + step))))
        records.database.worker.do(records.database.close_here, None)
        os._exit(0)
print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)])
"""


def test_concurrent_merges_lose_nothing(records: DecisionRecords):
    """Four processes that merge into one table at once keep all 48 decisions."""
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r})\n{MERGES}"
    done = python(code, records.database.directory)
    found = records.table(KEY)

    assert ("[0, 0, 0, 0]\n", "") == (done.stdout, done.stderr)
    assert found is not None
    assert 48 == len(found.decisions)


def test_killed_writer_leaves_whole_records(records: DecisionRecords):
    """A writer that is killed in a transaction leaves the table as it was."""
    records.merge(table(decision()))
    code = """
import os, signal, sys, pathlib
from tilewise.store.decisions import DecisionRecords
records = DecisionRecords(pathlib.Path(sys.argv[1]), False)
name = records.database.keys("table/")[0]
records.database.change(name, lambda old: os.kill(os.getpid(), signal.SIGKILL))
"""
    done = python(code, records.database.directory)

    assert (-9, table(decision())) == (done.returncode, records.table(KEY))
    assert table(decision(100), decision()) == records.merge(table(decision(100)))
