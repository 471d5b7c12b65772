"""The store is one writable layer above bundles; it never makes a call fail."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.samples import KEY, artifact, decision, python, table, told
from tilewise.errors import StoreWarning
from tilewise.model.decision import MeasurementRow
from tilewise.settings import Settings
from tilewise.store import stack
from tilewise.store.records import Fault
from tilewise.store.stack import Absorbed, Store, open_store

ROW = MeasurementRow(KEY, (("m", 5),), decision().candidates[0])


@pytest.fixture
def store() -> Store:
    """Open the store of the test's own directory."""
    return open_store()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Export a bundle with one artifact and one table."""
    made = Store(Settings(cache_dir=tmp_path / "elsewhere"))
    made.keep_artifact("shipped", artifact(7))
    made.keep_decisions(table(decision(5, "blas"), decision(100, "blas")))
    made.export(tmp_path / "made.bundle")
    made.close()
    return tmp_path / "made.bundle"


def below(bundle: Path) -> Store:
    """Open the own store with a bundle below it."""
    return Store(replace(stack.current(), bundle=bundle))


def test_own_code_and_decisions_come_back(store: Store):
    """What was kept is served."""
    store.keep_artifact("key", artifact())
    store.keep_decisions(table(decision()))

    assert (artifact(), table(decision())) == (
        store.artifact("key"),
        store.decisions(KEY),
    )


def test_kept_decisions_are_returned_merged(store: Store):
    """Who keeps a decision gets the whole table back."""
    store.keep_decisions(table(decision(5)))

    assert table(decision(100), decision(5)) == store.keep_decisions(
        table(decision(100))
    )


def test_bundle_serves_below(bundle: Path):
    """What the own layer does not have comes from the bundle."""
    store = below(bundle)

    assert artifact(7) == store.artifact("shipped")
    assert table(decision(5, "blas"), decision(100, "blas")) == store.decisions(KEY)


def test_own_decisions_stand_above_the_bundle(bundle: Path):
    """A region decided here is served from here, the others from the bundle."""
    store = below(bundle)
    store.keep_decisions(table(decision(5)))

    assert table(decision(5), decision(100, "blas")) == store.decisions(KEY)


def test_bundle_is_never_written(bundle: Path):
    """Keeping things does not change the bundle."""
    before = bundle.read_bytes()
    below(bundle).keep_artifact("other", artifact())

    assert before == bundle.read_bytes()


def test_native_code_of_a_bundle_is_loaded(tmp_path: Path):
    """A bundle that the user named may bring native code."""
    made = Store(Settings(cache_dir=tmp_path / "elsewhere"))
    made.keep_artifact("key", artifact(kind="object"))
    made.export(tmp_path / "made.bundle")
    made.close()

    assert artifact(kind="object") == below(tmp_path / "made.bundle").artifact("key")


def test_tables_of_all_layers_are_listed_once(bundle: Path):
    """A table that both layers have is one table."""
    store = below(bundle)
    store.keep_decisions(table(decision(5)))

    assert [store.decisions(KEY)] == store.tables()


def test_other_hardware_is_named(store: Store):
    """A miss can say for which hardware the table is decided."""
    store.keep_decisions(table(decision(), key=replace(KEY, fingerprint="gpu_there")))

    assert (None, ("gpu_there",)) == (store.decisions(KEY), store.elsewhere(KEY))


def test_readonly_store_writes_nothing(monkeypatch: pytest.MonkeyPatch, bundle: Path):
    """TILEWISE_READONLY=1 holds for code, decisions, measurements and bundles."""
    monkeypatch.setenv("TILEWISE_READONLY", "1")
    store = open_store()
    kept = (
        store.keep_artifact("key", artifact()),
        store.keep_decisions(table(decision())),
        store.add_rows([ROW]),
        store.absorb(bundle),
        store.prune(),
        store.clear(),
    )

    assert (False, None, 0, Absorbed(0, 0), stack.Pruned(), 0) == kept
    assert store.directory is not None
    assert False is store.directory.exists()


def test_rows_come_back(store: Store):
    """Measurements are kept beside the decisions."""
    assert (1, [ROW]) == (store.add_rows([ROW]), store.rows(KEY))


def test_export_is_the_same_when_repeated(store: Store, tmp_path: Path):
    """A store and its copy by export and import give the same bytes."""
    store.keep_artifact("b", artifact(2))
    store.keep_artifact("a", artifact(1))
    store.keep_decisions(table(decision()))
    paths = [tmp_path / name for name in ("first", "again", "copy")]
    copy = Store(Settings(cache_dir=tmp_path / "copied"))
    for path in paths[:2]:
        store.export(path)
    copy.absorb(paths[0])
    copy.export(paths[2])
    copy.close()

    assert 1 == len({path.read_bytes() for path in paths})


def test_absorbed_bundle_is_merged(store: Store, bundle: Path):
    """Import adds what is missing and keeps what was decided later."""
    own = decision(5, made_utc="2026-12-01T00:00:00Z")
    store.keep_decisions(table(own))
    done = store.absorb(bundle)

    assert (Absorbed(1, 1), table(own, decision(100, "blas"))) == (
        done,
        store.decisions(KEY),
    )


def test_bad_bundle_is_not_absorbed(store: Store, tmp_path: Path):
    """Import says what is wrong and changes nothing."""
    (tmp_path / "bad").write_bytes(b"")

    assert Fault("the record is empty") == store.absorb(tmp_path / "bad")


def test_clear_removes_everything(store: Store):
    """Nothing is left, and the count says how much there was."""
    store.keep_artifact("key", artifact())
    store.keep_decisions(table(decision()))

    assert (2, None, None) == (
        store.clear(),
        store.artifact("key"),
        store.decisions(KEY),
    )


def test_verify_looks_at_all_records(store: Store):
    """Bad code, decisions, measurements and callers' tables are all named."""
    store.own.database.put("artifact/a", b"")
    store.records.database.put("table/t", b"")
    store.records.database.put("row/r", b"")
    store.records.database.put("boxes/b", b"")
    with pytest.warns(StoreWarning, match="the record is empty"):
        found = [key for key, _ in store.verify()]

    assert ["a", "t", "r", "b"] == found


