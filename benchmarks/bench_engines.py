"""
The suite over plain NumPy, with the decisions that tuning stored, in one run.

    python benchmarks/bench_engines.py [relu,gelu,...] [float32,float64] [minutes]
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import defaultdict
from typing import Any

from benchmarks.problems import EPILOGUES, SIZES, arguments
from benchmarks.record import append, interleaved, ratio
from tilewise import tuned_kernel

PAIRS = 25
PROTOCOL = (
    "tuned first, then 25 shuffled rounds of tuned, NumPy and NumPy again (A/A); "
    "ratios by round, median and quartiles; results allocated in each call"
)


def row_of(epilogue: str, dtype: str, size: tuple[int, int, int]) -> dict[str, Any]:
    """Tune one problem and time it against NumPy."""
    kernel = tuned_kernel(EPILOGUES[epilogue])
    reference, args = kernel.reference, arguments(epilogue, size, dtype)
    kernel.tune(*args)
    begun = time.perf_counter()
    reference(*args)
    once = max(time.perf_counter() - begun, 1e-6)
    inner = max(1, min(1000, int(2e-3 / once)))
    calls = {
        "tuned": lambda: kernel(*args),
        "numpy": lambda: reference(*args),
        "again": lambda: reference(*args),
    }
    times = interleaved(calls, PAIRS, inner)
    return {
        "epilogue": epilogue, "dtype": dtype, "m": size[0], "n": size[1], "k": size[2],
        "variant": str(kernel.explain(*args).variant),
        "speed": ratio(times["numpy"], times["tuned"]),
        "control": ratio(times["numpy"], times["again"]),
        "numpy_us": round(statistics.median(times["numpy"]) / 1e3, 2),
    }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometric means of the medians by epilogue and dtype."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        groups[row["epilogue"], row["dtype"]].append(row["speed"]["median"])
    return [
        {"epilogue": e, "dtype": d, "problems": len(v),
         "geomean_speed": round(math.exp(statistics.fmean(map(math.log, v))), 3)}
        for (e, d), v in groups.items()
    ]  # fmt: skip


def main(epilogues: list[str], dtypes: list[str], minutes: float) -> None:
    """Run as much of the suite as the time allows, the small problems first."""
    end, rows = time.monotonic() + 60 * minutes, []
    for size in SIZES:
        for epilogue in epilogues:
            for dtype in dtypes:
                if time.monotonic() < end:
                    rows.append(row_of(epilogue, dtype, size))
                    print(rows[-1], flush=True)
    append("engines", PROTOCOL, rows + summary(rows))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        given[0].split(",") if given else list(EPILOGUES),
        given[1].split(",") if len(given) > 1 else ["float32", "float64"],
        float(given[2]) if len(given) > 2 else 30.0,
    )
