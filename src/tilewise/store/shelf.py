"""Frozen values of one class under a prefix of a database's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from tilewise.store.database import Database
from tilewise.store.records import Fault, decode, encode
from tilewise.store.warn import warn_once

__all__ = ["Shelf"]

T = TypeVar("T")


class Shelf(Generic[T]):
    """Framed records of one kind; a bad one is a miss, told once and removed."""

    def __init__(self, database: Database, kind: str, cls: type[T]) -> None:
        self.database, self.kind, self.cls = database, kind, cls

    def name(self, key: str) -> str:
        """Return the database's key."""
        return f"{self.kind}/{key}"

    def get(self, key: str) -> T | None:
        """Return the value of a key, or None."""
        return self.sound(key, self.database.get(self.name(key)))

    def peek(self, key: str) -> T | None:
        """Return the value of a key without marking it as used."""
        return self.sound(key, self.database.peek(self.name(key)))

    def put(self, key: str, value: T) -> bool:
        """Write a value whole; returns whether it is known to be kept."""
        name = self.name(key)
        return self.database.put(name, encode(self.kind, value, name))

    def add(self, values: Mapping[str, T]) -> int:
        """Write values whole where there are none yet; returns how many came."""
        named = {self.name(key): value for key, value in values.items()}
        return self.database.add(
            {name: encode(self.kind, value, name) for name, value in named.items()}
        )

    def change(self, key: str, update: Callable[[T | None], T]) -> T | None:
        """
        Read, change and write one key in one transaction.

        Returns the new value, or None where it is not known to be kept. A record
        that is bad counts as none; one of a newer schema is left as it is.
        """
        name = self.name(key)
        found: list[Fault] = []
        made: list[T] = []

        def work(data: object) -> bytes | None:
            old = None if data is None else decode(self.kind, data, self.cls, name)
            if isinstance(old, Fault):
                found.append(old)
                if old.newer:
                    return None
                old = None
            made.append(update(old))
            return encode(self.kind, made[-1], name)

        is_kept = self.database.change(name, work)
        for fault in found[-1:]:
            self.tell(key, fault)
        return made[-1] if is_kept else None

    def delete(self, key: str) -> bool:
        """Remove a key; returns whether it was there."""
        return self.database.delete(self.name(key))

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys with a prefix, sorted."""
        start = len(self.kind) + 1
        return [name[start:] for name in self.database.keys(self.name(prefix))]

    def items(self, prefix: str = "") -> Iterator[tuple[str, T]]:
        """Yield the sound records by key; bad ones are told and removed."""
        for key in self.keys(prefix):
            value = self.peek(key)
            if value is not None:
                yield key, value

    def faults(self) -> Iterator[tuple[str, Fault]]:
        """Yield the bad records by key; they are told and removed."""
        for key in self.keys():
            data = self.database.peek(self.name(key))
            value = self.decoded(key, data)
            if isinstance(value, Fault):
                self.sound(key, data)
                yield key, value

    def decoded(self, key: str, data: object) -> T | Fault:
        """Read a record as it stands in the database."""
        return decode(self.kind, data, self.cls, self.name(key))

    def sound(self, key: str, data: object) -> T | None:
        """Return the value of a whole record; a bad one is told and removed."""
        if data is None:
            return None
        value = self.decoded(key, data)
        if not isinstance(value, Fault):
            return value
        if not value.newer:
            self.database.delete(self.name(key), data)
        self.tell(key, value)
        return None

    def tell(self, key: str, fault: Fault) -> None:
        """Warn once that a record is bad."""
        warn_once(self.database.place, f"{self.kind} {key[:16]}: {fault.reason}")
