"""
The vector functions of CPU kernels beside NumPy's: largest error and time an element.

    python benchmarks/bench_math.py

Each is compiled into a loop as in a kernel. Time is this thread's CPU time on 8,192
numbers, so that other processes matter less; errors are against longdouble, in units
of the last place of the result, where it is a normal number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.record import append
from tilewise.engines.cpu.compile import namespace

ROUNDS, COUNT = 400, 8192
RANGES = {
    "exp": (-80, 80), "exp2": (-100, 100), "expm1": (-20, 80), "tanh": (-10, 10),
    "expit": (-80, 80), "log": (1e-6, 1e6), "log1p": (-0.9, 1e6), "log2": (1e-6, 1e6),
    "arctan": (-100, 100), "sin": (-100, 100), "cos": (-100, 100),
}  # fmt: skip
PROTOCOL = (
    f"best of {ROUNDS} alternating runs of thread CPU time on {COUNT} numbers; errors "
    "on 100,000 uniform numbers over the range, half of them a hundredth of its size"
)


def loop_of(name: str) -> Callable[[Any, Any], None]:
    """Compile the loop of a function, with the options of kernels."""
    from numba import njit

    function = namespace()[name]

    def loop(x: Any, y: Any) -> None:
        for i in range(x.size):
            y[i] = function(x[i])

    return njit(error_model="numpy", fastmath={"contract"})(loop)


def exact(name: str, x: Any) -> Any:
    """Evaluate in longdouble."""
    wide = x.astype(np.longdouble)
    if name == "expit":
        y = np.exp(-np.abs(wide))
        return np.where(x >= 0, 1 / (1 + y), y / (1 + y))
    return getattr(np, name)(wide)


def largest_ulp(found: Any, wanted: Any) -> float:
    """Return the largest error in units of the last place."""
    normal = np.abs(wanted) >= np.finfo(found.dtype).tiny
    unit = np.spacing(np.abs(wanted[normal]).astype(found.dtype))
    return float(np.max(np.abs(found - wanted)[normal] / unit.astype(np.longdouble)))


def row_of(name: str, dtype: str) -> dict[str, Any]:
    """Measure one function."""
    low, high = RANGES[name]
    x = np.random.default_rng(0).uniform(low, high, 100_000)
    x[::2] *= 0.01
    x = x.astype(dtype)
    ours, numpys = loop_of(name), expit if name == "expit" else getattr(np, name)
    y, wanted = np.empty_like(x), exact(name, x)
    ours(x, y)
    row = {"function": name, "dtype": dtype, "ulp": round(largest_ulp(y, wanted), 2)}
    row["numpy_ulp"] = round(largest_ulp(numpys(x), wanted), 2)
    x, y = x[:COUNT].copy(), y[:COUNT].copy()
    times: dict[str, float] = {"ns": 1e9, "numpy_ns": 1e9}
    for _ in range(ROUNDS):
        for key, call in (("ns", ours), ("numpy_ns", numpys)):
            begun = time.thread_time_ns()
            call(x, y)
            times[key] = min(times[key], (time.thread_time_ns() - begun) / COUNT)
    return {**row, **{key: round(value, 3) for key, value in times.items()}}


if __name__ == "__main__":
    cases = [(name, dtype) for name in RANGES for dtype in ("float32", "float64")]
    append("math", PROTOCOL, [row_of(*case) for case in cases])
