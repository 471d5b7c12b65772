"""A directory that can't be written is read all the same."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.store.samples import python
from tilewise.store.disk import open_cache
from tilewise.store.readonly import Reader
from tilewise.store.records import Refused

LARGE = 40_000


def test_values_are_read(tmp_path: Path):
    """Values in the database and in files are read beside an open writer."""
    with open_cache(tmp_path, {}) as cache:
        cache.set("small", b"x")
        cache.set("large", b"y" * LARGE)
        reader = Reader(tmp_path)
        found = [reader.get(key) for key in ("small", "large", "none")]

    assert [b"x", b"y" * LARGE, None] == found


def test_keys_are_listed_in_order(tmp_path: Path):
    """Keys come in the order in which they were stored."""
    with open_cache(tmp_path, {}) as cache:
        for key in ("b", "a"):
            cache.set(key, b"x")

    assert ["b", "a"] == Reader(tmp_path).keys()


def test_missing_database_is_empty(tmp_path: Path):
    """A directory without a database has no keys and is not written."""
    assert ([], []) == (Reader(tmp_path).keys(), list(tmp_path.iterdir()))


def test_unfinished_database_is_empty(tmp_path: Path):
    """A database whose tables another process is just making has no keys."""
    sqlite3.connect(tmp_path / "cache.db").close()
    (tmp_path / "cache.db").touch()

    assert [] == Reader(tmp_path).keys()


def test_other_tables_are_an_error(tmp_path: Path):
    """A database of another program is said to be one."""
    link = sqlite3.connect(tmp_path / "cache.db")
    link.execute("CREATE TABLE Notes (text)")
    link.close()

    with pytest.raises(sqlite3.OperationalError, match="no such table: Cache"):
        Reader(tmp_path).keys()


def test_removed_file_is_a_miss(tmp_path: Path):
    """A value whose file went away since is not there."""
    with open_cache(tmp_path, {}) as cache:
        cache.set("key", b"y" * LARGE)
    for path in tmp_path.rglob("*.val"):
        path.unlink()

    assert None is Reader(tmp_path).get("key")


def test_pickled_value_is_refused(tmp_path: Path):
    """A pickle is not looked into here either."""
    with open_cache(tmp_path, {}) as cache:
        cache.set("key", b"x")
    link = sqlite3.connect(tmp_path / "cache.db")
    link.execute("UPDATE Cache SET mode = 4")
    link.commit()
    link.close()

    assert Refused("a pickled value is refused, unread") == Reader(tmp_path).get("key")


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_read_only_directory_is_read(shared: Path):
    """Where nothing can be written, not even sqlite's own files, values are read."""
    with open_cache(shared, {}) as cache:
        cache.set("key", b"x")
    for path in shared.iterdir():
        path.chmod(0o444)
    shared.chmod(0o555)
    code = (
        "import sys, pathlib; from tilewise.store.readonly import Reader\n"
        "print(Reader(pathlib.Path(sys.argv[1])).get('key'))"
    )

    assert "b'x'\n" == python(code, shared, unprivileged=True).stdout
