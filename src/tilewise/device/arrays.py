"""
Hold the emulated device's arrays.

They speak `__cuda_array_interface__` version 3 like CuPy's and numba's, so everything
above the device seam takes them for device arrays. They are for passing data in and
out: arithmetic belongs to the host (`get`) or to kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from tilewise.errors import ArgumentError

if TYPE_CHECKING:
    from tilewise.device.emulator.device import EmulatedDevice

__all__ = ["EmulatedArray", "Flags", "extent"]

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Flags:
    """What NumPy says of an array's memory."""

    c_contiguous: bool
    aligned: bool


class EmulatedArray:
    """
    An n-dimensional array in the memory of an emulated device.

    `buffer` is kept alive; `strides` are in bytes and None means C order; `offset` is
    in bytes from the buffer's start.
    """

    def __init__(
        self,
        device: EmulatedDevice,
        buffer: Any,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> None:
        self.device, self.buffer = device, buffer
        self.shape, self.dtype, self.offset = shape, np.dtype(dtype), offset
        self.strides = _c_strides(shape, self.dtype) if strides is None else strides
        low, high = extent(self.shape, self.strides, self.dtype.itemsize)
        if self.size and (offset + low < 0 or offset + high > buffer.nbytes):
            raise ArgumentError(
                f"an array of shape {shape} and dtype {self.dtype} does not fit into "
                f"a buffer of {buffer.nbytes} bytes"
            )

    @property
    def size(self) -> int:
        """Return the number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        """Tell whether the elements are in C order and on multiples of their size."""
        item = self.dtype.itemsize
        pairs = zip(
            self.strides, _c_strides(self.shape, self.dtype), self.shape, strict=True
        )
        straight = all(have == want or n == 1 for have, want, n in pairs)
        places = (self.address, *self.strides) if self.size else ()
        return Flags(straight or not self.size, all(p % item == 0 for p in places))

    @property
    def address(self) -> int:
        """Return the device address of the first element."""
        return int(self.buffer.address) + self.offset

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        contiguous = self.strides == _c_strides(self.shape, self.dtype)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, False),
            "strides": None if contiguous else self.strides,
            "version": 3,
            "stream": None,
        }

    def _view(self) -> Array:
        """Return the elements in place, as the host's view of device memory."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        low, high = extent(self.shape, self.strides, self.dtype.itemsize)
        raw = self.device.bytes_at(self.address + low, high - low)
        return np.ndarray(self.shape, self.dtype, raw, -low, self.strides)

    def get(self) -> Array:
        """Return a copy on the host, in C order."""
        return np.array(self._view(), order="C")

    def set(self, values: Array) -> None:
        """Copy host values of the same shape into the array."""
        values = np.asarray(values, self.dtype)
        if values.shape != self.shape:
            raise ArgumentError(f"values {values.shape} do not fit {self.shape}")
        if self.strides == _c_strides(self.shape, self.dtype):
            self.device.copy_in(self, np.ascontiguousarray(values))
            return
        self._view()[...] = values
        self.device.mark_written(self)

    def __getitem__(self, index: Any) -> EmulatedArray:
        """Return a view by basic indexing: integers, slices, None, Ellipsis."""
        view = self._view()
        parts = index if isinstance(index, tuple) else (index,)
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)  # a full index is a view then, too
        part = view[parts]
        if part.size and not np.may_share_memory(part, view):
            raise ArgumentError("only basic indexing is possible on device arrays")
        return self._like(part, view)

    def _like(self, part: Array, view: Array) -> EmulatedArray:
        moved = (
            part.__array_interface__["data"][0] - view.__array_interface__["data"][0]
        )
        offset = self.offset + moved if part.size else self.offset
        return EmulatedArray(
            self.device, self.buffer, part.shape, self.dtype, part.strides, offset
        )

    @property
    def T(self) -> EmulatedArray:
        """Return the array with its axes reversed."""
        view = self._view()
        return self._like(view.T, view)

    def reshape(self, *shape: int | Sequence[int]) -> EmulatedArray:
        """Return a view of another shape; ArgumentError where it takes a copy."""
        view = self._view()
        sizes: Any = shape[0] if len(shape) == 1 else shape
        part = view.reshape(sizes)
        if self.size and not np.may_share_memory(part, view):
            raise ArgumentError(f"reshape({sizes}) of strided memory takes a copy")
        return self._like(part, view)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a device array does not become a host array by itself: get()")

    def __iter__(self) -> NoReturn:
        raise TypeError("a device array is not iterated: get() copies it to the host")

    def __repr__(self) -> str:
        return f"EmulatedArray({self.get()!r})"


def _c_strides(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    strides: list[int] = []
    step = dtype.itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def extent(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, int]:
    """Return the lowest and one past the highest byte offset of the elements."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True) if n)
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True) if n)
    return low, high + itemsize
