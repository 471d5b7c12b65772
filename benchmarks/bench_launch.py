"""
What a CUDA call costs in Python before the driver: `python benchmarks/bench_launch.py`.

Two factors, a row and the output lie on a device that does nothing, so that no GPU is
needed: all that is timed is tilewise's own. `run` is a loaded variant given all four
arrays, `call` the decorated function with `out=`. Arrays have either the attributes of
CuPy's or the interface alone, as plain attributes: what a library's own properties cost
is not in the figures.
"""

from __future__ import annotations

import os
import sys
import time
import timeit
import types
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.record import append
from tilewise import tuned_kernel
from tilewise.device import chosen
from tilewise.device.emulator.device import EmulatedDevice
from tilewise.engines.gpu import launch
from tilewise.runtime.once import resolver
from tilewise.runtime.question import ask

CALLS, REPEATS = 2000, 15


class Idle:
    """A GPU whose launches do nothing; its modules are those of the emulated device."""

    def __init__(self) -> None:
        self.inner = EmulatedDevice()
        self.properties = replace(self.inner.properties, emulated=False)
        self.launched = 0

    def load(self, image: bytes) -> Any:
        """Load PTX."""
        return self.inner.load(image)

    def launch(self, kernel: Any, shape: Any, args: Any, stream: Any = None) -> None:
        """Count the launch."""
        self.launched += 1


def interface(shape: tuple[int, ...], address: int) -> Any:
    """Return an array that has the interface alone."""
    face = {"shape": shape, "typestr": "<f4", "data": (address, False), "version": 3}
    return types.SimpleNamespace(__cuda_array_interface__=face | {"strides": None})


def cupy_like(shape: tuple[int, ...], address: int) -> Any:
    """Return an array with the attributes of CuPy's."""
    kind = type("ndarray", (), {"__module__": "cupy"})
    array = kind()
    array.__cuda_array_interface__ = interface(shape, address).__cuda_array_interface__
    strides = (4 * shape[-1], 4)[-len(shape) :]
    array.shape, array.strides, array.dtype = shape, strides, np.dtype(np.float32)
    array.data, array.device = types.SimpleNamespace(ptr=address), DEVICE
    return array


DEVICE = types.SimpleNamespace(id=0)


def spread(step: Any) -> dict[str, float]:
    """Return the least and the median microseconds of one call."""
    times = sorted(
        timeit.repeat(step, timer=time.thread_time, number=CALLS, repeat=REPEATS)
    )
    least, median = (1e6 * times[at] / CALLS for at in (0, REPEATS // 2))
    return {"least": round(least, 2), "median": round(median, 2)}


def main() -> None:
    """Time both kinds of arrays and record them."""
    idle = Idle()
    chosen.gpus = lambda: (object(),)  # type: ignore[assignment]
    chosen._gpu = lambda: idle  # type: ignore[assignment]
    launch.check_first_use = lambda *given: None  # An idle device computes nothing.
    stream = types.SimpleNamespace(ptr=0)
    module: Any = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    sys.modules["cupy"] = module
    os.environ["TILEWISE_TUNE"] = "off"
    rows = []
    for name, make in (("interface", interface), ("cupy", cupy_like)):
        args = [make(s, 256 * i) for i, s in enumerate(((64, 64), (64, 64), (64,)), 1)]
        out = make((64, 64), 1 << 20)
        kernel = tuned_kernel(lambda x, w, b: np.maximum(x @ w + b, 0))
        kernel.pin("cuda_cpp/naive")
        problem = ask(kernel._subject, tuple(args)).fused
        assert problem is not None
        workshop = resolver().workshop
        variant = kernel._pin
        run = workshop.prepare(variant, problem, kernel._tally.built).run
        before = idle.launched
        steps = {
            "run": partial(run, *args, out),
            "call": partial(kernel, *args, out=out),
        }
        rows += [{"what": what, "arrays": name, "unit": "us", **spread(step)}
                 for what, step in steps.items()]  # fmt: skip
        assert idle.launched - before >= 2 * CALLS * REPEATS
    chosen.gpus = tuple
    append("launch", f"4 arrays, {REPEATS} rounds of {CALLS} calls", rows)


if __name__ == "__main__":
    main()
