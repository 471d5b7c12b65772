"""diskcache stores bytes and str only, in private files, and runs no pickle."""

from __future__ import annotations

import errno
import os
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from diskcache import Cache

from tilewise.store.disk import PlainDisk, inode_of, is_broken, open_cache, set_aside
from tilewise.store.records import Refused

LARGE = 40_000
"""Values of this size (bytes) lie in files of their own."""


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    """Open a cache in a directory of its own."""
    opened = open_cache(tmp_path / "cache", {})
    yield opened
    opened.close()


class Bomb:
    """An object whose pickle writes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.write_bytes, (self.path, b"ran")


def plant(cache: Cache, **row: object) -> None:
    """Change a row as an attacker with write access would."""
    link = sqlite3.connect(Path(cache.directory) / "cache.db")
    for column, value in row.items():
        link.execute(f"UPDATE Cache SET {column} = ?", (value,))
    link.commit()
    link.close()


@pytest.mark.parametrize("value", [b"x", b"x" * LARGE, "y", "é" * LARGE])
def test_bytes_and_text_come_back(cache: Cache, value: object):
    """Small and large values are what was stored."""
    cache.set("key", value)

    assert value == cache.get("key")


@pytest.mark.parametrize("value", [1, 1.5, None, (1,), {"a": 1}, bytearray(b"x")])
def test_other_values_are_refused(cache: Cache, value: object):
    """What diskcache would pickle, and numbers, cannot be stored."""
    with pytest.raises(TypeError, match="is refused"):
        cache.set("key", value)


@pytest.mark.parametrize("key", [b"key", 1, 1.5, ("a", 1), None])
def test_other_keys_are_refused(cache: Cache, key: object):
    """Keys are text, never pickled."""
    with pytest.raises(TypeError, match="is refused"):
        cache.set(key, b"x")


@pytest.mark.parametrize("size", [1, LARGE])
def test_pickled_value_is_refused(tmp_path: Path, size: int):
    """A pickle that someone planted, in the database or a file, is not looked into."""
    bomb = tmp_path / "ran"
    with Cache(str(tmp_path / "cache")) as plain:
        plain.set("key", (Bomb(bomb), "x" * size))
    with open_cache(tmp_path / "cache", {}) as cache:
        found = cache.get("key")

    expected = Refused("a pickled value is refused, unread")
    assert (expected, False) == (found, bomb.exists())


def test_bomb_would_run(tmp_path: Path):
    """The pickle above runs code when diskcache itself reads it."""
    bomb = tmp_path / "ran"
    with Cache(str(tmp_path / "cache")) as plain:
        plain.set("key", Bomb(bomb))
        plain.get("key")

    assert bomb.exists()


def test_pickled_key_is_refused(tmp_path: Path):
    """A key that someone pickled is listed as no key."""
    with Cache(str(tmp_path / "cache")) as plain:
        plain.set(("tuple",), b"x")
    with open_cache(tmp_path / "cache", {}) as cache:
        assert [""] == list(cache)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "00/11/../../x.val"])
def test_other_file_is_not_read(cache: Cache, tmp_path: Path, name: str):
    """A row cannot point to a file outside the cache."""
    (tmp_path / "secret").write_bytes(b"secret")
    cache.set("key", b"x" * LARGE)
    plant(cache, filename=name)

    assert Refused(f"its value lies in {name!r}, which is refused") == cache.get("key")


def test_other_file_is_not_removed(cache: Cache, tmp_path: Path):
    """Deleting a row whose file was exchanged leaves that file alone."""
    (tmp_path / "secret").write_bytes(b"secret")
    cache.set("key", b"x" * LARGE)
    plant(cache, filename="../secret")
    cache.delete("key")

    assert (tmp_path / "secret").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_files_are_private(tmp_path: Path, umask: int):
    """Database, log and values are 0600 in directories 0700, whatever the umask."""
    before = os.umask(umask)
    try:
        with open_cache(tmp_path / "cache", {}) as cache:
            cache.set("key", b"x" * LARGE)
            found = {
                (path.is_dir(), oct(path.stat().st_mode & 0o777))
                for path in (tmp_path / "cache").rglob("*")
            }
    finally:
        os.umask(before)

    assert {(True, "0o700"), (False, "0o600")} == found


def test_full_disk_leaves_no_file(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    """A value that does not fit on the disk leaves nothing behind."""
    real = os.fdopen

    def full(*args: object):
        file = real(*args)  # type: ignore[call-overload]
        file.close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        cache.set("key", b"x" * LARGE)

    assert [] == list(Path(cache.directory).rglob("*.val"))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [(b"not a database" * 100, True), (b"", False)],
)
def test_garbage_is_a_broken_database(tmp_path: Path, damage: bytes, expected: bool):
    """Garbage is told from an empty file, which is a database without tables."""
    (tmp_path / "cache.db").write_bytes(damage)
    error: Exception = OSError()
    try:
        open_cache(tmp_path, {}).close()
    except sqlite3.DatabaseError as raised:
        error = raised

    assert expected == is_broken(error)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_failed_opening_leaves_nothing_open(tmp_path: Path):
    """A connection that came to nothing is closed, not left to the collector."""
    (tmp_path / "cache.db").write_bytes(b"not a database" * 100)
    with pytest.raises(sqlite3.DatabaseError) as raised:
        open_cache(tmp_path, {})
    open_files = {path.resolve() for path in Path("/proc/self/fd").iterdir()}

    assert raised.value.__traceback__ is not None  # It would hold the connection.
    assert tmp_path / "cache.db" not in open_files


def test_locked_database_is_not_broken(tmp_path: Path):
    """Another process's lock is no reason to put a database away."""
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY

    assert False is is_broken(error, opening=True)


def test_broken_database_is_kept(tmp_path: Path):
    """The bytes of a broken database and its log lie aside, under its number."""
    (tmp_path / "cache.db").write_bytes(b"broken")
    (tmp_path / "cache.db-wal").write_bytes(b"log")
    inode = inode_of(tmp_path / "cache.db")
    name = set_aside(tmp_path, inode)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert f"cache.db.broken-{inode}" == name
    assert {str(name): b"broken", f"{name}-wal": b"log"} == found


def test_successor_is_left_alone(tmp_path: Path):
    """Who comes second does not take away what the first began anew."""
    database = tmp_path / "cache.db"
    database.write_bytes(b"broken")
    inode = inode_of(database)
    set_aside(tmp_path, inode)
    database.write_bytes(b"new")
    (tmp_path / "cache.db-wal").write_bytes(b"log")
    (tmp_path / f"cache.db.broken-{inode}").rename(tmp_path / "elsewhere")

    assert (None, b"new") == (set_aside(tmp_path, inode), database.read_bytes())
    assert b"log" == (tmp_path / "cache.db-wal").read_bytes()


def test_killed_rescuer_is_replaced(tmp_path: Path):
    """A process that died between the two steps does not block the others."""
    database = tmp_path / "cache.db"
    database.write_bytes(b"broken")
    os.link(database, tmp_path / f"cache.db.broken-{inode_of(database)}")
    set_aside(tmp_path, inode_of(database))

    assert False is database.exists()


def test_plain_disk_reads_no_pickle_by_itself(tmp_path: Path):
    """The class that reads values has no way left to unpickle."""
    data = pickle.dumps("x")

    assert Refused("a pickled value is refused, unread") == PlainDisk(
        str(tmp_path)
    ).fetch(4, None, data, False)
