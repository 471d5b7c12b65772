"""Compiled code by key: capped in bytes, and loaded only from a place to trust."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewise.model.variant import Artifact
from tilewise.store.database import Database
from tilewise.store.place import untrusted
from tilewise.store.records import Fault
from tilewise.store.shelf import Shelf
from tilewise.store.warn import warn_once

__all__ = ["ArtifactStore", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact as `cache list` shows it; times are Unix seconds."""

    key: str
    kind: str
    variant: str
    arch: str
    verified: tuple[str, ...]
    size_bytes: int
    stored_s: float
    used_s: float


class ArtifactStore:
    """
    Artifacts in one directory, the least recently used going first.

    `max_bytes` caps values and database together.
    """

    def __init__(self, directory: Path, readonly: bool, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.database = Database(
            directory,
            readonly,
            size_limit=max_bytes,
            eviction_policy="least-recently-used",
        )
        self.shelf = Shelf(self.database, "artifact", Artifact)

    def get(self, key: str) -> Artifact | None:
        """Return an artifact; native code only from a directory to trust."""
        found = self.shelf.get(key)
        if found is not None and found.kind == "object":
            reason = untrusted(self.database.directory)
            if reason is not None:
                warn_once(self.database.place, f"native code is not loaded: {reason}")
                return None
        return found

    def put(self, key: str, artifact: Artifact) -> bool:
        """Keep an artifact; returns whether it is known to be kept."""
        if not artifact.code or self.database.readonly:
            return False
        size = len(artifact.code) + len(artifact.text)
        if size > self.max_bytes:
            cap = f"the cap of {self.max_bytes} bytes"
            warn_once(self.database.place, f"{size} bytes of code are above {cap}")
            return False
        return self.shelf.put(key, artifact)

    def evict(self, key: str, reason: str) -> bool:
        """Remove an artifact that could not be used, and say why, once."""
        was_there = self.shelf.delete(key)
        warn_once(self.database.place, f"artifact {key[:16]} is evicted: {reason}")
        return was_there

    def entries(self) -> list[Entry]:
        """Return what is kept, the most recently used first."""
        self.database.write(lambda cache: None, makes=False)  # After pending marks.
        times = self.database.look(lambda reader: reader.times()) or {}
        found = []
        for key, one in self.shelf.items():
            stored_s, used_s = times.get(self.shelf.name(key), (0.0, 0.0))
            size = len(one.code) + len(one.text)
            found.append(
                Entry(
                    key, one.kind, one.variant, one.arch, one.verified,
                    size, stored_s, used_s,
                )
            )  # fmt: skip
        return sorted(found, key=lambda entry: (-entry.used_s, entry.key))

    def items(self) -> Iterator[tuple[str, Artifact]]:
        """Yield the artifacts by key, without marking them as used."""
        return self.shelf.items()

    def verify(self) -> list[tuple[str, Fault]]:
        """Remove the bad records and return them with what is wrong."""
        return list(self.shelf.faults())

    def cull(self) -> int:
        """Remove the least recently used until the cap holds; returns how many."""
        culled = self.database.write(lambda cache: cache.cull(), False, False)
        return int(culled or 0)
