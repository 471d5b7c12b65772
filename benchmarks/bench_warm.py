"""How long a fresh process with a warm store needs for its first fused result."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.record import append, spread

ROOT = Path(__file__).parents[1]
ROUNDS = 11
SIZES = ((64, 64, 64), (1024, 512, 784))
ALLOWED = 1.3
"""Of the NumPy process's time, plus 100 ms, a warm start may take so much."""


def first_result(way: str, sizes: tuple[int, int, int]) -> tuple[float, list[str]]:
    """Return the milliseconds from starting a process to its result, and its words."""
    command = [sys.executable, "-m", "benchmarks.warm_child", way, *map(str, sizes)]
    begun = time.monotonic_ns()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT
    )
    at, *words = done.stdout.split()
    return (int(at) - begun) / 1e6, words


def rows(sizes: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Compare processes in turns, after two that fill the store."""
    for name in ("numpy", "tilewise"):  # Bytecode is written, decisions are kept.
        first_result(name, sizes)
    times: dict[str, list[float]] = {"numpy": [], "tilewise": [], "numpy again": []}
    seen: set[str] = set()
    for _ in range(ROUNDS):
        for name, taken in times.items():
            ms, words = first_result(name.split()[0], sizes)
            taken.append(ms)
            seen.update(words)
    over = [
        a - ALLOWED * b for a, b in zip(times["tilewise"], times["numpy"], strict=True)
    ]
    plain = [a - b for a, b in zip(times["numpy again"], times["numpy"], strict=True)]
    about = {"sizes": "x".join(map(str, sizes)), "unit": "ms", "seen": sorted(seen)}
    return [
        {"what": "numpy process to result", **about, **spread(times["numpy"])},
        {
            "what": "warm tilewise process to result",
            **about,
            **spread(times["tilewise"]),
        },
        {"what": "warm tilewise minus 1.3 numpy", **about, **spread(over)},
        {"what": "numpy again minus numpy", **about, **spread(plain)},
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as store:
        os.environ["TILEWISE_CACHE_DIR"] = store
        os.environ["PYTHONPYCACHEPREFIX"] = f"{store}/bytecode"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        append(
            "warm",
            f"fresh processes in turns, {ROUNDS} rounds; time from start to result; "
            "`seen` lists the variants that served and any of numba, cupy, cuda that "
            "was imported; the third figure is to be at most 100",
            [row for sizes in SIZES for row in rows(sizes)],
        )
