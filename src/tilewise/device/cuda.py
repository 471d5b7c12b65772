"""
Put a GPU behind the device seam: cuda.core for code, CuPy's pool for memory.

As thin as it can be, since what stands here is not run where there is no GPU. Neither
library is imported before a device is made. Sources: the references of cuda.core 1.2
and CuPy 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tilewise.device.driver import driver_version, gpus
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

__all__ = ["CudaDevice"]

Array: TypeAlias = np.ndarray[Any, Any]
_DEFAULT_DYNAMIC_BYTES = 48 << 10


class CudaBuffer:
    """Memory of CuPy's pool."""

    def __init__(self, memory: Any, nbytes: int) -> None:
        self._memory, self._nbytes = memory, nbytes

    @property
    def address(self) -> int:
        """Return the device address."""
        if self._memory is None:
            raise EngineError("this buffer was freed")
        return int(self._memory.ptr)

    @property
    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._nbytes

    def free(self) -> None:
        """Give the memory back to the pool, which orders it by stream."""
        self._memory = None


@dataclass(frozen=True, slots=True)
class CudaStream:
    """A stream of cuda.core."""

    raw: Any

    @property
    def handle(self) -> int:
        """Return the CUstream as an integer."""
        return int(self.raw.handle)

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        self.raw.sync()


@dataclass(frozen=True, slots=True)
class CudaEvent:
    """A timed event of cuda.core."""

    raw: Any

    def synchronize(self) -> None:
        """Wait until the work before the event is done."""
        self.raw.sync()


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """An entry of a loaded CUBIN; how many arguments it has is asked once."""

    raw: Any
    entry: str
    arguments: int

    @property
    def name(self) -> str:
        """Return the entry name."""
        return self.entry


class CudaModule:
    """A loaded CUBIN; its entries can't be listed."""

    def __init__(self, code: Any) -> None:
        self._code = code

    @property
    def entries(self) -> tuple[str, ...]:
        """Return nothing: the driver does not list them."""
        return ()

    def kernel(self, name: str) -> CudaKernel:
        """Return an entry; EngineError carries the driver's message."""
        try:
            raw = self._code.get_kernel(name)
            return CudaKernel(raw, name, int(raw.num_arguments))
        except Exception as error:
            raise EngineError(f"no entry {name!r} in this module: {error}") from error