def test_size_is_that_of_the_files(store: Store):
    """The size counts databases, logs and values."""
    store.keep_artifact("key", artifact(100_000))
    assert store.directory is not None
    files = [path for path in store.directory.rglob("*") if path.is_file()]

    assert sum(path.stat().st_size for path in files) == store.size_bytes()


def test_same_settings_are_the_same_store():
    """A process has one store for a place."""
    assert open_store() is open_store()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TILEWISE_CACHE_DIR", "/other/place"),
        ("TILEWISE_CACHE_MAX_BYTES", "2000000"),
        ("TILEWISE_READONLY", "1"),
        ("TILEWISE_BUNDLE", "/some/bundle"),
    ],
)
def test_other_settings_are_another_store(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
):
    """A changed variable holds from the next look on."""
    before = open_store()
    monkeypatch.setenv(variable, value)

    assert before is not open_store()


@pytest.mark.skipif(os.name != "posix", reason="needs XDG directories")
def test_another_home_is_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The default place follows the user's directories."""
    monkeypatch.delenv("TILEWISE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    assert tmp_path / "xdg" / "tilewise" == open_store().directory


def test_few_stores_stay_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A process that sees many places does not keep them all."""
    for number in range(3 * stack.OPEN):
        monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / f"{number}"))
        open_store()

    assert stack.OPEN == len(stack.STORES)


@pytest.mark.skipif(os.name != "posix", reason="needs a place that can't be made")
def test_impossible_place_is_one_warning(monkeypatch: pytest.MonkeyPatch):
    """Code and decisions go unkept, and one warning for both says why."""
    monkeypatch.setenv("TILEWISE_CACHE_DIR", "/dev/null/store")
    store = open_store()
    with told() as said:
        store.keep_artifact("key", artifact())
        store.keep_decisions(table(decision()))
        found = (store.artifact("key"), store.decisions(KEY), store.tables())

    expected = "/dev/null/store: it can't be made: Not a directory"
    assert (None, None, []) == found
    assert [expected] == said


@pytest.mark.skipif(os.name != "posix", reason="needs the user list of POSIX")
def test_no_home_is_one_warning(monkeypatch: pytest.MonkeyPatch):
    """A process without any home works without a store."""
    for name in ("TILEWISE_CACHE_DIR", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with told() as said:
        store = open_store()
        found = (
            store.keep_artifact("key", artifact()),
            store.artifact("key"),
            store.keep_decisions(table(decision())),
            open_store().tables(),
        )

    assert (None, (False, None, None, []), 1) == (store.directory, found, len(said))


def test_bad_bundle_setting_is_one_warning(tmp_path: Path):
    """A bundle that is not there is a miss that is told once."""
    store = below(tmp_path / "none")
    with pytest.warns(StoreWarning, match="the bundle can't be read") as said:
        found = (store.artifact("key"), store.decisions(KEY), store.tables())

    assert ((None, None, []), 1) == (found, len(said))


def test_import_is_light():
    """Importing the store loads neither databases nor MessagePack."""
    code = (
        "import sys, tilewise.store.stack\n"
        "print({'diskcache', 'sqlite3', 'msgspec', 'platformdirs', 'numpy'}"
        " & set(sys.modules))"
    )

    assert "set()\n" == python(code).stdout


FIRST_OPEN = """
import os, sys, warnings
import diskcache, msgspec
from tests.store.samples import artifact, decision, table
from tilewise.store.stack import open_store
warnings.simplefilter("ignore")  # A write may take more than half a second here.
ready, go = os.pipe()
children = []
for number in range(32):
    pid = os.fork()
    if not pid:
        os.close(go)
        os.read(ready, 1)  # All begin when the parent closes its end.
        store = open_store()
        store.keep_artifact(f"{number}", artifact(50_000))
        store.keep_decisions(table(decision(2 ** number)))
        for database in store.databases:  # What is late goes on.
            database.worker.do(database.close_here, None)
        os._exit(0)
    children.append(pid)
os.close(go)
print({os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children})
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_many_processes_open_and_write_at_once(store: Store):
    """32 processes make the same store at the same moment and lose nothing."""
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r})\n{FIRST_OPEN}"
    done = python(code, TILEWISE_CACHE_DIR=str(store.directory))
    found = store.decisions(KEY)

    assert ("{0}\n", "") == (done.stdout, done.stderr)
    assert found is not None
    assert (32, 32) == (len(found.decisions), len(store.entries()))


def test_warnings_as_errors_leave_the_store_sound(store: Store):
    """Who makes warnings errors gets one, and the next call goes on."""
    store.own.database.put("artifact/key", b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StoreWarning, match="the record is empty"):
            store.artifact("key")

    assert (None, True) == (
        store.artifact("key"),
        store.keep_artifact("key", artifact()),
    )
