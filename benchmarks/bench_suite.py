"""
The suite over plain NumPy, with the decisions that tuning stored, in one run.

    python benchmarks/bench_suite.py [--run NAME] [--only relu,gelu float32,float64]

Each epilogue and dtype is a piece of at most some minutes. Pieces with one NAME are
one run: what NAME has recorded already is left out, so a stopped run goes on.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import EPILOGUES, SIZES, arguments
from benchmarks.record import append, geomean, interleaved, load, ratio, read
from tilewise import tuned_kernel
from tilewise.model.ops import lookup

PAIRS = 25
BLOCK_S = 2e-3
"""Short calls are timed in blocks of this length."""
PROTOCOL = (
    "tuned first, as a first call would; then 25 shuffled rounds of tuned, tuned with "
    "out=, NumPy and NumPy again (A/A), in blocks of at least 2 ms; a kernel with "
    "threads of its own after 0.12 s of rest, in which BLAS's threads stop spinning; "
    "ratios by round: median, quartiles, 95 % bounds of the median; "
    "floor = max((2mnk + e mn) / peak, bytes / bandwidth)"
)
OWN_THREADS = "cpu/packed threads"
Key = tuple[str, str, int, int, int]


def key_of(row: dict[str, Any]) -> Key:
    """Return which problem a row measured."""
    return (row["epilogue"], row["dtype"], row["m"], row["n"], row["k"])


def machine_row(dtype: str) -> dict[str, Any]:
    """Measure what the roofline needs: NumPy's best product, and bandwidth."""
    rng = np.random.default_rng(0)
    flops = 0.0
    for size in (512, 1024, 2048):
        x = rng.standard_normal((size, size)).astype(dtype)
        out = np.empty_like(x)
        once = best(partial(np.matmul, x, x, out=out), 12)
        flops = max(flops, 2 * size**3 / once)
    return {
        "dtype": dtype, "what": "machine", "gflops": round(flops / 1e9, 1),
        "gbytes_s": round(bandwidth() / 1e9, 1), "load_before": load(),
    }  # fmt: skip


def best(call: Callable[[], Any], times: int) -> float:
    """Return the shortest of some times, in seconds."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return min(found)


def bandwidth(count: int = 1 << 23, threads: int = 2) -> float:
    """Return the bytes a second of a = b + c, in several threads, out of cache."""
    arrays = [np.ones((3, count), np.float32) for _ in range(threads)]

    def work() -> None:
        others = [
            threading.Thread(target=np.add, args=(a[0], a[1], a[2])) for a in arrays
        ]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()

    return sum(a.nbytes for a in arrays) / best(work, 12)


def floor_us(kernel: Any, args: list[Any], row: dict[str, Any], at: Key) -> float:
    """Return the roofline's time for a problem, with the machine's measured rates."""
    _, dtype, m, n, k = at
    ops = [node.op for node in kernel.spec.nodes]
    leaves = ("product", "operand", "scalar", "const", "astype")
    flops = 2 * m * n * k + m * n * sum(lookup(o).flops for o in ops if o not in leaves)
    used = args if "operand" in ops else args[:2]
    moved = sum(a.nbytes for a in used) + m * n * np.dtype(dtype).itemsize
    return max(flops / row["gflops"], moved / row["gbytes_s"]) / 1e3


def row_of(at: Key, machine: dict[str, Any]) -> dict[str, Any]:
    """Tune one problem and time it against NumPy."""
    epilogue, dtype, *sizes = at
    m, n, k = sizes
    kernel = tuned_kernel(EPILOGUES[epilogue])
    reference, args = kernel.reference, arguments(epilogue, (m, n, k), dtype)
    once = best(lambda: reference(*args), 3)
    kernel.tune(*args)
    out = np.empty((m, n), dtype)
    calls = {
        "tuned": lambda: kernel(*args),
        "out": lambda: kernel(*args, out=out),
        "numpy": lambda: reference(*args),
        "again": lambda: reference(*args),
    }
    variant = str(kernel.explain(*args).variant)
    apart = ("tuned", "out") if variant.startswith(OWN_THREADS) else ()
    inner = max(1, min(1000, int(BLOCK_S / once)))
    times = interleaved(calls, PAIRS, inner, apart=apart)
    floor = floor_us(kernel, args, machine, at)
    return {
        "epilogue": epilogue, "dtype": dtype, "m": m, "n": n, "k": k,
        "variant": variant,
        "speed": ratio(times["numpy"], times["tuned"]),
        "control": ratio(times["numpy"], times["again"]),
        "numpy_us": round(statistics.median(times["numpy"]) / 1e3, 2),
        "tuned_us": round(statistics.median(times["tuned"]) / 1e3, 2),
        "out_us": round(statistics.median(times["out"]) / 1e3, 2),
        "floor_us": round(floor, 2),
        "over_floor": round(statistics.median(times["out"]) / 1e3 / floor, 2),
    }  # fmt: skip


def piece(epilogue: str, dtype: str, run: str) -> None:
    """Measure and record what is missing of one epilogue and dtype."""
    rows = read("suite")
    done = {key_of(r) for r in rows if r["run"] == run and "epilogue" in r}
    keys: list[Key] = [(epilogue, dtype, *size) for size in SIZES]
    missing = [key for key in keys if key not in done]
    if not missing:
        return
    now = machine_row(dtype)
    append("suite", PROTOCOL, [now], run)
    before = [r for r in rows if r.get("what") == "machine" and r["dtype"] == dtype]
    rates = ("gflops", "gbytes_s")
    machine = {rate: max(r[rate] for r in (*before, now)) for rate in rates}
    for key in missing:
        append("suite", PROTOCOL, [row_of(key, machine)], run)
    speeds = [
        r["speed"]["median"]
        for r in read("suite")
        if r["run"] == run and "epilogue" in r and key_of(r) in keys
    ]
    print(f"{epilogue} {dtype}: geometric mean {geomean(speeds):.3f}", flush=True)


def main(given: list[str]) -> None:
    """Run the pieces that were asked for, all of them by default."""
    run = given[given.index("--run") + 1] if "--run" in given else ""
    run = run or time.strftime("%Y-%m-%dT%H:%M")
    epilogues, dtypes = list(EPILOGUES), ["float32", "float64"]
    if "--only" in given:
        first = given.index("--only") + 1
        chosen = [one.split(",") for one in given[first : first + 2]]
        epilogues, dtypes = chosen if len(chosen) == 2 else (*chosen, dtypes)
    for dtype in dtypes:
        for epilogue in epilogues:
            piece(epilogue, dtype, run)


if __name__ == "__main__":
    main(sys.argv[1:])
