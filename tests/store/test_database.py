"""Whatever is wrong with a directory, a caller gets a miss, one warning, and soon."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store.samples import is_root, python, told
from tilewise.store import database as module
from tilewise.store.database import PATIENCE_S, Database
from tilewise.store.disk import inode_of

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Make a database in a directory of its own."""
    return Database(tmp_path / "store" / "part", readonly=False)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the write lock of a database as another process would."""
    link = sqlite3.connect(directory / "cache.db", isolation_level=None)
    link.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        link.close()


def seconds(step: Callable[[], object]) -> float:
    """Return how long a step takes."""
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def test_value_comes_back(database: Database):
    """What was put is what is got."""
    database.put("key", b"value")

    assert (b"value", None) == (database.get("key"), database.get("other"))


def test_reading_makes_nothing(database: Database):
    """A miss leaves no directory behind."""
    database.get("key")

    assert False is database.place.exists()


def test_added_value_stays(database: Database):
    """Adding does not replace."""
    database.add({"key": b"first"})
    assert 1 == database.add({"key": b"then", "new": b"more"})
    assert b"first" == database.get("key")


def test_change_sees_what_is_there(database: Database):
    """A change gets the stored value and replaces it."""
    database.put("key", b"a")
    database.change("key", lambda old: old + b"b")

    assert b"ab" == database.get("key")


def test_change_may_leave_what_is_there(database: Database):
    """A change to None writes nothing."""
    database.put("key", b"a")

    assert (False, b"a") == (
        database.change("key", lambda old: None),
        database.get("key"),
    )


def test_change_is_one_transaction(database: Database):
    """Nobody writes between reading and writing."""
    database.put("key", b"a")

    def update(old: bytes) -> bytes:
        link = sqlite3.connect(database.directory / "cache.db", timeout=0)
        try:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                link.execute("BEGIN IMMEDIATE")
        finally:
            link.close()
        return old + b"b"

    assert (True, b"ab") == (database.change("key", update), database.get("key"))


def test_failed_change_is_undone(database: Database):
    """An error inside a change leaves the value and lets the next writer in."""
    database.put("key", b"a")
    with pytest.raises(ZeroDivisionError):
        database.change("key", lambda old: b"" if 1 // 0 else None)

    assert (True, b"a") == (database.put("other", b"b"), database.get("key"))


def test_delete_only_what_was_read(database: Database):
    """A bad value that was replaced since is not removed."""
    database.put("key", b"new")

    assert (False, True) == (
        database.delete("key", only=b"old"),
        database.delete("key", only=b"new"),
    )


def test_keys_with_a_prefix_are_sorted(database: Database):
    """Listing is by prefix, in order."""
    for key in ("b/2", "a/1", "b/1"):
        database.put(key, b"x")

    assert ["b/1", "b/2"] == database.keys("b/")


def test_clear_counts_what_it_removes(database: Database):
    """Clearing says how many values there were."""
    for key in ("a", "b"):
        database.put(key, b"x")

    assert (2, []) == (database.clear(), database.keys())


def test_removing_makes_nothing(database: Database):
    """Where there is no store there is nothing to remove, and none is made."""
    removed = (database.delete("key"), database.clear())

    assert (False, 0, False) == (*removed, database.place.exists())


def test_a_call_waits_half_a_second():
    """The bound is what the design says."""
    assert 0.5 == PATIENCE_S


def test_readonly_never_writes(database: Database):
    """A read-only database reads, and refuses quietly to write."""
    database.put("key", b"x")
    before = database.files()
    other = Database(database.directory, readonly=True)
    wrote = [
        other.put("key", b"y"), other.add({"new": b"y"}), other.delete("key"),
        other.clear(), other.change("key", lambda old: b"y"),
    ]  # fmt: skip

    assert not any(wrote)
    assert (b"x", before) == (other.get("key"), database.files())


def test_stamp_sees_another_writer(database: Database):
    """A process that lives long sees that another wrote."""
    database.put("key", b"x")
    stamps = [database.stamp()]
    other = Database(database.directory, readonly=False)
    other.put("key", b"y")
    stamps.append(database.stamp())

    assert stamps[0] != stamps[1]


def test_stamp_stays_without_writers(database: Database):
    """Reading changes no stamp."""
    database.put("key", b"x")
    stamp = database.stamp()
    database.get("key")

    assert stamp == database.stamp()


def test_broken_database_is_kept_and_rebuilt(database: Database):
    """Garbage where the database was: one warning, and a new one beside it."""
    database.directory.mkdir(parents=True)
    broken = database.directory / "cache.db"
    broken.write_bytes(b"garbage" * 1000)
    kept = f"cache.db.broken-{inode_of(broken)}"
    with told() as said:
        done = (database.put("key", b"x"), database.get("key"))

    reason = "a broken database (file is not a database) is kept as part/"
    assert [f"{database.place}: {reason}{kept}"] == said
    assert (True, b"x") == done
    assert b"garbage" * 1000 == (database.directory / kept).read_bytes()


def test_foreign_database_is_kept_and_rebuilt(database: Database):
    """A database with another program's tables is kept aside too."""
    database.directory.mkdir(parents=True)
    link = sqlite3.connect(database.directory / "cache.db")
    link.execute("CREATE TABLE Cache (other)")
    link.close()
    with told() as said:
        done = (database.put("key", b"x"), database.get("key"))

    assert ((True, b"x"), 1) == (done, len(said))


