"""A caller's table is replaced whole, and never by an older one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewise.model.box import Bound, Box, BoxTable
from tilewise.store.boxes import BoxRecords
from tilewise.store.database import Database

OLD = BoxTable("here", "f", ("n",), (Box(()),), made_utc="2026-01-01")
NEW = replace(OLD, boxes=(Box((Bound("n", 0, 5),)), Box(())), made_utc="2026-02-01")


@pytest.fixture
def records(tmp_path: Path) -> BoxRecords:
    """Make records in a directory of their own."""
    return BoxRecords(Database(tmp_path / "part", readonly=False))


def test_table_comes_back(records: BoxRecords):
    """What is kept is what is read, for this hardware and name."""
    records.keep(NEW)

    assert [NEW] == records.tables("here", "f")
    assert ([], []) == (records.tables("there", "f"), records.tables("here", "g"))


def test_later_table_replaces(records: BoxRecords):
    """The regions of an earlier table do not stay."""
    records.keep(OLD)
    records.keep(NEW)

    assert [NEW] == records.tables("here", "f")


def test_older_table_does_not_revert(records: BoxRecords):
    """A writer that measured earlier and comes later changes nothing."""
    records.keep(NEW)
    records.keep(OLD)

    assert [NEW] == records.tables("here", "f")


def test_code_versions_stand_side_by_side(records: BoxRecords):
    """Each version of the code has a table, the latest first."""
    versions = [replace(OLD, code_version="a"), replace(NEW, code_version="b")]
    for table in versions:
        records.keep(table)

    assert versions[::-1] == records.tables("here", "f")


def test_names_that_look_alike_are_two(records: BoxRecords):
    """Neither spaces nor signs nor cut names run together."""
    names = ["foo bar", "foo-bar", "foo_bar", "x" * 90, "x" * 91]
    for name in names:
        records.keep(replace(OLD, name=name))

    assert [1] * 5 == [len(records.tables("here", name)) for name in names]


def test_removed_tables_are_gone(records: BoxRecords):
    """All versions of a name go, other names stay."""
    others = [replace(OLD, name="g"), replace(OLD, code_version="a")]
    for table in (OLD, *others):
        records.keep(table)

    assert (2, [others[0]]) == (records.remove("here", "f"), records.every())
