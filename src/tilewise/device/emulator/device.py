"""Put the emulator behind the device seam: memory, modules, launches, events."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from tilewise.device.arch import optin_bytes
from tilewise.device.arrays import EmulatedArray
from tilewise.device.emulator.arena import BASE, Arena
from tilewise.device.emulator.launch import parameter_block
from tilewise.device.emulator.machine import Options, run
from tilewise.device.emulator.memory import Region
from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.program import Program, compile_entry
from tilewise.device.emulator.report import Faults, Report
from tilewise.device.emulator.syntax import Module, PtxError
from tilewise.device.forking import held_over_forks
from tilewise.device.seam import (
    Argument,
    Buffer,
    DeviceProperties,
    Event,
    LaunchShape,
    LoadedKernel,
    Stream,
    address_of,
)
from tilewise.errors import ArgumentError, EngineError

__all__ = [
    "EmulatedBuffer",
    "EmulatedDevice",
    "EmulatedEvent",
    "EmulatedKernel",
    "EmulatedModule",
    "EmulatedStream",
]

Array: TypeAlias = np.ndarray[Any, Any]
_MEMORY_BYTES: Final = 512 << 20


class EmulatedBuffer:
    """A region of the emulated device's memory."""

    def __init__(self, arena: Arena, region: Region) -> None:
        self.region = region
        self._finalizer = weakref.finalize(self, arena.retire, region)

    @property
    def address(self) -> int:
        """Return the device address, a multiple of 256."""
        return BASE + self.region.start

    @property
    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self.region.end - self.region.start

    def free(self) -> None:
        """Return the memory; what still uses it is reported as out of bounds."""
        self._finalizer()


@dataclass(frozen=True, slots=True)
class EmulatedEvent:
    """A point in time, in nanoseconds of the host's clock."""

    ns: int

    def synchronize(self) -> None:
        """Return at once: launches end before they return."""


class EmulatedStream:
    """A stream of a device that does all work at once."""

    _handles = itertools.count(1)

    def __init__(self) -> None:
        self._handle = next(self._handles)

    @property
    def handle(self) -> int:
        """Return a number that is unique in this process."""
        return self._handle

    def synchronize(self) -> None:
        """Return at once: launches end before they return."""