class CudaDevice:
    """
    A GPU; work for it is given with it as the current one, whatever the caller's is.

    Raises EngineError where it can't be used: no library for it, or a driver that is
    older than they need.
    """

    def __init__(self, index: int = 0) -> None:
        if not gpus():
            raise EngineError("there is no CUDA driver or no GPU on this machine")
        try:
            import cuda.core
            import cupy

            self._core, self._cupy, self._index = cuda.core, cupy, index
            self._configs: dict[LaunchShape, Any] = {}
            with self._current():
                self._device = cuda.core.Device(index)
                self._device.set_current()
                self._stream = CudaStream(self._device.default_stream)
        except Exception as error:
            raise EngineError(
                f"GPU {index} can't be used: {error}; the driver supports CUDA "
                f"{driver_version()}"
            ) from error

    def _current(self) -> Any:
        """Return the context in which this GPU is the thread's current one."""
        return self._cupy.cuda.Device(self._index)

    @cached_property
    def properties(self) -> DeviceProperties:
        """Describe the device as the driver does."""
        found = self._device.properties
        major, minor = self._device.compute_capability
        return DeviceProperties(
            name=self._device.name,
            compute_capability=(int(major), int(minor)),
            sm_count=found.multiprocessor_count,
            warp_size=found.warp_size,
            max_threads_per_block=found.max_threads_per_block,
            shared_bytes_per_block=found.max_shared_memory_per_block,
            shared_bytes_optin=found.max_shared_memory_per_block_optin,
            registers_per_block=found.max_registers_per_block,
            l2_bytes=found.l2_cache_size,
            memory_bytes=int(self._cupy.cuda.runtime.memGetInfo()[1]),
            image="cubin",
            emulated=False,
        )

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Take memory from CuPy's pool."""
        if nbytes < 0:
            raise ArgumentError(f"nbytes={nbytes} is negative")
        try:
            with self._current():
                return CudaBuffer(self._cupy.cuda.alloc(max(nbytes, 1)), nbytes)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise EngineError(f"out of device memory: {error}") from error

    def array(
        self,
        buffer: Buffer,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> Any:
        """Return a CuPy array over a buffer."""
        memory = self._cupy.cuda.UnownedMemory(buffer.address, buffer.nbytes, buffer)
        pointer = self._cupy.cuda.MemoryPointer(memory, offset)
        return self._cupy.ndarray(tuple(shape), dtype, pointer, strides)

    def copy_in(
        self, target: Argument, source: Array, stream: Stream | None = None
    ) -> None:
        """Copy a C-contiguous host array in and wait for it."""
        runtime = self._cupy.cuda.runtime
        host, address = _host(source), address_of(target)
        kind, chosen = runtime.memcpyHostToDevice, stream or self._stream
        runtime.memcpyAsync(address, host, source.nbytes, kind, chosen.handle)
        chosen.synchronize()

    def copy_out(
        self, target: Array, source: Argument, stream: Stream | None = None
    ) -> None:
        """Copy to a C-contiguous host array and wait for it."""
        runtime = self._cupy.cuda.runtime
        host, address = _host(target), address_of(source)
        kind, chosen = runtime.memcpyDeviceToHost, stream or self._stream
        runtime.memcpyAsync(host, address, target.nbytes, kind, chosen.handle)
        chosen.synchronize()

    def load(self, image: bytes) -> CudaModule:
        """Load a CUBIN; nothing is checked before its first entry is asked for."""
        if image[:4] != b"\x7fELF":
            raise EngineError("a GPU loads CUBIN images, and this is none")
        return CudaModule(self._core.ObjectCode.from_cubin(bytes(image)))

    def launch(
        self,
        kernel: LoadedKernel,
        shape: LaunchShape,
        args: Sequence[Argument],
        stream: Stream | None = None,
    ) -> None:
        """Launch and return at once."""
        if not isinstance(kernel, CudaKernel):
            raise ArgumentError("this kernel was not loaded on a GPU")
        if len(args) != kernel.arguments:
            raise ArgumentError(
                f"{kernel.name} takes {kernel.arguments} arguments, {len(args)} were "
                "given"
            )
        if shape.shared_bytes > _DEFAULT_DYNAMIC_BYTES:
            self._allow_shared(kernel, shape.shared_bytes)
        config = self._config(shape)
        values = [_argument(value, at) for at, value in enumerate(args)]
        target = self._raw_stream(stream)
        try:
            with self._current():
                self._core.launch(target, config, kernel.raw, *values)
        except Exception as error:
            raise EngineError(f"{kernel.name} can't be launched: {error}") from error

    def _config(self, shape: LaunchShape) -> Any:
        """Return a launch shape as cuda.core has it, made once."""
        known = self._configs.get(shape)
        if known is None:
            known = self._configs[shape] = self._core.LaunchConfig(
                grid=shape.grid, block=shape.block, shmem_size=shape.shared_bytes
            )
        return known

    def _allow_shared(self, kernel: CudaKernel, nbytes: int) -> None:
        from cuda.bindings import driver

        name = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        attribute = getattr(driver.CUfunction_attribute, name)
        handle, device = kernel.raw.handle, self._device.device_id
        (status,) = driver.cuKernelSetAttribute(attribute, nbytes, handle, device)
        if int(status):
            raise EngineError(f"{kernel.name} can't have {nbytes} shared bytes")

    def _raw_stream(self, stream: Stream | None) -> Any:
        if stream is None:
            return self._stream.raw
        if isinstance(stream, CudaStream):
            return stream.raw
        return self._core.Stream.from_handle(stream.handle)

    def stream(self) -> CudaStream:
        """Make a stream."""
        with self._current():
            return CudaStream(self._device.create_stream())

    def record(self, stream: Stream | None = None) -> CudaEvent:
        """Record a timed event."""
        options = self._core.EventOptions(timing_enabled=True)
        with self._current():
            return CudaEvent(self._raw_stream(stream).record(options=options))

    def elapsed_us(self, start: Event, end: Event) -> float:
        """Wait for both events and return the time between them."""
        if not isinstance(start, CudaEvent) or not isinstance(end, CudaEvent):
            raise ArgumentError("these events are not of a GPU")
        end.synchronize()
        return float(end.raw - start.raw) * 1e3

    def synchronize(self) -> None:
        """Wait for all work of the device."""
        with self._current():
            self._device.sync()


def _host(array: Array) -> int:
    if not array.flags.c_contiguous:
        raise ArgumentError("the host array is not C-contiguous")
    return int(array.ctypes.data)


def _argument(value: Argument, at: int) -> Any:
    if isinstance(value, np.generic):
        return value
    address = address_of(value)
    if address is None:
        raise ArgumentError(
            f"argument {at} is {type(value).__name__}: give a device array, a buffer "
            "or a NumPy scalar, for example np.int64(n)"
        )
    return address
