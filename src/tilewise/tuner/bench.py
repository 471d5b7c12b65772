"""
A case on a device: its guarded memory is carried there and back, events time it.

The arguments of such a case are host arrays in the layouts of the caller's. A run gets
them on the device, between the same guard bytes, so that what it writes beside its
output is seen afterwards as on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.device.arrays import extent
from tilewise.device.seam import Device
from tilewise.device.views import (
    DeviceView,
    caller_stream,
    device_view,
    is_device_array,
)
from tilewise.tuner.inputs import ALIGNMENT, Array, Guarded

__all__ = ["EVENT_GRAIN_NS", "Bench", "on_host_alike", "placed"]

EVENT_GRAIN_NS = 1000.0
"""CUDA tells the time between events to about half a microsecond."""
BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class Bench:
    """A device on which a case's calls run, and the reference for its arrays."""

    device: Device
    reference: Callable[..., Any]

    def carried(
        self,
        run: Callable[..., Any],
        args: tuple[Any, ...],
        guards: Mapping[int, Guarded],
        output: Guarded | None = None,
    ) -> Any:
        """
        Run on the device and bring back all bytes, those of the guards too.

        Returns what the run returned: `output.array` where that is its output. Without
        an output the run fills none.
        """
        there = {at: placed(self.device, guard) for at, guard in guards.items()}
        outs = [placed(self.device, output)] if output else []
        own = [there[at][1] if at in there else arg for at, arg in enumerate(args)]
        returned = run(*own, *(out for _, out in outs))
        self.device.synchronize()
        for at, (memory, _) in there.items():
            self.device.copy_out(guards[at].buffer, memory)
        for whole, out in outs:
            assert output is not None
            self.device.copy_out(output.buffer, whole)
            returned = output.array if returned is out else returned
        return returned

    def time_ns(self, calls: Callable[[], object], args: tuple[Any, ...]) -> float:
        """Return the nanoseconds between events around calls, on their stream."""
        like = next((arg for arg in args if is_device_array(arg)), None)
        stream = caller_stream(like)
        begun = self.device.record(stream)
        calls()
        return 1e3 * self.device.elapsed_us(begun, self.device.record(stream))


def placed(device: Device, guard: Guarded) -> tuple[Any, Any]:
    """Return a guarded buffer on a device as bytes, and its array inside them."""
    shift = guard.buffer.ctypes.data % ALIGNMENT
    memory = device.allocate(guard.buffer.nbytes + ALIGNMENT)
    whole = device.array(memory, guard.buffer.shape, BYTE, offset=shift)
    device.copy_in(whole, guard.buffer)
    array = guard.array
    start = array.ctypes.data - guard.buffer.ctypes.data + shift
    return whole, device.array(memory, array.shape, array.dtype, array.strides, start)


def on_host_alike(device: Device, array: Any) -> Array:
    """Copy a device array to the host in its layout: strides, and its alignment."""
    view = device_view(array)
    if not view.size:
        return np.empty(view.shape, view.dtype)
    low, high = extent(view.shape, view.strides, view.dtype.itemsize)
    memory = np.empty(high - low + ALIGNMENT, np.uint8)
    start = (view.address + low - memory.ctypes.data) % ALIGNMENT
    memory = memory[start : start + high - low]
    source = DeviceView(view.address + low, memory.shape, (1,), BYTE, view)
    device.synchronize()
    device.copy_out(memory, source)
    return np.ndarray(view.shape, view.dtype, memory.data, -low, view.strides)
