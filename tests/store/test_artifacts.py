"""Compiled code is capped, checked and loaded only from a place to trust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.store.samples import artifact
from tilewise.errors import StoreWarning
from tilewise.store.artifacts import ArtifactStore

MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    """Make a store of 2 MiB."""
    return ArtifactStore(tmp_path / "store" / "artifacts", False, 2 * MIB)


def files(store: ArtifactStore) -> list[Path]:
    """Return the files of the values."""
    return sorted(store.database.directory.rglob("*.val"))


@pytest.mark.parametrize("size", [1, MIB])
def test_artifact_comes_back(store: ArtifactStore, size: int):
    """Small and large code is what was stored, with all its fields."""
    kept = store.put("key", artifact(size))

    assert (True, artifact(size)) == (kept, store.get("key"))


def test_empty_code_is_not_kept(store: ArtifactStore):
    """A build that made nothing is no hit later."""
    assert (False, None) == (store.put("key", artifact(0)), store.get("key"))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda data: data[:-1], "the record is cut short"),
        (lambda data: b"", "the record is empty"),
        (
            lambda data: data[:-1] + b"y",
            "the record's checksum does not fit its bytes",
        ),
        (lambda data: b"\x7fELF" + data, "this is no record of tilewise"),
    ],
    ids=["cut", "emptied", "changed", "foreign"],
)
def test_damaged_file_is_a_miss(store: ArtifactStore, damage, expected: str):
    """A file that was cut, emptied or changed is told once and can be built anew."""
    store.put("key", artifact(MIB))
    (path,) = files(store)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(StoreWarning, match=f"artifact key: {expected}$"):
        found = store.get("key")

    assert (None, None, True) == (found, store.get("key"), store.put("key", artifact()))


def test_cap_holds(store: ArtifactStore):
    """Storing more than the cap keeps the directory near it."""
    for number in range(12):
        store.put(f"{number}", artifact(MIB // 2))

    assert store.database.volume() <= 2 * MIB + MIB // 2


def test_least_recently_used_goes_first(store: ArtifactStore):
    """What is used stays, what is not goes."""
    store.database.options["cull_limit"] = 1
    for key in ("used", "idle", "third"):
        store.put(key, artifact(MIB // 2))
    store.get("used")
    store.put("fourth", artifact(MIB // 2))

    found = {key for key in ("used", "idle", "third", "fourth") if store.get(key)}
    assert {"used", "third", "fourth"} == found


def test_code_above_the_cap_is_not_kept(store: ArtifactStore):
    """One huge artifact does not push out all others."""
    store.put("key", artifact())
    with pytest.warns(StoreWarning, match="bytes of code are above the cap"):
        store.put("huge", artifact(3 * MIB))

    assert (artifact(), None) == (store.get("key"), store.get("huge"))


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_native_code_of_an_open_directory_is_not_loaded(store: ArtifactStore):
    """Where others can write, native code is a miss that says why."""
    store.put("key", artifact(kind="object"))
    store.database.directory.chmod(0o777)
    with pytest.warns(
        StoreWarning, match="native code is not loaded: other users can write it"
    ):
        assert None is store.get("key")


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_text_of_an_open_directory_is_read(store: ArtifactStore):
    """PTX is no native code of the host."""
    store.put("key", artifact(kind="ptx"))
    store.database.directory.chmod(0o777)

    assert artifact(kind="ptx") == store.get("key")


def test_evicted_artifact_is_gone(store: ArtifactStore):
    """What could not be used is removed with its reason."""
    store.put("key", artifact())
    with pytest.warns(StoreWarning, match="artifact key is evicted: no such symbol"):
        store.evict("key", "no such symbol")

    assert None is store.get("key")


def test_entries_say_what_is_kept(store: ArtifactStore):
    """The listing has sizes and comes with the most recently used first."""
    store.put("a", artifact(10))
    store.put("b", artifact(20))
    store.get("a")

    assert [("a", 10), ("b", 20)] == [(e.key, e.size_bytes) for e in store.entries()]


def test_listing_uses_nothing(store: ArtifactStore):
    """Listing does not make old code look used."""
    store.put("a", artifact(10))
    before = store.entries()
    list(store.items())

    assert before == store.entries()


def test_verify_removes_bad_records(store: ArtifactStore):
    """Verifying names what is bad and leaves what is good."""
    store.put("good", artifact(10))
    store.put("bad", artifact(MIB))
    files(store)[0].write_bytes(b"")
    with pytest.warns(StoreWarning, match="artifact bad: the record is empty"):
        found = [(key, fault.reason) for key, fault in store.verify()]

    assert [("bad", "the record is empty")] == found
    assert ["good"] == [key for key, _ in store.items()]
