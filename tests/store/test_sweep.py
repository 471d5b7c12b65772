"""Pruning removes what is left over, and only that."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tilewise.store.database import Database
from tilewise.store.sweep import YOUNG_S, Pruned, sweep

LARGE = 40_000


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Make a database with one value in a file."""
    made = Database(tmp_path / "part", readonly=False)
    made.put("key", b"x" * LARGE)
    return made


def orphan(database: Database, age_s: float) -> Path:
    """Leave a value's file without a record, as a killed writer does."""
    path = database.directory / "00" / "11" / f"{28 * '2'}.val"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"12345")
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_nothing_is_left_over(database: Database):
    """Values and the database itself stay."""
    assert (Pruned(), b"x" * LARGE) == (sweep(database), database.get("key"))


def test_old_value_stays(database: Database):
    """A file that a record names is kept, however old."""
    for path in database.directory.rglob("*.val"):
        os.utime(path, (0, 0))

    assert (Pruned(), b"x" * LARGE) == (sweep(database), database.get("key"))


def test_file_of_a_killed_writer_is_removed(database: Database):
    """An old file that no record names goes."""
    path = orphan(database, 2 * YOUNG_S)

    assert (Pruned(0, 1, 5), False) == (sweep(database), path.exists())


def test_file_of_a_living_writer_stays(database: Database):
    """A young file may get its record yet."""
    path = orphan(database, 0)

    assert (Pruned(), True) == (sweep(database), path.exists())


def test_broken_database_is_removed(database: Database):
    """What was kept aside is kept until the user prunes."""
    (database.directory / "cache.db.broken-7").write_bytes(b"123")

    assert Pruned(0, 1, 3) == sweep(database)


def test_other_files_stay(database: Database):
    """A file that is not of the store is not touched."""
    path = database.directory / "notes.txt"
    path.write_bytes(b"mine")
    os.utime(path, (0, 0))
    sweep(database)

    assert path.exists()


def test_missing_directory_is_nothing(tmp_path: Path):
    """Where there is no store there is nothing to prune."""
    assert Pruned() == sweep(Database(tmp_path / "none", readonly=False))
