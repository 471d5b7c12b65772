"""
Framed, checksummed records: what is read back is what was written, or a fault.

A frame is the magic, a schema number, a kind, the SHA-256 of the payload, and the
payload; each part has a fixed length or stands behind its length. A frame that is
not whole is a value, `Fault`, and never an exception.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["SCHEMA", "Fault", "decode", "encode", "frame", "unframe"]

MAGIC = b"TWR1"
SCHEMA = 1
"""The layout of what is stored; another number is a miss that says so."""
HEAD = struct.Struct("<4sIHQ32s")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why bytes are no record."""

    reason: str


def frame(kind: str, payload: bytes, schema: int = SCHEMA) -> bytes:
    """Put a payload behind its head."""
    name = kind.encode()
    checksum = hashlib.sha256(name + payload, usedforsecurity=False).digest()
    return HEAD.pack(MAGIC, schema, len(name), len(payload), checksum) + name + payload


def unframe(kind: str, data: object) -> bytes | Fault:
    """Return the payload of a whole frame of a kind, or what is wrong with it."""
    if not isinstance(data, bytes):
        return Fault(f"a {type(data).__name__} stands where a record should")
    if len(data) < HEAD.size:
        return Fault("the record is empty" if not data else "the record is cut short")
    magic, schema, name_size, size, checksum = HEAD.unpack_from(data)
    if magic != MAGIC:
        return Fault("this is no record of tilewise")
    if schema != SCHEMA:
        age = "a newer" if schema > SCHEMA else "an older"
        return Fault(f"the record is of {age} schema, {schema} instead of {SCHEMA}")
    name = data[HEAD.size : HEAD.size + name_size]
    payload = data[HEAD.size + name_size :]
    if len(payload) != size:
        return Fault("the record is cut short or has more than it should")
    if hashlib.sha256(name + payload, usedforsecurity=False).digest() != checksum:
        return Fault("the record's checksum does not fit its bytes")
    if name != kind.encode():
        return Fault(f"the record is of kind {name.decode(errors='replace')!r}")
    return payload


def encode(kind: str, value: Any) -> bytes:
    """Write a frozen value as a framed MessagePack record; equal values alike."""
    import msgspec

    return frame(kind, msgspec.msgpack.encode(value))


def decode(kind: str, data: object, cls: type[T]) -> T | Fault:
    """Read a framed record back into its frozen value."""
    import msgspec

    payload = unframe(kind, data)
    if isinstance(payload, Fault):
        return payload
    try:
        return msgspec.msgpack.decode(payload, type=cls)
    except (msgspec.MsgspecError, ValueError) as error:
        return Fault(f"the record does not read as {cls.__name__}: {error}")
