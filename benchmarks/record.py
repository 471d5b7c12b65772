"""Append measured rows to benchmarks/records/<fingerprint>.jsonl; none is changed."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilewise

RECORDS = Path(__file__).parent / "records"


def append(bench: str, protocol: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write and print rows with what is needed to read them later."""
    place = tilewise.hw_fingerprint()
    common = {
        "bench": bench,
        "protocol": protocol,
        "date": time.strftime("%Y-%m-%d"),
        "provenance": dict(tilewise.provenance()),
    }
    with (RECORDS / f"{place}.jsonl").open("a", encoding="utf-8") as file:
        for row in rows:
            print(json.dumps(row))
            file.write(json.dumps({**row, **common}) + "\n")


def interleaved(
    calls: dict[str, Callable[[], Any]], rounds: int, inner: int, seed: int = 0
) -> dict[str, list[float]]:
    """Time calls in shuffled rounds; returns nanoseconds a call, a list a name."""
    random = np.random.default_rng(seed)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(inner):
            call()
    names = list(calls)
    for _ in range(rounds):
        for name in random.permutation(names):
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
    """Return the spread of the rounds' ratios."""
    return spread([a / b for a, b in zip(over, under, strict=True)])
