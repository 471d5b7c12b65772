"""
Time the emulated device, all checks on, and record the planted-fault matrix.

    python benchmarks/bench_emulator.py            # appends to records/emulator_*.jsonl
    python benchmarks/bench_emulator.py --quick    # fewer rounds, nothing recorded

Host time of whole launches (compiled before), by perf_counter: kernels take turns in
shuffled rounds, so that a slow spell of the machine meets all of them. The ratio to
numba's simulator is taken in one process that runs both in turns. None of these times
says anything about a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import emulator_faults
from tilewise.device.emulator.device import EmulatedDevice
from tilewise.device.seam import launch_shape

RECORDS = Path(__file__).parent / "records"
LIMITS_MS = {"shared 64": 100.0, "tiled 128": 300.0, "mma 128": 1000.0}


def launcher(kernel: str, size: int) -> tuple[Callable[[], None], float]:
    """Return a function that launches a product, and its compile time in ms."""
    values = np.random.default_rng(0)
    x, w = values.standard_normal((2, size, size)).astype(np.float32)
    if kernel == "mma":
        x, w = ((a.view(np.uint32) >> 16).astype(np.uint16) for a in (x, w))
    device = EmulatedDevice(memory_bytes=64 << 20)
    text = emulator_faults.text_of(kernel)
    start = time.perf_counter()
    module = device.load(text)
    loaded = module.kernel(module.entries[0])
    compile_ms = (time.perf_counter() - start) * 1e3
    buffers = [device.allocate(a.nbytes) for a in (x, w)]
    for buffer, array in zip(buffers, (x, w), strict=True):
        device.copy_in(buffer, array)
    out = device.allocate(4 * size * size)
    sizes = [(np.int64 if kernel == "shared" else np.int32)(size)] * 3
    tile, block = {"shared": (16, (16, 16)), "tiled": (64, 256), "mma": (64, 128)}[
        kernel
    ]
    shape = launch_shape((-(-size // tile),) * 2, block)
    return lambda: device.launch(loaded, shape, [*buffers, out, *sizes]), compile_ms


def speed(rounds: int) -> list[dict[str, Any]]:
    """Time the kernels in shuffled rounds; samples in ms."""
    cases = {
        f"{kernel} {size}": launcher(kernel, size)
        for kernel, size in (("shared", 64), ("tiled", 128), ("mma", 128))
    }
    samples: dict[str, list[float]] = {name: [] for name in cases}
    order = list(cases)
    shuffle = random.Random(0)
    for number in range(rounds + 2):
        shuffle.shuffle(order)
        for name in order:
            start = time.perf_counter()
            cases[name][0]()
            if number >= 2:  # two rounds warm caches up
                samples[name].append((time.perf_counter() - start) * 1e3)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        {
            "case": name,
            **spread(values),
            "compile_ms": round(cases[name][1], 1),
            "limit_ms": LIMITS_MS[name],
            "peak_rss_mb": round(peak_mb),
        }
        for name, values in samples.items()
    ]


def spread(values: list[float]) -> dict[str, Any]:
    """Return median, quartiles and count of samples in ms."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {
        "median_ms": round(middle, 2),
        "q1_ms": round(low, 2),
        "q3_ms": round(high, 2),
        "rounds": len(values),
    }


def ratio(rounds: int) -> dict[str, Any]:
    """Run numba's simulator and the emulator in turns in one process."""
    command = [sys.executable, __file__, "--turns", str(rounds)]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, timeout=900
    )
    turns = json.loads(done.stdout)
    simulator, emulator = spread(turns["simulator"]), spread(turns["emulator"])
    return {
        "case": "shared 64 against numba's simulator",
        "simulator": simulator,
        "emulator": emulator,
        "ratio": round(simulator["median_ms"] / emulator["median_ms"]),
    }


def turns(rounds: int) -> dict[str, list[float]]:
    """Time both, one after the other; the simulator must be on."""
    sys.path.insert(0, str(emulator_faults.KERNELS))
    from numba import cuda
    from shared import shared

    size = 64
    values = np.random.default_rng(0)
    x, w = values.standard_normal((2, size * size)).astype(np.float32)
    out = np.zeros(size * size, np.float32)
    simulated = cuda.jit(shared)[(4, 4), (16, 16)]
    emulated, _ = launcher("shared", size)
    samples: dict[str, list[float]] = {"simulator": [], "emulator": []}
    for _ in range(rounds):
        for name, call in (
            ("simulator", lambda: simulated(x, w, out, size, size, size)),
            ("emulator", emulated),
        ):
            start = time.perf_counter()
            call()
            samples[name].append((time.perf_counter() - start) * 1e3)
    return samples


def environment() -> dict[str, Any]:
    """Say on what this was measured."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def append(name: str, rows: list[dict[str, Any]]) -> None:
    """Append rows to a record file."""
    with (RECORDS / name).open("a") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", type=int)
    chosen = parser.parse_args()
    if chosen.turns:
        print(json.dumps(turns(chosen.turns)))
        return
    rows = speed(5 if chosen.quick else 21)
    if not chosen.quick:
        rows.append(ratio(3))
    protocol = "whole launch, host perf_counter, shuffled interleaved rounds, checks on"
    rows = [{"protocol": protocol, **row, **environment()} for row in rows]
    matrix = [
        row
        for kernel in emulator_faults.KERNEL_NAMES
        for row in emulator_faults.matrix(kernel)
    ]
    for row in rows:
        print(json.dumps(row))
    planted = [row for row in matrix if row["fault"] != "none"]
    found = [row for row in planted if row["found_by"]]
    print(f"{len(found)} of {len(planted)} planted faults found")
    if not chosen.quick:
        append("emulator_speed.jsonl", rows)
        (RECORDS / "emulator_faults.jsonl").unlink(missing_ok=True)
        append("emulator_faults.jsonl", matrix)


if __name__ == "__main__":
    main()
