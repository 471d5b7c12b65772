"""A record that is bad is a miss, told once and removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewise.errors import StoreWarning
from tilewise.store.database import Database
from tilewise.store.records import SCHEMA, frame
from tilewise.store.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Word:
    """What these tests store."""

    text: str


Words = Shelf[Word]


@pytest.fixture
def words(tmp_path: Path) -> Words:
    """Make a shelf in a directory of its own."""
    return Shelf(Database(tmp_path / "part", readonly=False), "word", Word)


def spoil(words: Words, schema: int = SCHEMA + 1) -> str:
    """Store a record of another schema and return what is said about it."""
    words.database.put("word/key", frame("word", b"", "word/key", schema))
    age = "a newer" if schema > SCHEMA else "an older"
    what = f"the record is of {age} schema, {schema} instead of {SCHEMA}"
    return f"^{words.database.place}: word key: {what}$"


def test_value_comes_back(words: Words):
    """What was put is what is got."""
    words.put("key", Word("a"))

    assert Word("a") == words.get("key")


def test_kinds_do_not_meet(words: Words):
    """Equal keys of two kinds are two records."""
    words.put("key", Word("a"))

    assert None is Shelf(words.database, "other", Word).get("key")


def test_record_under_another_key_is_refused(words: Words):
    """A record that someone moved to another key is not what was asked for."""
    words.put("key", Word("a"))
    words.database.put("word/other", words.database.get("word/key"))

    with pytest.warns(StoreWarning, match="the record's checksum does not fit"):
        assert None is words.get("other")


def test_bad_record_is_told_and_removed(words: Words):
    """After one warning the key is free."""
    with pytest.warns(StoreWarning, match=spoil(words, SCHEMA - 1)):
        words.get("key")

    assert (None, []) == (words.get("key"), words.keys())


def test_newer_record_is_left(words: Words):
    """An older version does not remove what a newer one stored."""
    with pytest.warns(StoreWarning, match=spoil(words)):
        words.get("key")

    assert ["key"] == words.keys()


def test_change_replaces_a_bad_record(words: Words):
    """A bad record counts as none in a change."""
    with pytest.warns(StoreWarning, match=spoil(words, SCHEMA - 1)):
        words.change("key", lambda old: Word(f"after {old}"))

    assert Word("after None") == words.get("key")


def test_change_leaves_a_newer_record(words: Words):
    """What a newer version decided is not overwritten."""
    with pytest.warns(StoreWarning, match=spoil(words)):
        made = words.change("key", lambda old: Word("mine"))

    assert (None, ["key"]) == (made, words.keys())


def test_items_skip_bad_records(words: Words):
    """One bad record does not hide the others."""
    words.put("a", Word("a"))
    with pytest.warns(StoreWarning, match=spoil(words)):
        assert [("a", Word("a"))] == list(words.items())


def test_faults_are_listed(words: Words):
    """Verifying names each bad record with its reason."""
    words.put("a", Word("a"))
    with pytest.warns(StoreWarning, match=spoil(words)):
        found = [key for key, _ in words.faults()]

    assert ["key"] == found


def test_pickled_value_is_told_and_removed(words: Words, tmp_path: Path):
    """A pickle planted under a sound key is reported."""
    from diskcache import Cache

    with Cache(str(tmp_path / "part")) as plain:
        plain.set("word/key", {"any": "object"})
    with pytest.warns(StoreWarning, match="a pickled value is refused, unread"):
        assert None is words.get("key")
    assert [] == words.keys()
