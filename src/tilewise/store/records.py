"""
Framed, checksummed records: what is read back is what was written, or a fault.

A frame is the magic, a schema number, the sizes of kind and payload, a SHA-256, the
kind and the payload. The checksum covers the head, the key under which the record is
kept, kind and payload. A frame that is not whole is a value, `Fault`, and never an
exception.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["SCHEMA", "Fault", "Refused", "decode", "encode", "frame", "unframe"]

MAGIC = b"TWR1"
SCHEMA = 1
"""The layout of what is stored; another number is a miss that says so."""
HEAD = struct.Struct("<4sIHQ")
HASHED = HEAD.size + 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """
    Why bytes are no record.

    `newer` marks those of a newer schema, which an older one may neither evict nor
    overwrite.
    """

    reason: str
    newer: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that stands in a database and was not looked into, and why."""

    reason: str


def checksum(head: bytes, key: str, body: bytes) -> bytes:
    """Return the SHA-256 of a record with its key and head."""
    name = key.encode("utf-8", "surrogatepass")
    hashed = hashlib.sha256(usedforsecurity=False)
    hashed.update(head + struct.pack("<Q", len(name)) + name)
    hashed.update(body)
    return hashed.digest()


def frame(kind: str, payload: bytes, key: str = "", schema: int = SCHEMA) -> bytes:
    """Put a payload behind its head; `key` binds it to where it is kept."""
    name = kind.encode()
    head = HEAD.pack(MAGIC, schema, len(name), len(payload))
    body = name + payload
    return head + checksum(head, key, body) + body


def unframe(kind: str, data: object, key: str = "") -> bytes | Fault:
    """Return the payload of a whole frame of a kind, or what is wrong with it."""
    if isinstance(data, Refused):
        return Fault(data.reason)
    if not isinstance(data, bytes):
        return Fault(f"a {type(data).__name__} stands where a record should")
    if not data:
        return Fault("the record is empty")
    if not data.startswith(MAGIC[: len(data)]):
        return Fault("this is no record of tilewise")
    if len(data) < HASHED:
        return Fault("the record is cut short")
    _, schema, name_size, size = HEAD.unpack_from(data)
    if schema != SCHEMA:
        age = "a newer" if schema > SCHEMA else "an older"
        reason = f"the record is of {age} schema, {schema} instead of {SCHEMA}"
        return Fault(reason, newer=schema > SCHEMA)
    body = data[HASHED:]
    if len(body) != name_size + size:
        short = len(body) < name_size + size
        return Fault(f"the record {'is cut short' if short else 'has bytes too many'}")
    if checksum(data[: HEAD.size], key, body) != data[HEAD.size : HASHED]:
        return Fault("the record's checksum does not fit its bytes")
    name = body[:name_size].decode(errors="replace")
    if name != kind:
        return Fault(f"the record is of kind {name!r} instead of {kind!r}")
    return body[name_size:]


def encode(kind: str, value: Any, key: str = "") -> bytes:
    """Write a frozen value as a framed MessagePack record; equal values alike."""
    import msgspec

    return frame(kind, msgspec.msgpack.encode(value), key)


def decode(kind: str, data: object, cls: type[T], key: str = "") -> T | Fault:
    """Read a framed record back into its frozen value."""
    import msgspec

    payload = unframe(kind, data, key)
    if isinstance(payload, Fault):
        return payload
    try:
        return msgspec.msgpack.decode(payload, type=cls)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Fault(f"the record does not read as {cls.__name__}: {error}")