@dataclass(frozen=True, slots=True)
class EmulatedKernel:
    """A compiled entry; it keeps its module, whose memory it reads, alive."""

    program: Program
    params: Region
    module: EmulatedModule = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return the entry name."""
        return self.program.name


class EmulatedModule:
    """A parsed PTX module with its variables in device memory."""

    def __init__(self, arena: Arena, module: Module, lock: threading.RLock) -> None:
        self.arena, self.module, self._lock = arena, module, lock
        self.addresses: dict[str, int] = {}
        self._regions: list[Region] = []
        self._compiled: dict[str, tuple[Program, Region]] = {}
        for function in (None, *module.functions.values()):
            variables = module.variables if function is None else function.variables
            for variable in variables:
                if variable.space in ("global", "const"):
                    self._place(variable.name, variable.nbytes, variable.space)
        self._fill()
        self._finalizer = weakref.finalize(self, _free_all, arena, self._regions)

    def _place(self, name: str, nbytes: int, space: str) -> Region:
        region = self.arena.allocate(nbytes, name, read_only=space == "const")
        self._regions.append(region)
        self.addresses[name] = BASE + region.start
        return region

    def _fill(self) -> None:
        """Write initial values; CUDA sets variables without one to zero."""
        for variable in self.module.variables:
            if variable.space not in ("global", "const"):
                continue
            raw = bytearray(variable.initial.ljust(variable.nbytes, b"\0"))
            for at, symbol in variable.pointers:
                address = self.addresses.get(symbol.name, 0) + symbol.offset
                raw[at : at + 8] = address.to_bytes(8, "little")
            region = next(r for r in self._regions if r.name == variable.name)
            self.arena.write(region, np.frombuffer(bytes(raw), np.uint8))

    @property
    def entries(self) -> tuple[str, ...]:
        """List the entry names."""
        return self.module.entries

    def kernel(self, name: str) -> EmulatedKernel:
        """Compile an entry; PtxError says what is not supported, with its line."""
        with self._lock:
            if name not in self._compiled:
                self._compiled[name] = self._compile(name)
            return EmulatedKernel(*self._compiled[name], self)

    def _compile(self, name: str) -> tuple[Program, Region]:
        function = self.module.functions.get(name)
        if function is None or not function.entry:
            known = ", ".join(self.entries) or "none"
            raise EngineError(f"no entry {name!r} in this module; it has: {known}")
        nbytes = 16 + sum(p.nbytes + p.align for p in function.params)
        params = self._place(f"parameters of {name}", nbytes, "const")
        places = {**self.addresses, "params": BASE + params.start}
        return compile_entry(self.module, name, places), params


def _free_all(arena: Arena, regions: list[Region]) -> None:
    for region in regions:
        arena.retire(region)


class EmulatedDevice:
    """
    A CUDA device in NumPy that checks what it runs.

    With `check="raise"` a launch with findings is an EngineError that prints them;
    with "collect" they are added to `reports`. `options` are those of the next launch
    and may be set at any time.
    """

    def __init__(
        self,
        compute_capability: tuple[int, int] = (9, 0),
        *,
        memory_bytes: int = _MEMORY_BYTES,
        check: Literal["raise", "collect"] = "raise",
    ) -> None:
        self.arena = Arena(-(-memory_bytes // 256) * 256)
        self.check, self.options = check, Options()
        self._lock = held_over_forks()
        self.reports: list[Report] = []
        self._properties = DeviceProperties(
            name="tilewise emulated device",
            compute_capability=compute_capability,
            sm_count=4,
            warp_size=32,
            max_threads_per_block=1024,
            shared_bytes_per_block=48 << 10,
            shared_bytes_optin=optin_bytes(compute_capability),
            registers_per_block=65536,
            l2_bytes=4 << 20,
            memory_bytes=len(self.arena.data),
            image="ptx",
            emulated=True,
        )

    @property
    def properties(self) -> DeviceProperties:
        """Describe the device: small, and marked as emulated."""
        return self._properties

    def allocate(self, nbytes: int, name: str = "buffer") -> EmulatedBuffer:
        """Return uninitialised memory; reports call it by its name."""
        if nbytes < 0:
            raise ArgumentError(f"nbytes={nbytes} is negative")
        with self._lock:
            return EmulatedBuffer(self.arena, self.arena.allocate(nbytes, name))

    def array(
        self,
        buffer: Buffer,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> EmulatedArray:
        """Return the emulated array over a buffer."""
        steps = None if strides is None else tuple(strides)
        return EmulatedArray(self, buffer, tuple(shape), np.dtype(dtype), steps, offset)

    def copy_in(
        self, target: Argument, source: Array, stream: Stream | None = None
    ) -> None:
        """Copy a C-contiguous host array into the start of a buffer or array."""
        raw = _raw(source)
        region, at = self._region(target, len(raw))
        self.arena.write(region, raw, at)

    def copy_out(
        self, target: Array, source: Argument, stream: Stream | None = None
    ) -> None:
        """Copy from the start of a buffer or array into a C-contiguous host array."""
        raw = _raw(target)
        region, at = self._region(source, len(raw))
        raw[:] = self.arena.bytes_of(region)[at : at + len(raw)]

    def unwritten_bytes(self, target: Argument) -> int:
        """
        Count the bytes of a buffer or array that neither host nor kernel wrote.

        An output that was allocated and not copied in shows what a kernel left out.
        """
        region, at = self._region(target, 0)
        stop = region.start + at + getattr(target, "nbytes", region.end - region.start)
        if region.initialised:
            return 0
        return int((self.arena.written[region.start + at : stop] == 0).sum())

    def bytes_at(self, address: int, nbytes: int) -> Array:
        """Return a view of device memory; EngineError where none is allocated."""
        region = self.arena.region_at(address - BASE)
        if region is None or address - BASE + nbytes > region.end:
            raise EngineError(f"no {nbytes} bytes are allocated at {address:#x}")
        start = address - BASE
        return self.arena.data[start : start + nbytes]

    def mark_written(self, array: EmulatedArray) -> None:
        """Remember that the host wrote all elements of a strided array."""
        start = array.buffer.address - BASE
        marks = self.arena.written[start : start + array.buffer.nbytes]
        shape, strides = (*array.shape, array.dtype.itemsize), (*array.strides, 1)
        np.ndarray(shape, np.uint8, marks, array.offset, strides)[...] = 1

    def _region(self, target: Argument, nbytes: int) -> tuple[Region, int]:
        address = address_of(target)
        if address is None:
            kind = type(target).__name__
            raise ArgumentError(f"{kind} is no buffer and no device array")
        region = self.arena.region_at(address - BASE)
        if region is None and nbytes == 0:
            return Region(0, 0, ""), 0
        if region is None or address - BASE + nbytes > region.end:
            raise EngineError(f"no {nbytes} bytes are allocated at {address:#x}")
        return region, address - BASE - region.start

    def load(self, image: bytes | str) -> EmulatedModule:
        """Parse PTX text and place its variables."""
        if isinstance(image, bytes):
            if image[:4] == b"\x7fELF":
                raise EngineError("the emulated device runs PTX, not machine code")
            try:
                image = image.rstrip(b"\0").decode()
            except UnicodeDecodeError as error:
                raise PtxError(f"the image is no PTX text: {error}") from None
        module = parse(image)
        with self._lock:
            return EmulatedModule(self.arena, module, self._lock)

    def launch(
        self,
        kernel: LoadedKernel,
        shape: LaunchShape,
        args: Sequence[Argument],
        stream: Stream | None = None,
    ) -> None:
        """Run a kernel to its end, with all checks."""
        if not isinstance(kernel, EmulatedKernel):
            raise ArgumentError("this kernel was not loaded on the emulated device")
        most = self._properties.shared_bytes_optin
        used = shape.shared_bytes + sum(
            end - start for start, end, _ in kernel.program.shared.regions
        )
        if used > most:
            raise EngineError(f"{kernel.name} needs {used} shared bytes of {most}")
        block = parameter_block(kernel.program, args, address_of)
        with self._lock:
            found = self._run(kernel, shape, block)
        if found and self.check == "raise":
            texts = "\n".join(str(report) for report in found)
            raise EngineError(f"{kernel.name}: {len(found)} findings\n{texts}")
        self.reports.extend(found)

    def _run(
        self, kernel: EmulatedKernel, shape: LaunchShape, block: bytes
    ) -> tuple[Report, ...]:
        self.arena.settle()
        self.arena.write(kernel.params, np.frombuffer(block, np.uint8))
        kernel.params.initialised = True
        faults = Faults(kernel.name)
        self.arena.faults = faults
        run(kernel.program, shape, block, self.arena, faults, self.options)
        return faults.reports

    def stream(self) -> EmulatedStream:
        """Make a stream."""
        return EmulatedStream()

    def record(self, stream: Stream | None = None) -> EmulatedEvent:
        """Record the host's clock."""
        return EmulatedEvent(time.perf_counter_ns())

    def elapsed_us(self, start: Event, end: Event) -> float:
        """Return host time, which says nothing about any hardware."""
        if not isinstance(start, EmulatedEvent) or not isinstance(end, EmulatedEvent):
            raise ArgumentError("these events are not of the emulated device")
        return (end.ns - start.ns) / 1e3

    def synchronize(self) -> None:
        """Return at once: launches end before they return."""


def _raw(array: Array) -> Array:
    if not array.flags.c_contiguous:
        raise ArgumentError("the host array is not C-contiguous")
    return array.reshape(-1).view(np.uint8)
