"""
State what a CUDA device does for tilewise, whichever device it is.

Two devices stand behind these protocols: `device/cuda.py` (a GPU, through cuda.core)
and `device/emulator/` (NumPy, chosen by TILEWISE_DEVICE=emulated). All code above
this file is the same for both. Sizes are bytes, times are microseconds, grids and
blocks are in CUDA's order (x, y, z).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from tilewise.errors import ArgumentError

__all__ = [
    "Argument",
    "Buffer",
    "Device",
    "DeviceProperties",
    "Event",
    "LaunchShape",
    "LoadedKernel",
    "LoadedModule",
    "Stream",
    "address_of",
    "launch_shape",
]

Dim3: TypeAlias = tuple[int, int, int]

#: What a kernel takes: a buffer, anything with `__cuda_array_interface__`, or a NumPy
#: scalar whose dtype is the parameter's type (`np.int64(n)`; bare numbers are refused).
Argument: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """
    Describe a device with the numbers that engines decide by.

    `image` is the form of code that `Device.load` takes: a GPU takes "cubin", the
    emulated device "ptx". Where `emulated` is true, elapsed times say nothing about
    any hardware and must never enter a decision.
    """

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    warp_size: int
    max_threads_per_block: int
    shared_bytes_per_block: int
    shared_bytes_optin: int
    registers_per_block: int
    l2_bytes: int
    memory_bytes: int
    image: Literal["cubin", "ptx"]
    emulated: bool


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Hold a launch's grid and block in (x, y, z) and its dynamic shared bytes."""

    grid: Dim3
    block: Dim3
    shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Count the threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Count the blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def launch_shape(
    grid: int | Sequence[int], block: int | Sequence[int], shared_bytes: int = 0
) -> LaunchShape:
    """
    Return the launch shape of numbers or of one to three sizes, (x, y, z).

    Raises ArgumentError for zero or negative sizes and for more than three of them;
    the limits (1024 threads, 2**31 - 1 and 65535 blocks) are CUDA's.
    """
    shape = LaunchShape(_dim3("grid", grid), _dim3("block", block), int(shared_bytes))
    if shape.threads > 1024 or shape.block[2] > 64:
        raise ArgumentError(f"block={shape.block} has more than 1024 threads or z > 64")
    if shape.grid[0] >= 1 << 31 or max(shape.grid[1:]) > 65535:
        raise ArgumentError(f"grid={shape.grid} is past (2**31 - 1, 65535, 65535)")
    if shape.shared_bytes < 0:
        raise ArgumentError(f"shared_bytes={shape.shared_bytes} is negative")
    return shape


def _dim3(name: str, sizes: int | Sequence[int]) -> Dim3:
    given = (sizes,) if isinstance(sizes, (int, np.integer)) else tuple(sizes)
    if not 1 <= len(given) <= 3 or any(int(size) < 1 for size in given):
        raise ArgumentError(f"{name}={sizes!r} is not one to three positive sizes")
    x, y, z = (*(int(size) for size in given), 1, 1)[:3]
    return x, y, z


def address_of(target: Argument) -> int | None:
    """Return the device address of a buffer or array; None for what is neither."""
    interface = getattr(target, "__cuda_array_interface__", None)
    if interface is not None:
        return int(interface["data"][0] or 0)
    address = getattr(target, "address", None)
    return address if isinstance(address, int) else None


class Buffer(Protocol):
    """Own device memory; `free` may be called twice, and collection frees too."""

    @property
    def address(self) -> int:
        """Return the device address, a multiple of 256."""

    @property
    def nbytes(self) -> int:
        """Return the size in bytes."""

    def free(self) -> None:
        """Return the memory to the device once the work that uses it is done."""


class Event(Protocol):
    """Mark a point in a stream."""

    def synchronize(self) -> None:
        """Wait until the work before the event is done."""


class Stream(Protocol):
    """Run work in the order in which it was given."""

    @property
    def handle(self) -> int:
        """Return the CUstream as an integer, 0 for the default stream."""

    def synchronize(self) -> None:
        """Wait for all work of this stream."""


class LoadedKernel(Protocol):
    """Name one entry of a loaded module."""

    @property
    def name(self) -> str:
        """Return the entry name as it stands in the image."""


class LoadedModule(Protocol):
    """Hold the code of one image on one device."""

    @property
    def entries(self) -> tuple[str, ...]:
        """List the entry names, or nothing where the device can't list them."""

    def kernel(self, name: str) -> LoadedKernel:
        """Return an entry; EngineError names the entries where there is none such."""


class Device(Protocol):
    """
    Allocate, copy, load, launch and time on one device.

    `stream=None` is the device's default stream. Copies return when the host memory
    may be reused or read; launches return at once on a GPU and after the work on the
    emulated device. Faults are EngineError, wrong arguments ArgumentError.
    """

    @property
    def properties(self) -> DeviceProperties:
        """Describe the device."""

    def allocate(self, nbytes: int) -> Buffer:
        """Return uninitialised memory; EngineError when there is not enough."""

    def array(
        self,
        buffer: Buffer,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> Any:
        """
        Return the device's own array type over a buffer.

        `strides` and `offset` are in bytes; None is C order.
        """

    def copy_in(
        self,
        target: Argument,
        source: np.ndarray[Any, Any],
        stream: Stream | None = None,
    ) -> None:
        """Copy a C-contiguous host array into the start of a buffer or array."""

    def copy_out(
        self,
        target: np.ndarray[Any, Any],
        source: Argument,
        stream: Stream | None = None,
    ) -> None:
        """Copy from the start of a buffer or array into a C-contiguous host array."""

    def load(self, image: bytes) -> LoadedModule:
        """Load an image of the form that `properties.image` names."""

    def launch(
        self,
        kernel: LoadedKernel,
        shape: LaunchShape,
        args: Sequence[Argument],
        stream: Stream | None = None,
    ) -> None:
        """Run a kernel; the number and sizes of the arguments are checked first."""

    def stream(self) -> Stream:
        """Make a stream."""

    def record(self, stream: Stream | None = None) -> Event:
        """Record a timed event."""

    def elapsed_us(self, start: Event, end: Event) -> float:
        """Wait for both events and return the time between them."""

    def synchronize(self) -> None:
        """Wait for all work of the device."""
