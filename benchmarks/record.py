"""Append measured rows to benchmarks/records/<fingerprint>.jsonl; none is changed."""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilewise

RECORDS = Path(__file__).parent / "records"


def append(
    bench: str, protocol: str, rows: Sequence[dict[str, Any]], run: str = ""
) -> None:
    """
    Write and print rows with what is needed to read them later.

    `run` names the rows that a benchmark wrote together, if in several pieces.
    """
    common = {
        "bench": bench,
        "protocol": protocol,
        "run": run or time.strftime("%Y-%m-%dT%H:%M"),
        "date": time.strftime("%Y-%m-%d"),
        "load": load(),
        "provenance": dict(tilewise.provenance()),
    }
    with own_file().open("a", encoding="utf-8") as file:
        for row in rows:
            print(json.dumps(row), flush=True)
            file.write(json.dumps({**row, **common}) + "\n")


def own_file() -> Path:
    """Return the file of this machine's records."""
    return RECORDS / f"{tilewise.hw_fingerprint()}.jsonl"


def read(bench: str, file: Path | None = None) -> list[dict[str, Any]]:
    """Return a benchmark's rows on this machine, or in a file, the oldest first."""
    path = file or own_file()
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["bench"] == bench]


def load() -> float:
    """Return the average of running processes over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else math.nan


REST_S = 0.12
"""OpenBLAS's threads spin for 0.1 s after a product, where others' would run."""


def interleaved(
    calls: dict[str, Callable[[], Any]],
    rounds: int,
    inner: int,
    seed: int = 0,
    apart: Sequence[str] = (),
) -> dict[str, list[float]]:
    """
    Time calls in shuffled rounds; returns nanoseconds a call, a list a name.

    In each round those `apart` are timed together, after a rest and an untimed call.
    """
    random = np.random.default_rng(seed)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(inner):
            call()
    others = [name for name in calls if name not in apart]
    for _ in range(rounds):
        for rested in random.permutation([False, True] if apart else [False]):
            if rested:
                time.sleep(REST_S)
                calls[apart[0]]()
            for name in random.permutation(apart if rested else others):
                call, begun = calls[name], time.perf_counter_ns()
                for _ in range(inner):
                    call()
                times[name].append((time.perf_counter_ns() - begun) / inner)
    return times


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median and quartiles, three digits each."""
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 3), "q1": round(low, 3), "q3": round(high, 3)}


def ratio(over: Sequence[float], under: Sequence[float]) -> dict[str, float]:
    """
    Return the spread of the rounds' ratios, with 95 % bounds of their median.

    The bounds are order statistics, sign-test ranks: ranks 8 and 18 of 25.
    """
    ratios = sorted(a / b for a, b in zip(over, under, strict=True))
    count, ways, rank = len(ratios), 0, 0
    while 40 * (ways := ways + math.comb(count, rank)) <= 2**count:
        rank += 1
    first, last = ratios[max(rank - 1, 0)], ratios[min(count - rank, count - 1)]
    return {**spread(ratios), "lower": round(first, 3), "upper": round(last, 3)}


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))
