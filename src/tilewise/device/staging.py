"""Host arrays on their way to a device and back: through pinned memory on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tilewise.device.seam import Device
from tilewise.device.views import DeviceView, device_view
from tilewise.errors import EngineError

__all__ = ["Staging"]

Array: TypeAlias = np.ndarray[Any, Any]


class Staging:
    """
    One call's transfers; `bytes_in` and `bytes_out` count them.

    Pinned memory comes from CuPy's pool, so repeated calls pin nothing anew. The
    emulated device takes pageable memory.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.bytes_in = self.bytes_out = 0

    def copied_in(self, host: Array, order: str) -> DeviceView:
        """Copy a host array of up to two axes in, in "C" or "F" order."""
        turned = order == "F" and host.ndim == 2
        packed = self.pinned(host.T if turned else host)
        self.bytes_in += packed.nbytes
        view = self.empty(packed.shape, packed.dtype)
        if packed.size:
            self.device.copy_in(view, packed)
        return view.T if turned else view

    def pinned(self, host: Array) -> Array:
        """Return a copy in C order from which the device can be fed."""
        place = self.host_memory(host.shape, host.dtype)
        np.copyto(place, host)
        return place

    def host_memory(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return host memory for a transfer."""
        if self.device.properties.emulated:
            return np.empty(shape, dtype)
        import cupy

        count = int(np.prod(shape))
        try:
            memory = cupy.cuda.alloc_pinned_memory(max(count * dtype.itemsize, 1))
        except Exception as error:
            raise EngineError(f"out of pinned memory: {error}") from error
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> DeviceView:
        """Return uninitialised memory of the device."""
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return device_view(
            self.device.array(self.device.allocate(nbytes), shape, np.dtype(dtype))
        )

    def copy_out(self, out: Array, result: DeviceView) -> None:
        """Copy a result in C order out, into an array of any layout."""
        place = self.host_memory(result.shape, result.dtype)
        self.device.copy_out(place, result)
        self.bytes_out += place.nbytes
        np.copyto(out, place)
