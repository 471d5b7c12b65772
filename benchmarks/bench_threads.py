"""
Tuned kernels in turn with the user's own NumPy products, and the memory of a call.

    python benchmarks/bench_threads.py

Two thread pools that fight were seen to make a 0.06 ms product take 8 ms: the cost
of taking turns is a pair's time over the sum of both times alone, with the machine as
it is and with another process that keeps one core busy. Memory is what a call takes
over inputs and output, in a process of its own: the peak resident size and, of a
second call, Python's own allocations.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import arguments, relu
from benchmarks.record import append, interleaved, ratio
from tilewise import tuned_kernel

ROUNDS = 25
PROTOCOL = (
    "25 shuffled rounds of the kernel alone, the product alone, both in turn, and both "
    "in NumPy (control); ratios by round, median and quartiles"
)
SIZES = (64, 128, 256, 512, 1024)
MEMORY = """
import sys
import tracemalloc
import numpy as np
from benchmarks.bench_threads import peak_mib, reset_peak
from benchmarks.problems import arguments, relu
from tilewise import tuned_kernel
args = arguments("relu", (4096, 64, 4096), "float32")
out = np.zeros((4096, 64), np.float32)
kernel = tuned_kernel(relu)
if sys.argv[1] == "numpy":
    kernel = lambda *a, out: np.copyto(out, relu(*a))
else:
    kernel.pin(sys.argv[1])
kernel(args[0][:1024], *args[1:], out=out[:1024])
before = reset_peak()
kernel(*args, out=out)
resident = peak_mib() - before
tracemalloc.start()
kernel(*args, out=out)
print(resident, tracemalloc.get_traced_memory()[1] / 2**20)
"""


def peak_mib() -> float:
    """Return the peak resident size of this process in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def reset_peak() -> float:
    """Forget the peak so far and return the resident size (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak_mib()


def variants(size: int) -> list[str]:
    """Return what can serve a square, each with one thread and with all."""
    args = arguments("relu", (size, size, size), "float32")
    found = map(str, tuned_kernel(relu).variants(*args))
    return [name for name in found if name.startswith("cpu/")]


def turns(variant: str, size: int) -> dict[str, Any]:
    """Time a pinned kernel and a NumPy product alone and in turn."""
    args = arguments("relu", (size, size, size), "float32")
    other, product = args[0].copy(), np.empty((size, size), np.float32)
    kernel = tuned_kernel(relu)
    kernel.pin(variant)
    kernel(*args)

    def own() -> Any:
        return kernel(*args)

    def users() -> Any:
        return np.matmul(other, args[1], out=product)

    calls = {
        "own": own, "users": users, "both": lambda: (own(), users()),
        "numpy": lambda: (relu(*args), users()),
    }  # fmt: skip
    inner = max(1, min(100, 2_000_000_000 // (size**3 * 60)))
    times = interleaved(calls, ROUNDS, inner)
    alone = [a + b for a, b in zip(times["own"], times["users"], strict=True)]
    return {
        "variant": variant, "size": size,
        "both over sum": ratio(times["both"], alone),
        "numpy over both": ratio(times["numpy"], times["both"]),
    }  # fmt: skip


def memory(method: str) -> dict[str, Any]:
    """Return how far a 4096x64x4096 call raises the peak resident size, in MiB."""
    command = [sys.executable, "-c", MEMORY, method]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    what = {"method": method, "unit": "MiB over inputs and output"}
    if done.returncode:
        return {**what, "rejected": done.stderr.strip().splitlines()[-1]}
    resident, traced = (round(float(one), 2) for one in done.stdout.split())
    return {**what, "peak": resident, "traced": traced}


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy with another process."""
    burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        burning.kill()
        burning.wait()


def main() -> None:
    """Measure and record."""
    for others, state in (("as it is", nullcontext()), ("one core busy", busy_core())):
        with state:
            rows = [turns(v, size) for size in SIZES for v in variants(size)]
        append("threads", PROTOCOL, [{**row, "machine": others} for row in rows])
    methods = ("cpu/blas_serial", "cpu/blas_parallel", "cpu/packed", "numpy")
    append(
        "memory",
        "VmHWM after a call less before it, a first call having been made",
        [memory(m) for m in methods],
    )


if __name__ == "__main__":
    main()
