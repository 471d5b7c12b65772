"""A bundle is one file, the same bytes when made again, whole or a fault."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.samples import KEY, artifact, decision, table
from tilewise.errors import StoreWarning
from tilewise.store.bundle import Bundle, BundleLayer, read_bundle, write_bundle
from tilewise.store.records import SCHEMA, Fault, encode, frame

OTHER = table(decision(), key=replace(KEY, kernel="spec-2"))
ITEMS = [("b", artifact(2)), ("a", artifact(1))]
TABLES = [OTHER, table(decision())]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a bundle."""
    return tmp_path / "made.bundle"


def test_contents_come_back(path: Path):
    """What was written is what is read."""
    made = write_bundle(path, ITEMS, TABLES)

    assert made == read_bundle(path)
    assert (dict(ITEMS), 2) == (dict(made.artifacts), len(made.tables))


def test_same_contents_are_same_bytes(path: Path):
    """The order in which things were found and the time do not matter."""
    write_bundle(path, ITEMS, TABLES)
    first = path.read_bytes()
    write_bundle(path, reversed(ITEMS), reversed(TABLES))

    assert first == path.read_bytes()


def test_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that fills up while writing leaves the old bundle, and nothing else."""
    write_bundle(path, ITEMS, TABLES)
    first = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_bundle(path, [], [])

    assert ([path], first) == (list(path.parent.iterdir()), path.read_bytes())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "the record is empty"),
        (encode("bundle", Bundle())[:-1], "the record is cut short"),
        (b"PK\x03\x04 a zip", "this is no record of tilewise"),
        (
            frame("bundle", b"", schema=SCHEMA + 1),
            f"the record is of a newer schema, {SCHEMA + 1} instead of {SCHEMA}",
        ),
        (
            encode("artifact", artifact()),
            "the record is of kind 'artifact' instead of 'bundle'",
        ),
    ],
    ids=["empty", "cut", "foreign", "newer", "other kind"],
)
def test_bad_bundle_says_why(path: Path, data: bytes, expected: str):
    """A damaged, foreign or newer file is named as such."""
    path.write_bytes(data)
    found = read_bundle(path)

    assert isinstance(found, Fault)
    assert expected == found.reason


def test_missing_bundle_says_so(path: Path):
    """A file that is not there is a fault too."""
    expected = Fault("the bundle can't be read: No such file or directory")

    assert expected == read_bundle(path)


def test_layer_serves_what_is_in_it(path: Path):
    """A layer finds artifacts and tables by their keys."""
    write_bundle(path, ITEMS, TABLES)
    layer = BundleLayer(path)

    assert (artifact(1), None) == (layer.artifact("a"), layer.artifact("c"))
    assert table(decision()) == layer.table(KEY)


def test_layer_is_read_once(path: Path):
    """A bundle that is replaced under a process does not change what it serves."""
    write_bundle(path, ITEMS, TABLES)
    layer = BundleLayer(path)
    layer.artifact("a")
    path.unlink()

    assert table(decision()) == layer.table(KEY)


def test_bad_layer_is_empty_with_one_warning(path: Path):
    """A damaged bundle is a miss that is told once, not at every look."""
    path.write_bytes(b"garbage")
    layer = BundleLayer(path)
    with pytest.warns(StoreWarning) as said:
        found = (layer.artifact("a"), layer.table(KEY), layer.artifact("b"))

    assert (None, None, None) == found
    assert [f"{path}: this is no record of tilewise"] == [str(w.message) for w in said]


def test_layer_is_not_read_before_it_is_asked(path: Path):
    """A bundle that nothing is looked for in costs nothing."""
    BundleLayer(path)
