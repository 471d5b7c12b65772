"""
Run a program over all threads: lowest program counter first, barriers as phases.

Threads of one program counter run together, so divergent branches meet again where
their paths join. Threads that exit leave the arrays. Every so many steps the highest
counter runs instead, so that a thread that spins can't starve the one it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.access import Accesses
from tilewise.device.emulator.barriers import Barriers
from tilewise.device.emulator.copies import Copies
from tilewise.device.emulator.lanes import Chunk, Lanes
from tilewise.device.emulator.matrices import Matrices
from tilewise.device.emulator.memory import Memory, Region
from tilewise.device.emulator.names import EXIT, WAIT
from tilewise.device.emulator.order import Order
from tilewise.device.emulator.program import Program, Step
from tilewise.device.emulator.races import BlockRaces
from tilewise.device.emulator.registers import Registers
from tilewise.device.emulator.report import Faults
from tilewise.device.emulator.shadow import SharedMemory
from tilewise.device.emulator.site import Site
from tilewise.device.emulator.syntax import PtxError
from tilewise.device.emulator.warps import Warps
from tilewise.device.seam import LaunchShape

__all__ = ["Options", "run"]

Array: TypeAlias = Any
_CHUNK_THREADS: Final = 16384
_CLOCK_BYTES: Final = 16 << 20
_FAIR: Final = 1009
#: A warp operation's threads wait here (+ block) for those that its mask names.
PARK: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Options:
    """
    Choose how a launch runs.

    `lazy`: cp.async lands at the wait, else at once. `global_races`: report races of
    global memory between blocks too. `max_steps`: blocks of code that one chunk may
    run before the launch is refused as endless.
    """

    lazy: bool = True
    global_races: bool = False
    max_steps: int = 1_000_000


def run(
    program: Program,
    shape: LaunchShape,
    params: bytes,
    memory: Memory,
    faults: Faults,
    options: Options,
) -> None:
    """Run a launch; `params` is the parameter block, `memory` the global memory."""
    blocks = max(1, _CHUNK_THREADS // shape.threads)
    if program.partial:
        blocks = max(1, min(blocks, _CLOCK_BYTES // (4 * shape.threads**2)))
    memory.races = None
    if options.global_races:
        memory.races = BlockRaces(len(memory.data), program.global_granule)
    with np.errstate(all="ignore"):
        for first in range(0, shape.blocks, blocks):
            count = min(blocks, shape.blocks - first)
            chunk = Chunk(shape, first, count)
            Machine(program, chunk, params, memory, faults, options).run()


class Machine(Accesses):
    """Run one chunk of blocks; the generated functions know it as `m`."""

    def __init__(
        self,
        program: Program,
        chunk: Chunk,
        params: bytes,
        memory: Memory,
        faults: Faults,
        options: Options,
    ) -> None:
        self.program, self.chunk, self.memory = program, chunk, memory
        self.faults, self.options = faults, options
        self.params = np.frombuffer(params.ljust(16, b"\0"), np.uint8)
        self._param_values: dict[tuple[int, str], Any] = {}
        order = Order(chunk.blocks, chunk.threads, partial=program.partial)
        self.shared = self._make_shared(order)
        self.local = self._make_local()
        self.copies = Copies(self.shared, memory, chunk.size, lazy=options.lazy)
        self.barriers = Barriers(chunk, self.shared, order, faults)
        self.warps = Warps(chunk, order, faults)
        self.matrices = Matrices(chunk, self.shared, faults)
        self.lanes = chunk.all
        self.registers = Registers(program.types)
        self.steps = 0

    def _make_shared(self, order: Order) -> SharedMemory:
        frame, dynamic = self.program.shared, self.chunk.shape.shared_bytes
        nbytes = -(-(frame.nbytes + dynamic) // 256) * 256
        shared = SharedMemory(
            nbytes, self.chunk.blocks, self.program.granule, order, self.faults
        )
        regions = [Region(start, end, name) for start, end, name in frame.regions]
        if frame.dynamic is not None and dynamic:
            regions.append(Region(frame.dynamic, frame.dynamic + dynamic, "dynamic"))
        shared.set_regions(regions)
        return shared

    def _make_local(self) -> Memory:
        frame = self.program.local
        size = frame.nbytes if frame.regions else 0
        local = Memory("local", max(size * self.chunk.size, 256), self.faults)
        local.stride, local.per = size, "index"
        local.set_regions(
            Region(start, end, name) for start, end, name in frame.regions
        )
        return local

    # The schedule.

    def run(self) -> None:
        """Run until all threads have exited."""
        pc: Any = 0
        while True:
            if isinstance(pc, int):
                if pc >= EXIT:
                    break
                if pc < WAIT:
                    pc = self._step_all(pc)
                    continue
                pc = np.full(len(self.lanes), pc, np.int32)
            else:
                pc = self._drop_exited(pc)
                if not len(self.lanes):
                    break
            pc = self._together(self._choose(pc))
        self.copies.end(self.chunk)

    @staticmethod
    def _together(pc: Array) -> Any:
        first = pc[0]
        return int(first) if (pc == first).all() else pc

    def _count(self, block: int) -> Step:
        self.steps += 1
        step = self.program.steps[block]
        if self.steps > self.options.max_steps:
            what = f"{self.program.name} ran {self.steps} blocks of code: endless loop?"
            raise PtxError(what, step.line)
        return step

    def _step_all(self, block: int) -> Any:
        step = self._count(block)
        target, results = step.run(self, self.lanes, *self.registers.read(step))
        self.registers.write(step, results)
        if isinstance(target, int):
            return target
        if isinstance(target, tuple):
            mask, yes, no = target
            if mask.all():
                return yes
            if not mask.any():
                return no
            return np.where(mask, np.int32(yes), np.int32(no))
        return self._together(np.broadcast_to(target, len(self.lanes)).copy())

    def _choose(self, pc: Array) -> Array:
        """Run the threads of one counter, or let go those that wait."""
        runnable = pc < WAIT
        if not runnable.any():
            return self._wake(pc)
        fair = self.steps % _FAIR == _FAIR - 1
        block = int(pc[runnable].max() if fair else pc.min())
        mask = pc == block
        step = self.program.steps[block]
        if step.mask is not None and not mask.all():
            ready = self._ready(mask, step)
            if not ready.all():
                chosen = np.flatnonzero(mask)
                pc = pc.copy()
                pc[chosen[~ready]] = PARK + block
                mask[chosen[~ready]] = False
                if not mask.any():
                    return pc
        return self._step_some(pc, block, np.flatnonzero(mask))

    def _step_some(self, pc: Array, block: int, chosen: Array) -> Array:
        step = self._count(block)
        lanes = self.lanes.take(chosen) if len(chosen) < len(self.lanes) else self.lanes
        whole = lanes is self.lanes
        values = self.registers.read(step, None if whole else chosen)
        target, results = step.run(self, lanes, *values)
        if whole:
            self.registers.write(step, results)
        else:
            self.registers.write_some(step, results, chosen, len(self.lanes))
        if isinstance(target, tuple):
            mask, yes, no = target
            target = np.where(mask, np.int32(yes), np.int32(no))
        out = pc.copy()
        out[chosen] = target
        return out

    def _ready(self, mask: Array, step: Step) -> Array:
        """Tell which threads of a warp operation have all that their mask names."""
        chosen = np.flatnonzero(mask)
        lanes = self.lanes.take(chosen)
        named: Any = step.mask
        if isinstance(named, str):
            named = self.registers.values_at(named, chosen)
        named = np.broadcast_to(named, len(chosen)).astype(np.int64)
        return self.warps.complete(lanes, named, self.lanes)

    def _wake(self, pc: Array) -> Array:
        """Let go parked warps that are as complete as they get, else barriers."""
        parked = (pc >= PARK) & (pc < EXIT)
        if not parked.any():
            return self.barriers.release(self.lanes.index, pc)
        for block in np.unique(pc[parked]) - PARK:
            mask = pc == PARK + block
            ready = np.flatnonzero(mask)[self._ready(mask, self.program.steps[block])]
            if len(ready):
                return self._step_some(pc, int(block), ready)
        block = int(pc[parked].min()) - PARK
        return self._step_some(pc, block, np.flatnonzero(pc == PARK + block))

    def _drop_exited(self, pc: Array) -> Array:
        stays = pc < EXIT
        if stays.all():
            return pc
        chosen = np.flatnonzero(stays)
        self.lanes = self.lanes.take(chosen)
        self.registers.keep(chosen)
        return pc[chosen]

    # What the generated functions call.

    def param(self, offset: int, dtype: np.dtype[Any]) -> Any:
        """Return a kernel parameter as a scalar."""
        key = (offset, dtype.str)
        if key not in self._param_values:
            raw = self.params[offset : offset + dtype.itemsize]
            self._param_values[key] = raw.view(dtype)[0]
        return self._param_values[key]

    def special(self, lanes: Lanes, name: str) -> Any:
        """Return a special register."""
        if name in ("clock", "clock_hi"):
            return np.uint32(self.steps if name == "clock" else 0)
        if name in ("clock64", "globaltimer"):
            return np.uint64(self.steps)
        if name.endswith("smem_size"):
            dynamic = self.chunk.shape.shared_bytes
            static = self.program.shared.nbytes if name[0] == "t" else 0
            return np.uint32(dynamic + static)
        return lanes.special(name)

    @staticmethod
    def indexed(index: Any, targets: tuple[int, ...]) -> Any:
        """Return the target of an indexed branch per thread."""
        table = np.array([*targets, EXIT], np.int32)
        return table[np.minimum(index, len(targets)).astype(np.int64)]

    def trap(self, lanes: Lanes, where: Any, site: Site) -> None:
        """Report that threads ran into trap."""
        hit = np.broadcast_to(True if where is None else where, len(lanes))
        if hit.any():
            place = self.chunk.place(int(lanes.index[hit][0]))
            self.faults.add("trap", site.instruction, int(hit.sum()), place)

    def check_register(
        self, lanes: Lanes, flag: Any, where: Any, name: str, site: Site
    ) -> None:
        """Report threads that read a register before they wrote it."""
        bad = ~flag if where is None else ~flag & where
        if np.any(bad):
            bad = np.broadcast_to(bad, len(lanes))
            place = self.chunk.place(int(lanes.index[bad][0]))
            count = int(bad.sum())
            self.faults.add(
                "uninitialised_register", site.instruction, count, place, other=name
            )
