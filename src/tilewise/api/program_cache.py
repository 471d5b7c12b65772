"""cuda.core's program cache over tilewise's checksummed store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from tilewise.build.keys import digest, toolchain_versions
from tilewise.errors import EngineError
from tilewise.model.variant import Artifact
from tilewise.store.stack import Store, open_store

__all__ = ["ProgramCache"]

TOOLCHAIN = ("nvidia-cuda-nvrtc", "nvidia-nvjitlink")
SCHEMA = 1
LABEL = "program cache"


class ProgramCache:
    """
    A cache for `Program.compile("cubin", cache=...)` of cuda.core.

    cuda.core's own key counts NVRTC's major and minor version alone, so keys stand
    under a namespace of the exact versions. Values are checksummed: a damaged one is
    a miss with one warning, and cuda.core compiles again. It is a
    `ProgramCacheResource` and a context manager.
    """

    def __init__(self) -> None:
        from cuda.core.utils import ProgramCacheResource

        ProgramCacheResource.register(ProgramCache)
        self._versions = toolchain_versions(TOOLCHAIN)

    @property
    def _store(self) -> Store:
        return open_store()

    def _name(self, key: bytes | str) -> str:
        """Return the store's key for cuda.core's."""
        raw = key.encode() if isinstance(key, str) else bytes(memoryview(key))
        return digest((("kind", LABEL), *self._versions, ("key", raw)), SCHEMA)

    def __getitem__(self, key: bytes | str) -> bytes:
        """Return the bytes of a key; KeyError where there are none."""
        found = self._store.artifact(self._name(key))
        if found is None or not found.code:
            raise KeyError(key)
        return found.code

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        """Keep bytes or an ObjectCode; raises EngineError for empty ones."""
        code = code_of(value)
        if not code:
            raise EngineError("an empty program is not kept: the compiler gave 0 bytes")
        made = Artifact("program", "", code, variant=LABEL, toolchain=self._versions)
        self._store.keep_artifact(self._name(key), made)

    def __delitem__(self, key: bytes | str) -> None:
        """Remove a key; KeyError where it is not there."""
        if not self._store.own.shelf.delete(self._name(key)):
            raise KeyError(key)

    def __len__(self) -> int:
        """Return the number of programs, those of other versions too."""
        return len(self._entries())

    def _entries(self) -> list[str]:
        return [entry.key for entry in self._store.entries() if entry.variant == LABEL]

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """Return the bytes of a key, or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def update(self, items: Any, /) -> None:
        """Keep all of a mapping or of pairs."""
        pairs: Iterable[tuple[bytes | str, Any]]
        pairs = items.items() if isinstance(items, Mapping) else items
        for key, value in pairs:
            self[key] = value

    def clear(self) -> None:
        """Remove all programs; other artifacts stay."""
        for key in self._entries():
            self._store.own.shelf.delete(key)

    def close(self) -> None:
        """Do nothing: the store belongs to the process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def code_of(value: Any) -> bytes:
    """Return the bytes of a program, of its file if it is a path's."""
    code = getattr(value, "code", value)
    if isinstance(code, str):
        return Path(code).read_bytes()
    return bytes(memoryview(code))  # bytes() alone makes zeros of a number.
