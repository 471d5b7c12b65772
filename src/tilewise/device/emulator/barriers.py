"""
Hold threads at barriers and let them go when all that are due have come.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar,
barrier". Threads of a block that wait while no thread can run are released together;
what was wrong about that is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tilewise.device.emulator.lanes import Chunk, Lanes
from tilewise.device.emulator.names import EXIT, WAIT
from tilewise.device.emulator.order import Order
from tilewise.device.emulator.report import Faults
from tilewise.device.emulator.shadow import SharedMemory
from tilewise.device.emulator.site import Site

__all__ = ["Barriers"]

Array: TypeAlias = Any


@dataclass(slots=True)
class _Waiting:
    """What each thread waits for; `site` is an index into the list of sites."""

    number: Array
    count: Array
    site: Array


@dataclass(slots=True)
class _Arrived:
    """How many threads came to a barrier without waiting, and what they knew."""

    count: int = 0
    rows: list[Array] = field(default_factory=list)


class Barriers:
    """The barriers of all blocks of a chunk."""

    def __init__(
        self, chunk: Chunk, shared: SharedMemory, order: Order, faults: Faults
    ) -> None:
        self.chunk, self.shared, self.order, self.faults = chunk, shared, order, faults
        size = chunk.size
        self.waiting = _Waiting(
            np.full(size, -1, np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.int32),
        )
        self.arrived: dict[tuple[int, int], _Arrived] = {}
        self.sites: list[Site] = []
        self.voted = False
        self.flags = np.zeros(size, bool)
        self.counts = np.zeros(size, np.uint32)
        self.sizes = np.zeros(size, np.uint32)

    def wait(
        self, lanes: Lanes, number: Any, threads: Any, where: Any, site: Site
    ) -> None:
        """Note that threads wait at a barrier; `threads` of None means the block."""
        chosen = lanes.index if where is None else lanes.index[_spread(where, lanes)]
        if where is not None:
            number, threads = _part(number, where), _part(threads, where)
        self.waiting.number[chosen] = number
        self.waiting.count[chosen] = 0 if threads is None else threads
        self.waiting.site[chosen] = self._site(site)

    def arrive(
        self, lanes: Lanes, number: Any, threads: Any, where: Any, site: Site
    ) -> None:
        """Note that threads came to a barrier without waiting."""
        mask = np.ones(len(lanes), bool) if where is None else _spread(where, lanes)
        numbers = np.broadcast_to(number, len(lanes))[mask]
        index = lanes.index[mask]
        keys = np.stack([index // self.chunk.threads, numbers])
        for key in np.unique(keys, axis=1).T:
            members = index[(keys == key[:, None]).all(axis=0)]
            arrived = self.arrived.setdefault((int(key[0]), int(key[1])), _Arrived())
            arrived.count += len(members)
            if self.order.partial:
                arrived.rows.append(self.order.speak(members))

    def vote(self, lanes: Lanes, flag: Any) -> None:
        """Note what threads bring to a barrier that reduces."""
        self.voted = True
        self.flags[lanes.index] = flag

    def result(self, lanes: Lanes, op: str) -> Array:
        """Return how many, or whether any or all, of those that met said yes."""
        counts = self.counts[lanes.index]
        sizes = self.sizes[lanes.index]
        return {"popc": counts, "or": counts > 0, "and": counts == sizes}[op]

    def _count(self, threads: Array) -> None:
        """Count the votes of threads of one block that are let go together."""
        self.counts[threads] = self.flags[threads].sum()
        self.sizes[threads] = len(threads)

    def _site(self, site: Site) -> int:
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)

    def release(self, index: Array, pc: Array) -> Array:
        """Return the counters after letting go whom the barriers let go."""
        stuck = pc >= WAIT
        numbers, sites = self.waiting.number[index], self.waiting.site[index]
        simple = (
            stuck.all()
            and (numbers == numbers[0]).all()
            and (sites == sites[0]).all()
            and not self.waiting.count[index].any()
            and len(index) == self.chunk.size
        )
        if simple:
            self.shared.barrier(None)
            if self.voted:
                for threads in index.reshape(self.chunk.blocks, -1):
                    self._count(threads)
            return pc - WAIT
        out = pc.copy()
        for block in np.unique(index[stuck] // self.chunk.threads):
            members = np.flatnonzero(index // self.chunk.threads == block)
            self._release_block(int(block), index, members, out)
        return out

    def _release_block(
        self, block: int, index: Array, members: Array, pc: Array
    ) -> None:
        waiting = members[(pc[members] >= WAIT) & (pc[members] < EXIT)]
        numbers = self.waiting.number[index[waiting]]
        ready = [
            (number, waiting[numbers == number])
            for number in np.unique(numbers)
            if self._complete(block, int(number), index, waiting[numbers == number])
        ]
        if not ready and len(waiting):
            self._report("barrier_deadlock", index, waiting)
            ready = [(n, waiting[numbers == n]) for n in np.unique(numbers)]
        for number, going in ready:
            self._go(block, int(number), index, going, members)
            pc[going] -= WAIT

    def _complete(self, block: int, number: int, index: Array, waiting: Array) -> bool:
        count = int(self.waiting.count[index[waiting]].max())
        arrived = self.arrived.get((block, number), _Arrived())
        return count == 0 or len(waiting) + arrived.count >= count

    def _go(
        self, block: int, number: int, index: Array, going: Array, members: Array
    ) -> None:
        threads = index[going]
        sites = self.waiting.site[threads]
        if (sites != sites[0]).any():
            self._report("barrier_divergence", index, going)
        counted = int(self.waiting.count[threads].max())
        present = len(going)
        if not counted and len(members) < self.chunk.threads:
            self._report("barrier_exited", index, going)
        elif not counted and present < len(members):
            self._report("barrier_divergence", index, going)
        self._count(threads)
        others = self.arrived.pop((block, number), _Arrived())
        if present == len(members) and not others.count:
            self.shared.barrier(np.array([block]))
        if self.order.partial:
            rows = [self.order.speak(threads), *others.rows]
            self.order.hear(threads, np.concatenate(rows))

    def _report(self, kind: str, index: Array, which: Array) -> None:
        threads = index[which]
        site = self.sites[int(self.waiting.site[threads[0]])]
        self.faults.add(
            kind, site.instruction, len(which), self.chunk.place(int(threads[0]))
        )


def _spread(where: Any, lanes: Lanes) -> Array:
    return np.broadcast_to(where, len(lanes))


def _part(value: Any, where: Any) -> Any:
    if value is None or np.ndim(value) == 0:
        return value
    return value[np.broadcast_to(where, len(value))]
