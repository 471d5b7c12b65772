"""One diskcache directory: records by key; every fault is a miss with one warning."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewise.store.readonly import ReadOnlyCache
from tilewise.store.records import Fault, decode, encode
from tilewise.store.warn import warn_once

if TYPE_CHECKING:
    from diskcache import Cache

__all__ = ["RecordCache"]

T = TypeVar("T")


class RecordCache:
    """
    Frozen values of one kind, framed and checksummed, under text keys.

    Opened at the first use; diskcache itself reopens after a fork. With `readonly`
    nothing is ever written.
    """

    def __init__(
        self, directory: Path, kind: str, cls: type[Any], readonly: bool, **options: Any
    ) -> None:
        self.directory, self.kind, self.cls = directory, kind, cls
        self.readonly, self.options = readonly, options
        self.cache: Cache | None = None
        self.tried = False
        self.lock = threading.Lock()

    def open(self) -> Cache | None:
        """Return the open cache, or None where it can't be written."""
        with self.lock:
            if not self.tried and not self.readonly:
                from tilewise.store.disk import opened

                self.tried = True
                self.cache = opened(self.directory, **self.options)
            return self.cache

    def guarded(self, work: Callable[[Cache], T], default: T) -> T:
        """Do something with the open cache; a fault is told once."""
        cache = self.open()
        if cache is None:
            return default
        from tilewise.store.disk import FAULTS

        try:
            return work(cache)
        except FAULTS as error:
            what = str(error) or type(error).__name__
            warn_once(self.directory, f"the store failed: {what}")
            return default

    def raw(self, key: str) -> object:
        """Return what stands under a key, unread."""
        if self.open() is None:
            return ReadOnlyCache(self.directory).get(key)
        return self.guarded(lambda cache: cache.get(key), None)

    def get(self, key: str) -> Any:
        """Return the value of a key; a bad record is evicted and told."""
        data = self.raw(key)
        if data is None:
            return None
        value = decode(self.kind, data, self.cls)
        if isinstance(value, Fault):
            warn_once(f"{self.directory} [{key[:24]}]", value.reason)
            self.delete(key)
            return None
        return value

    def put(self, key: str, value: Any) -> bool:
        """Write a value whole; returns whether it is kept."""
        data = encode(self.kind, value)
        return bool(self.guarded(lambda cache: cache.set(key, data), False))

    def change(self, key: str, update: Callable[[Any], T]) -> T | None:
        """Read, change and write one key inside one transaction."""

        def work(cache: Cache) -> T:
            with cache.transact(retry=False):
                found = cache.get(key)
                old = None if found is None else decode(self.kind, found, self.cls)
                new = update(None if isinstance(old, Fault) else old)
                cache.set(key, encode(self.kind, new))
                return new

        return self.guarded(work, None)

    def delete(self, key: str) -> bool:
        """Remove a key; returns whether it was there."""
        return bool(self.guarded(lambda cache: cache.delete(key), False))

    def keys(self) -> list[str]:
        """Return all keys, sorted."""
        return sorted(self.guarded(lambda cache: list(cache), []))

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the whole records with their keys; bad ones are evicted and told."""
        for key in self.keys():
            value = self.get(key)
            if value is not None:
                yield key, value

    def clear(self) -> int:
        """Remove everything; returns the number of records."""
        return int(self.guarded(lambda cache: cache.clear(), 0))

    def size_bytes(self) -> int:
        """Return what the directory holds (bytes)."""
        return int(self.guarded(lambda cache: cache.volume(), 0))

    def close(self) -> None:
        """Close the database."""
        with self.lock:
            if self.cache is not None:
                self.cache.close()
            self.cache, self.tried = None, False
