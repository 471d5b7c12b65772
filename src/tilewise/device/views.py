"""
Any library's device array as shape, strides, dtype and address.

What CuPy, numba and the emulated device call their arrays differs; their
`__cuda_array_interface__` (version 3) and DLPack do not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from tilewise.device.arrays import EmulatedArray, Flags
from tilewise.device.chosen import chosen_device
from tilewise.device.located import device_number
from tilewise.device.seam import Device
from tilewise.errors import ArgumentError, EngineError

__all__ = [
    "DeviceView",
    "StreamHandle",
    "c_strides",
    "caller_stream",
    "device_at",
    "device_copy",
    "device_empty",
    "device_of",
    "device_view",
    "gpu",
    "is_device_array",
    "on_host",
]

CUDA_KINDS = (2, 13)
"""DLPack's numbers for CUDA memory and for managed memory."""


@dataclass(frozen=True, slots=True)
class StreamHandle:
    """A stream that another library owns; `handle` is its CUstream."""

    handle: int

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        import cupy

        cupy.cuda.ExternalStream(self.handle).synchronize()


@dataclass(frozen=True, slots=True)
class DeviceView:
    """
    A view of device memory with NumPy's names for what it looks like.

    `strides` are in bytes; `owner` keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: Any = field(default=None, repr=False, compare=False)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        """Whether the elements are in C order, and on multiples of their size."""
        item = self.dtype.itemsize
        straight = c_strides(self.shape, item)
        ordered = self.size == 0 or all(
            have == want or extent == 1
            for have, want, extent in zip(
                self.strides, straight, self.shape, strict=True
            )
        )
        places = (self.address, *self.strides)
        return Flags(ordered, all(place % item == 0 for place in places))

    @property
    def T(self) -> DeviceView:
        """The view with its axes reversed."""
        return replace(self, shape=self.shape[::-1], strides=self.strides[::-1])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": self.strides,
            "version": 3,
            "stream": None,
        }

    def __getitem__(self, index: Any) -> DeviceView:
        """Add unit axes: an index of None, full slices and one Ellipsis."""
        marks = list(index) if isinstance(index, tuple) else [index]
        missing = self.ndim - sum(isinstance(mark, slice) for mark in marks)
        if Ellipsis in marks:
            at = marks.index(Ellipsis)
            marks[at : at + 1] = [slice(None)] * missing
        axes = iter(zip(self.shape, self.strides, strict=True))
        pairs = [(1, 0) if mark is None else next(axes) for mark in marks]
        pairs += list(axes)
        shape, strides = zip(*pairs, strict=True) if pairs else ((), ())
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def reshape(self, *shape: Any) -> DeviceView:
        """Return memory in C order under another shape."""
        sizes = shape[0] if len(shape) == 1 and not is_size(shape[0]) else shape
        if not self.flags.c_contiguous or math.prod(sizes) != self.size:
            raise ArgumentError(f"reshape({sizes}) of {self.shape} takes a copy")
        strides = c_strides(tuple(sizes), self.dtype.itemsize)
        return replace(self, shape=tuple(sizes), strides=strides)


def is_size(value: Any) -> bool:
    """Say whether a value is one size."""
    return isinstance(value, (int, np.integer))


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides of C order in bytes."""
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def is_device_array(value: Any) -> bool:
    """Say whether a value is an array in CUDA memory, by interface or DLPack."""
    if isinstance(value, (np.ndarray, np.generic)):
        return False
    if getattr(value, "__cuda_array_interface__", None) is not None:
        return True
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and int(where()[0]) in CUDA_KINDS


def device_view(array: Any) -> DeviceView:
    """
    Return any library's device array as a view, without copying.

    Raises ArgumentError for what is none, and for one with a mask.
    """
    if isinstance(array, DeviceView):
        return array
    face = getattr(array, "__cuda_array_interface__", None)
    if face is None:
        if not is_device_array(array):
            raise ArgumentError(f"a {type(array).__name__} is no device array")
        import cupy

        array = cupy.from_dlpack(array)
        face = array.__cuda_array_interface__
    if face.get("mask") is not None:
        raise ArgumentError("a device array with a mask is not taken")
    dtype, shape = np.dtype(face["typestr"]), tuple(face["shape"])
    strides = face.get("strides") or c_strides(shape, dtype.itemsize)
    return DeviceView(int(face["data"][0] or 0), shape, tuple(strides), dtype, array)


def device_of(array: Any) -> Device:
    """
    Return the device that an array lives on.

    Raises EngineError where there is no device that it could be on.
    """
    while isinstance(array, DeviceView):
        array = array.owner
    if isinstance(array, EmulatedArray):
        return array.device
    device = device_at(device_number(array))
    if device is None:
        raise EngineError("there is no CUDA device here")
    return device


def device_at(number: int) -> Device | None:
    """Return the chosen device, or another GPU than the first."""
    device = chosen_device()
    if not number or device is None or device.properties.emulated:
        return device
    return gpu(number)


@cache
def gpu(number: int) -> Device:
    """Return one of several GPUs."""
    from tilewise.device.cuda import CudaDevice

    return CudaDevice(number)


def caller_stream(array: Any) -> StreamHandle | None:
    """
    Return the stream that the caller's library works on now; None is the default.

    Libraries are asked only if the caller has imported them.
    """
    while isinstance(array, DeviceView):
        array = array.owner
    library = type(array).__module__.partition(".")[0]
    if library == "cupy":
        return handle(sys.modules["cupy"].cuda.get_current_stream().ptr)
    if library == "torch":
        current = sys.modules["torch"].cuda.current_stream(array.device)
        return handle(current.cuda_stream)
    face = getattr(array, "__cuda_array_interface__", None) or {}
    return handle(face.get("stream"))


def handle(number: int | None) -> StreamHandle | None:
    """Return a stream for a CUstream; 0, 1 and None mean the default stream."""
    return StreamHandle(int(number)) if number and int(number) > 1 else None


def device_empty(like: Any, shape: Sequence[int], dtype: Any) -> Any:
    """
    Return uninitialised memory where `like` lives, in its own array type, C order.

    CuPy, numba, torch and emulated arrays give their own kind; others get CuPy's.
    """
    kind, sizes = np.dtype(dtype), tuple(int(size) for size in shape)
    if isinstance(like, EmulatedArray):
        nbytes = math.prod(sizes) * kind.itemsize
        return like.device.array(like.device.allocate(nbytes), sizes, kind)
    library = type(like).__module__.partition(".")[0]
    if library == "torch":
        torch = sys.modules["torch"]
        named = getattr(torch, "bool" if kind.kind == "b" else str(kind))
        return torch.empty(sizes, dtype=named, device=like.device)
    if library in ("numba", "numba_cuda"):
        from numba import cuda

        return cuda.device_array(sizes, kind)
    import cupy

    with cupy.cuda.Device(device_number(like)):
        return cupy.empty(sizes, kind)


def device_copy(target: Any, source: Any) -> None:
    """Copy an array of any library into another of any strides, on its stream."""
    if isinstance(target, EmulatedArray):
        target.set(source.get())
        return
    import cupy

    stream = caller_stream(target)
    with cupy.cuda.ExternalStream(stream.handle if stream else 0):
        cupy.asarray(target)[...] = cupy.asarray(source)


def on_host(value: Any) -> Any:
    """Return any library's device array as a NumPy array; other values as they are."""
    if not is_device_array(value):
        return value
    if isinstance(value, EmulatedArray):
        return value.get()
    import cupy

    return cupy.asnumpy(cupy.asarray(value))
