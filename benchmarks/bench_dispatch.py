"""What a tuned call costs over its executable, and against the NumPy expression."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.record import append, interleaved, ratio, spread
from tilewise import tuned_kernel

ROUNDS, INNER = 41, 2000
CLOCK = "time.perf_counter_ns()"
IMPORT = f"import time; t = {CLOCK}; import {{0}}; print({CLOCK} - t)"


@tuned_kernel
def dense(x: Any, w: Any, b: Any) -> Any:
    """Be the kernel that is called."""
    return np.maximum(x @ w + b, 0)


def call_rows() -> list[dict[str, Any]]:
    """Time a 16x16x16 call, its executable alone, a bound call, and NumPy."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype("f4") for s in ((16, 16), (16, 16), 16))
    out = np.empty((16, 16), np.float32)
    dense.tune(x, w, b, force=True)
    dense.pin("cpu/small")
    dense(x, w, b)
    (entry,) = dense._entries.values()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    run, reference, empty, shape = entry.run, dense.reference, np.empty, (16, 16)
    times = interleaved(
        {
            "call": lambda: dense(x, w, b),
            "executable": lambda: run(x, w, b, empty(shape, np.float32)),
            "executable out": lambda: run(x, w, b, out),
            "call out": lambda: dense(x, w, b, out=out),
            "bound": lambda: bound(x),
            "bound out": lambda: bound(x, out=out),
            "bound out again": lambda: bound(x, out=out),
            "numpy": lambda: reference(x, w, b),
            "numpy again": lambda: reference(x, w, b),
        },
        ROUNDS,
        INNER,
    )
    pairs = (
        ("call", "executable"), ("call out", "executable out"), ("bound", "executable"),
        ("bound out", "executable out"), ("bound out again", "bound out"),
    )  # fmt: skip
    rows: list[dict[str, Any]] = [
        {"what": f"{a} minus {b}", "unit": "ns",
         **spread([p - q for p, q in zip(times[a], times[b], strict=True)])}
        for a, b in pairs
    ]  # fmt: skip
    rows += [
        {"what": f"{a} over numpy", "unit": "ratio", **ratio(times[a], times["numpy"])}
        for a in ("call", "bound", "bound out", "numpy again")
    ]
    return rows


def import_rows() -> list[dict[str, Any]]:
    """Time imports in fresh processes, interleaved."""
    statements = {"numpy": "numpy", "tilewise": "numpy, tilewise"}
    times: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(15):
        for name, modules in statements.items():
            done = subprocess.run(
                [sys.executable, "-c", IMPORT.format(modules)],
                capture_output=True, text=True, check=True, timeout=60,
            )  # fmt: skip
            times[name].append(int(done.stdout) / 1e6)
    extra = [a - b for a, b in zip(times["tilewise"], times["numpy"], strict=True)]
    return [{"what": "import tilewise over numpy", "unit": "ms", **spread(extra)}]


if __name__ == "__main__":
    append(
        "dispatch",
        f"16x16x16 float32, {ROUNDS} shuffled rounds of {INNER} calls, differences and "
        "ratios by round; imports in 15 pairs of fresh processes",
        call_rows() + import_rows(),
    )