def test_database_that_breaks_in_use_is_rebuilt(database: Database):
    """Pages that go bad under an open database do not fail every later run."""
    for number in range(300):
        database.put(f"{number}", b"x" * 1000)
    database.close()
    path = database.directory / "cache.db"
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    with told() as said:
        found = [database.get(f"{number}") for number in range(300)]
        done = (database.put("key", b"y"), database.get("key"))

    assert ({None}, (True, b"y"), 1) == (set(found), done, len(said))


def test_removed_directory_is_made_again(database: Database):
    """A store that someone deleted under a living process begins anew."""
    database.put("key", b"x")
    for path in sorted(database.directory.rglob("*"), reverse=True):
        path.unlink()
    database.directory.rmdir()

    assert (None, True, b"y") == (
        database.get("key"),
        database.put("key", b"y"),
        database.get("key"),
    )


@pytest.mark.usefixtures("impatient")
def test_locked_database_still_reads(database: Database):
    """While another process writes, what is stored is read at once."""
    policy = {"eviction_policy": "least-recently-used"}
    lru = Database(database.directory, readonly=False, **policy)
    lru.put("key", b"x")
    found: list[object] = []
    with locked(database.directory), told() as said:
        took_s = seconds(lambda: found.append(lru.get("key")))

    assert ([b"x"], []) == (found, said)
    assert took_s < PATIENCE_S / 2


@pytest.mark.usefixtures("impatient")
def test_opening_a_locked_database_is_bounded(database: Database):
    """Opening by diskcache retries for 60 s; who writes waits half a second."""
    database.put("key", b"x")
    database.close()
    other = Database(database.directory, readonly=False)
    with locked(database.directory), told():
        took_s = seconds(lambda: other.put("key", b"y"))

    assert PATIENCE_S / 2 < took_s < 10 * PATIENCE_S


@pytest.mark.usefixtures("impatient")
def test_later_calls_do_not_wait_again(database: Database):
    """While the first is waited for, ten more calls do not wait half a second each."""
    database.put("key", b"x")
    database.close()
    with locked(database.directory), told():
        database.put("a", b"x")
        took_s = seconds(lambda: [database.put(f"{n}", b"x") for n in range(10)])

    assert took_s < 5 * PATIENCE_S


@pytest.mark.usefixtures("impatient")
def test_late_write_is_done_in_the_end(database: Database):
    """What could not be written in time, and what came after, is written then."""
    database.put("key", b"x")
    with locked(database.directory), told():
        kept = [database.put(key, b"y") for key in ("late", "later")]
    database.worker.do(int, None)
    found = [database.get(key) for key in ("late", "later")]

    assert ([False, False], [b"y", b"y"]) == (kept, found)


