"""
One directory of bytes by key; whatever is wrong with it is a miss with one warning.

A caller waits at most `PATIENCE_S`. Reads go past the writer, through connections of
their own; a write that takes longer goes on without the caller.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewise.store.warn import warn_once
from tilewise.store.worker import Late, Worker

if TYPE_CHECKING:
    from diskcache import Cache

    from tilewise.store.readonly import Reader

__all__ = ["Database"]

PATIENCE_S = 0.5
"""How long a caller waits for another process or a slow disk (seconds)."""
RETRY_S = 5.0
"""How long a place that could not be opened is left alone (seconds)."""
READONLY = 8
"""sqlite's number for a database that may not be written."""
LATE = f"it was held for more than {PATIENCE_S} s by another process or a slow disk"

T = TypeVar("T")
ABANDONED: list[Any] = []
"""Connections that a fork copied while they worked: closing them could hurt the
parent's, so a child keeps them."""


class Database:
    """
    A diskcache directory, opened at its first use.

    With `readonly` nothing is ever written. Warnings name the directory above, so
    that what is wrong with it is told once. `options` are diskcache's settings.
    """

    def __init__(self, directory: Path, readonly: bool, **options: Any) -> None:
        self.directory, self.readonly, self.options = directory, readonly, options
        self.place = directory.parent
        self.worker = Worker(self.close_here)
        self.cache: Cache | None = None
        self.owner = self.inode = 0
        self.refusal: tuple[float, Exception] = (0.0, OSError())
        self.notes: deque[str] = deque()

    # What callers ask for.

    def get(self, key: str) -> Any:
        """
        Return what stands under a key, or None, and mark it as used some time.

        It is read without the writer, which takes 15 ms to open, and with it only
        where that fails: the writer mends what is broken.
        """
        if self.readonly or self.state() != "there":
            return self.peek(key)
        from tilewise.store.disk import FAULTS
        from tilewise.store.readonly import Reader

        try:
            found = Reader(self.directory).get(key)
        except FAULTS:
            done, found = self.attempt(lambda c: c.get(key), PATIENCE_S, False)
            return found if done else self.peek(key)
        if found is not None and self.options.get("eviction_policy") != "none":
            with suppress(Late):
                self.worker.do(lambda: self.work(lambda c: c.get(key)), 0.0, keep=True)
        return found

    def peek(self, key: str) -> Any:
        """Return what stands under a key without marking it as used."""
        return self.look(lambda reader: reader.get(key))

    def keys(self, prefix: str = "") -> list[str]:
        """Return all keys with a prefix, sorted."""
        found = self.look(lambda reader: reader.keys()) or []
        if "" in found:
            warn_once(self.place, "a pickled key is refused, unread")
        return sorted(key for key in found if key and key.startswith(prefix))

    def put(self, key: str, data: bytes) -> bool:
        """Write a value whole; returns whether it is known to be kept."""
        return bool(self.write(lambda cache: cache.set(key, data)))

    def add(self, values: Mapping[str, bytes]) -> int:
        """
        Write values whole where there are none yet, in one transaction.

        Returns how many are known to have come.
        """

        def work(cache: Cache) -> int:
            with cache.transact():
                return sum(cache.add(key, data) for key, data in values.items())

        return self.write(work) or 0 if values else 0

    def change(self, key: str, update: Callable[[Any], bytes | None]) -> bool:
        """
        Read, change and write one key in one transaction.

        `update` gets what stands there and returns what shall, or None to leave it.
        """

        def work(cache: Cache) -> bool:
            with cache.transact():
                data = update(cache.get(key))
                return data is not None and bool(cache.set(key, data))

        return bool(self.write(work))

    def delete(self, key: str, only: Any = None) -> bool:
        """Remove a key (where it still has the value `only`); says if it was there."""

        def work(cache: Cache) -> bool:
            with cache.transact():
                if only is not None and cache.get(key) != only:
                    return False
                return bool(cache.delete(key))

        return bool(self.write(work, makes=False))

    def clear(self) -> int:
        """Remove everything; returns the number of values."""
        return int(self.write(lambda cache: cache.clear(), False, False) or 0)

    def volume(self) -> int:
        """Return what the directory holds (bytes)."""
        return sum(size for _, size, _ in self.files())

    def files(self) -> list[tuple[str, int, float]]:
        """Return name, size (bytes) and time of change (s) of the files, sorted."""
        found = []
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):  # It was removed since.
                    stat = path.stat()
                    short = str(path.relative_to(self.directory))
                    found.append((short, stat.st_size, stat.st_mtime))
        return sorted(found)

    def stamp(self) -> tuple[int, ...]:
        """
        Return numbers that change when anyone writes; about 10 us, no lock.

        They are sizes and times of the database and its log.
        """
        found: list[int] = []
        for name in ("cache.db", "cache.db-wal"):
            try:
                stat = os.stat(f"{self.directory}/{name}")  # noqa: PTH116 - 3 us less
            except OSError:
                found += (0, 0, 0)
            else:
                found += (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return tuple(found)

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        self.worker.stop(PATIENCE_S)

    # How it is done.

    def look(self, work: Callable[[Reader], T]) -> T | None:
        """Read without the writer; None where that does not go."""
        if self.state() != "there":
            return None
        from tilewise.store.disk import FAULTS
        from tilewise.store.readonly import Reader

        try:
            return work(Reader(self.directory))
        except FAULTS as error:
            warn_once(self.place, f"it can't be read: {describe(error)}")
            return None

    def write(
        self,
        work: Callable[[Cache], T],
        is_bounded: bool = True,
        makes: bool = True,
    ) -> T | None:
        """
        Write through the open cache; None where that does not go.

        `is_bounded` gives up waiting after `PATIENCE_S`, and without `makes` nothing
        is done where there is no directory yet.
        """
        state = "barred" if self.readonly else self.state()
        if state == "barred" or (state == "missing" and not makes):
            return None
        return self.attempt(work, PATIENCE_S if is_bounded else None, True)[1]

    def attempt(
        self, work: Callable[[Cache], T], patience_s: float | None, keep: bool
    ) -> tuple[bool, T | None]:
        """Have work done by the thread; returns whether it was, and its result."""
        from tilewise.store.disk import FAULTS

        try:
            return True, self.worker.do(lambda: self.work(work), patience_s, keep)
        except Late:
            self.notes.append(LATE)
        except FAULTS as error:
            self.notes.append(describe(error))
        finally:
            while self.notes:
                warn_once(self.place, self.notes.popleft())
        return False, None

    def state(self) -> str:
        """Say whether the directory is there, missing, or barred to this user."""
        try:
            self.directory.stat()
        except (FileNotFoundError, NotADirectoryError):
            return "missing"
        except OSError as error:
            warn_once(self.place, f"it can't be read: {describe(error)}")
            return "barred"
        return "there"

    # What the thread does.

    def work(self, work: Callable[[Cache], T]) -> T:
        """Open, do, and once more from the beginning where the database is broken."""
        from tilewise.store.disk import is_broken, is_lost

        try:
            return work(self.opened())
        except Exception as error:
            if not is_broken(error, opening=self.cache is None):
                if is_lost(error):
                    self.close_here()
                raise
            self.rebuild(error)
        return work(self.opened())

    def opened(self) -> Cache:
        """Return the open cache; one that was moved, or a parent's, is left."""
        from tilewise.store.disk import inode_of, is_broken, open_cache

        database = self.directory / "cache.db"
        if self.cache is not None and self.owner != os.getpid():
            ABANDONED.append(self.cache)
            self.cache = None
        if self.cache is not None and inode_of(database) != self.inode:
            self.close_here()
        if self.cache is None:
            until, refusal = self.refusal
            if time.monotonic() < until:
                raise refusal
            try:
                self.cache = open_cache(self.directory, self.options)
            except Exception as error:
                if not is_broken(error, opening=True):
                    self.refusal = (time.monotonic() + RETRY_S, error)
                raise
            self.owner, self.inode = os.getpid(), inode_of(database)
        return self.cache

    def rebuild(self, error: Exception) -> None:
        """Keep a broken database aside, so that a new one can be begun."""
        from tilewise.store.disk import inode_of, set_aside

        inode = self.inode or inode_of(self.directory / "cache.db")
        self.close_here()
        kept = set_aside(self.directory, inode)
        if kept is None:  # Another process does it.
            time.sleep(0.05)
        else:
            name = f"{self.directory.name}/{kept}"
            self.notes.append(f"a broken database ({error}) is kept as {name}")

    def close_here(self) -> None:
        """Close the connection in the thread that has it."""
        cache, self.cache, self.inode = self.cache, None, 0
        if cache is not None:
            cache.close()


def describe(error: BaseException) -> str:
    """Say in words what went wrong, without the path that stands beside it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} (errno {error.errno})"
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == READONLY:
        return "it can't be written and is only read"
    return str(error) or f"another process holds it ({type(error).__name__})"
