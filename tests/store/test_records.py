"""A record is read back as it was written, or it says what is wrong with it."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.samples import artifact, decision, table
from tilewise.model.decision import DecisionTable
from tilewise.model.variant import Artifact
from tilewise.store.records import (
    HEAD,
    SCHEMA,
    Fault,
    Refused,
    decode,
    encode,
    frame,
    unframe,
)

WHOLE = frame("kind", b"payload", "key")


def reason(data: object) -> str:
    """Return why data are no record of the kind and key above."""
    found = unframe("kind", data, "key")
    assert isinstance(found, Fault)
    return found.reason


def test_frame_comes_back():
    """The payload of a whole frame is what was put into it."""
    assert b"payload" == unframe("kind", WHOLE, "key")


def flipped(bit: int) -> bytes:
    """Return the frame with one bit changed."""
    data = bytearray(WHOLE)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def test_truncated_frame_says_so():
    """Whatever is missing at the end, the record is said to be cut short."""
    found = {reason(WHOLE[:size]) for size in range(1, len(WHOLE))}

    assert {"the record is cut short"} == found


def test_flipped_bit_is_a_fault():
    """No single bit of a frame can change unnoticed."""
    every = (flipped(bit) for bit in range(8 * len(WHOLE)))

    assert {Fault} == {type(unframe("kind", data, "key")) for data in every}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "the record is empty"),
        (b"PK\x03\x04" + 60 * b"z", "this is no record of tilewise"),
        (b"\x80\x04K\x01.", "this is no record of tilewise"),
        (WHOLE + b"!", "the record has bytes too many"),
        (12, "a int stands where a record should"),
        ("text", "a str stands where a record should"),
        (Refused("a pickle"), "a pickle"),
        (
            frame("kind", b"payload", "key", SCHEMA + 1),
            f"the record is of a newer schema, {SCHEMA + 1} instead of {SCHEMA}",
        ),
        (
            frame("kind", b"payload", "key", SCHEMA - 1),
            f"the record is of an older schema, {SCHEMA - 1} instead of {SCHEMA}",
        ),
        (
            frame("kind", b"payload", "other key"),
            "the record's checksum does not fit its bytes",
        ),
        (
            frame("other", b"payload", "key"),
            "the record is of kind 'other' instead of 'kind'",
        ),
    ],
    ids=[
        "empty",
        "foreign",
        "pickle",
        "longer",
        "number",
        "text",
        "refused",
        "newer",
        "older",
        "moved",
        "other kind",
    ],
)
def test_bad_frame_says_why(data: object, expected: str):
    """An emptied, foreign, older, newer or misplaced record is named as such."""
    assert expected == reason(data)


def test_sizes_are_part_of_the_checksum():
    """Moving the border between kind and payload is noticed."""
    moved = HEAD.pack(b"TWR1", SCHEMA, 5, 6) + WHOLE[HEAD.size :]
    expected = Fault("the record's checksum does not fit its bytes")

    assert expected == unframe("kindp", moved, "key")


def test_only_a_newer_schema_is_marked_newer():
    """Who reads an older record may replace it, who reads a newer one may not."""
    schemas = (SCHEMA - 1, SCHEMA + 1)
    found = [unframe("kind", frame("kind", b"", "", one)) for one in schemas]

    assert [False, True] == [isinstance(f, Fault) and f.newer for f in found]


def test_digest_is_not_for_security(monkeypatch: pytest.MonkeyPatch):
    """A host that bans digests by policy is told that security is not asked for."""
    asked = []
    real = hashlib.sha256

    def sha256(*args: bytes, usedforsecurity: bool = True):
        asked.append(usedforsecurity)
        return real(*args, usedforsecurity=usedforsecurity)

    monkeypatch.setattr(hashlib, "sha256", sha256)
    frame("kind", b"payload")

    assert [False] == asked


def test_layout_is_what_others_read():
    """Magic, schema and sizes stand in front, little-endian."""
    assert (b"TWR1", SCHEMA, 4, 7) == HEAD.unpack_from(WHOLE)


@pytest.mark.parametrize(
    ("value", "cls"),
    [
        (artifact(), Artifact),
        (table(decision(5), decision(0)), DecisionTable),
    ],
)
def test_values_come_back_equal(value: object, cls: type):
    """Nested frozen values keep every field, with its type."""
    assert repr(value) == repr(decode("kind", encode("kind", value, "key"), cls, "key"))


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes):
    """Random bytes are a fault, framed or not, and never an exception."""
    found = [decode("kind", d, DecisionTable) for d in (data, frame("kind", data))]

    assert [True, True] == [isinstance(one, Fault) for one in found]


def test_other_class_says_what_does_not_fit():
    """A record of another class names the field that does not read."""
    found = decode("kind", encode("kind", artifact()), DecisionTable)

    expected = "the record does not read as DecisionTable: "
    assert isinstance(found, Fault)
    assert expected == found.reason[: len(expected)]