def test_full_disk_is_one_warning(database: Database, monkeypatch: pytest.MonkeyPatch):
    """A value that does not fit is not kept, and the rest is still read."""
    database.put("key", b"x")
    real = os.fdopen

    def full(*args: object):
        real(*args).close()  # type: ignore[call-overload]
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fdopen", full)
    with told() as said:
        kept = [database.put("large", b"y" * 40_000) for _ in range(2)]

    assert [f"{database.place}: No space left on device (errno 28)"] == said
    assert ([False, False], b"x") == (kept, database.get("key"))


def test_full_database_is_one_warning(database: Database):
    """The same holds when sqlite itself finds no space."""
    database.put("key", b"x")
    database.write(lambda cache: cache._sql("PRAGMA max_page_count = 1").fetchall())
    with told() as said:
        kept = [database.put("large", b"y" * 30_000) for _ in range(2)]

    assert [f"{database.place}: database or disk is full"] == said
    assert ([False, False], b"x") == (kept, database.get("key"))


def test_impossible_place_is_one_warning():
    """Where no directory can be made, nothing is kept and one warning says why."""
    place = "/dev/null/store" if os.name == "posix" else "Z:/nothing/store"
    parts = [Database(Path(place) / name, readonly=False) for name in ("a", "b")]
    with told() as said:
        kept = [part.put("key", b"x") or part.get("key") for part in parts]

    assert ([None, None], 1) == (kept, len(said))


@pytest.mark.parametrize(("retry_s", "expected"), [(0.0, True), (60.0, False)])
def test_refused_place_is_tried_again_after_a_while(
    database: Database, monkeypatch: pytest.MonkeyPatch, retry_s: float, expected: bool
):
    """A place that could not be opened is left alone for some seconds, not for ever."""
    monkeypatch.setattr(module, "RETRY_S", retry_s)
    database.place.mkdir()
    database.directory.write_bytes(b"in the way")
    with told():
        kept = [database.put("key", b"x")]
        database.directory.unlink()
        kept.append(database.put("key", b"x"))

    assert [False, expected] == kept


ANOTHER = """
import sys, warnings, pathlib
from tilewise.store import database as module
module.PATIENCE_S = 30.0  # A busy machine may take longer than usual to open it.
database = module.Database(pathlib.Path(sys.argv[1]) / "store" / "part", readonly=False)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(database.get("key"), database.put("key", b"y"), database.get("key"))
    print(*(str(one.message).partition(": ")[2] for one in caught), sep="|")
"""


@posix
def test_directory_of_another_user_is_a_miss(shared: Path):
    """A store that root made is a miss with one warning for others, not an error."""
    if not is_root():
        pytest.skip("needs root to become another user")
    with told():
        Database(shared / "store" / "part", readonly=False).put("key", b"x")
    done = python(ANOTHER, shared, unprivileged=True)

    expected = "None False None\nit can't be read: Permission denied (errno 13)\n"
    assert expected == done.stdout


@posix
def test_read_only_directory_is_read(shared: Path):
    """A directory that can't be written is read, and one warning says so."""
    part = Database(shared / "store" / "part", readonly=False)
    part.put("key", b"x")
    part.close()
    for path in part.files():
        (part.directory / path[0]).chmod(0o444)
    part.directory.chmod(0o555)
    part.place.chmod(0o755)
    done = python(ANOTHER, shared, unprivileged=True)

    expected = "b'x' False b'x'\nit can't be written and is only read\n"
    assert expected == done.stdout


@posix
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_child_of_a_fork_reads_and_writes(tmp_path: Path):
    """Parent and child go on with the same object and see each other's values."""
    code = """
import os, sys, pathlib
from tilewise.store.database import Database
database = Database(pathlib.Path(sys.argv[1]) / "part", readonly=False)
database.put("parent", b"p")
pid = os.fork()
if not pid:
    os._exit(10 * database.put("child", b"c") + (database.get("parent") == b"p"))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(status, database.get("child"), database.put("parent", b"q"))
"""
    done = python(code, tmp_path)

    assert ("11 b'c' True\n", "") == (done.stdout, done.stderr)
