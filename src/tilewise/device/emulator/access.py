"""
Reach memory from the generated functions: by state space, under a predicate.

Generic addresses are told apart by their windows (PTX ISA, "Generic Addressing").
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.atomics import atomic
from tilewise.device.emulator.copies import Copies
from tilewise.device.emulator.lanes import Lanes
from tilewise.device.emulator.layout import WINDOWS
from tilewise.device.emulator.memory import Memory
from tilewise.device.emulator.shadow import SharedMemory
from tilewise.device.emulator.site import Site

__all__ = ["Accesses"]

Array: TypeAlias = np.ndarray[Any, Any]
_SIZE: Final = np.uint64(1 << 32)
_SPACES: Final = ("global", "local", "shared")


class Accesses:
    """Loads, stores, atomics and copies of a running chunk."""

    memory: Memory
    shared: SharedMemory
    local: Memory
    copies: Copies

    def load_global(self, lanes: Lanes, address: Any, where: Any, site: Site) -> Any:
        """Load from global memory."""
        return self._load(self.memory, lanes, address, where, site)

    def load_shared(self, lanes: Lanes, address: Any, where: Any, site: Site) -> Any:
        """Load from shared memory."""
        return self._load(self.shared, lanes, address, where, site)

    def load_local(self, lanes: Lanes, address: Any, where: Any, site: Site) -> Any:
        """Load from the threads' own memory."""
        return self._load(self.local, lanes, address, where, site)

    def _load(
        self, memory: Memory, lanes: Lanes, address: Any, where: Any, site: Site
    ) -> Any:
        if where is None:
            return memory.load(lanes, address, site)
        chosen = np.flatnonzero(np.broadcast_to(where, len(lanes)))
        rows = (len(lanes), site.count) if site.count > 1 else (len(lanes),)
        out = np.zeros(rows, site.dtype)
        if len(chosen):
            picked = _at(address, chosen)
            out[chosen] = memory.load(lanes.take(chosen), picked, site)
        return out

    def load_generic(self, lanes: Lanes, address: Any, where: Any, site: Site) -> Any:
        """Load from whatever space each address lies in."""
        only = self._only_space(address)
        if only is not None:
            memory, base = self._memory(only)
            return self._load(memory, lanes, address - base, where, site)
        rows = (len(lanes), site.count) if site.count > 1 else (len(lanes),)
        out = np.zeros(rows, site.dtype)
        for space, chosen in self._parts(lanes, address, where):
            memory, base = self._memory(space)
            place = address[chosen] - base
            out[chosen] = memory.load(lanes.take(chosen), place, site)
        return out

    def store_global(
        self, lanes: Lanes, address: Any, values: Any, where: Any, site: Site
    ) -> None:
        """Store to global memory."""
        self._store(self.memory, lanes, address, values, where, site)

    def store_shared(
        self, lanes: Lanes, address: Any, values: Any, where: Any, site: Site
    ) -> None:
        """Store to shared memory."""
        self._store(self.shared, lanes, address, values, where, site)

    def store_local(
        self, lanes: Lanes, address: Any, values: Any, where: Any, site: Site
    ) -> None:
        """Store to the threads' own memory."""
        self._store(self.local, lanes, address, values, where, site)

    def _store(
        self,
        memory: Memory,
        lanes: Lanes,
        address: Any,
        values: tuple[Any, ...],
        where: Any,
        site: Site,
    ) -> None:
        if where is not None:
            chosen = np.flatnonzero(np.broadcast_to(where, len(lanes)))
            if not len(chosen):
                return
            values = tuple(_at(v, chosen) for v in values)
            lanes, address = lanes.take(chosen), _at(address, chosen)
        memory.store(lanes, address, values, site)

    def store_generic(
        self, lanes: Lanes, address: Any, values: Any, where: Any, site: Site
    ) -> None:
        """Store to whatever space each address lies in."""
        only = self._only_space(address)
        if only is not None:
            memory, base = self._memory(only)
            self._store(memory, lanes, address - base, values, where, site)
            return
        for space, chosen in self._parts(lanes, address, where):
            memory, base = self._memory(space)
            some = tuple(_at(v, chosen) for v in values)
            place = address[chosen] - base
            memory.store(lanes.take(chosen), place, some, site)

    def atomic(
        self, lanes: Lanes, address: Any, values: Any, where: Any, site: Site
    ) -> Array:
        """Update memory atomically and return what was there."""
        if site.space == "generic":
            parts = self._parts(lanes, np.broadcast_to(address, len(lanes)), where)
        else:
            running = np.broadcast_to(True if where is None else where, len(lanes))
            parts = [(site.space, np.flatnonzero(running))]
        out = np.zeros(len(lanes), site.dtype)
        for space, chosen in parts:
            if not len(chosen):
                continue
            memory, base = self._memory(space)
            if site.space != "generic":
                base = np.uint64(0)
            place = _at(address, chosen)
            place = place - base if base else place
            some = tuple(_at(v, chosen) for v in values)
            out[chosen] = atomic(memory, lanes.take(chosen), place, some, site)
        return out

    def copy_async(
        self,
        lanes: Lanes,
        target: Any,
        source: Any,
        length: Any,
        where: Any,
        site: Site,
    ) -> None:
        """Start an asynchronous copy from global to shared memory."""
        if where is not None:
            chosen = np.flatnonzero(np.broadcast_to(where, len(lanes)))
            if not len(chosen):
                return
            target, source = _at(target, chosen), _at(source, chosen)
            length = None if length is None else _at(length, chosen)
            lanes = lanes.take(chosen)
        self.copies.issue(lanes, target, source, length, site)

    def commit_async(self, lanes: Lanes) -> None:
        """Close a group of asynchronous copies."""
        self.copies.commit(lanes)

    def wait_async(self, lanes: Lanes, newest: int) -> None:
        """Wait for all groups but the newest few."""
        self.copies.wait(lanes, newest)

    # Generic addresses.

    def _memory(self, space: str) -> tuple[Memory, np.uint64]:
        memory = {"global": self.memory, "local": self.local, "shared": self.shared}
        return memory[space], np.uint64(WINDOWS.get(space, 0))

    @staticmethod
    def is_space(address: Any, space: str) -> Any:
        """Tell whether generic addresses lie in a state space."""
        return _space_of(address) == (_SPACES.index(space) if space in _SPACES else -1)

    @staticmethod
    def _only_space(address: Any) -> str | None:
        spaces = _space_of(address)
        first = spaces.flat[0]
        return _SPACES[first] if (spaces == first).all() else None

    @staticmethod
    def _parts(lanes: Lanes, address: Any, where: Any) -> list[tuple[str, Array]]:
        spaces = np.broadcast_to(_space_of(address), len(lanes))
        running = np.broadcast_to(True if where is None else where, len(lanes))
        found = [
            (name, np.flatnonzero(running & (spaces == at)))
            for at, name in enumerate(_SPACES)
        ]
        return [(name, chosen) for name, chosen in found if len(chosen)]


def _space_of(address: Any) -> Any:
    shared, local = np.uint64(WINDOWS["shared"]), np.uint64(WINDOWS["local"])
    in_shared = address - shared < _SIZE
    in_local = address - local < _SIZE
    return np.where(in_shared, 2, np.where(in_local, 1, 0))


def _at(value: Any, chosen: Array) -> Any:
    return value[chosen] if value.ndim else value
