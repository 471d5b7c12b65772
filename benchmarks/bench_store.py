"""How lookups and opening scale with what the store holds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import append, interleaved, ratio, spread
from tilewise.model.decision import Decision, DecisionTable, TableKey, cell
from tilewise.model.measurement import Candidate, Protocol, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.runtime.tables import Tables
from tilewise.settings import Settings
from tilewise.store.stack import Store

STORES = ((1, 1), (10, 100), (100, 100), (1000, 100))
"""Kernels, and decisions of each."""
TABLES = (1, 10, 100, 1000)
"""Decisions in one table."""
ROUNDS = 15


def key(kernel: int) -> TableKey:
    """Return the key of a kernel's table."""
    return TableKey("cpu_bench", f"kernel-{kernel}", "table", "host", "float32")


def decision(number: int) -> Decision:
    """Return a decision for one cell, with eight candidates' figures."""
    m, n, k = (1 << (number // step % 10) for step in (1, 10, 100))
    point = (("m", m), ("n", n), ("k", k))
    timing = Timing(41.8, 41.1, 42.9, 30, Protocol("wall", "warm", "shuffled", 8), 0.1)
    variants = [REFERENCE, *(Variant("cpu", f"method_{i}") for i in range(7))]
    candidates = tuple(Candidate(v, "measured", "", timing, 300.0) for v in variants)
    return Decision(cell(point), variants[1], point, candidates)


def table(kernel: int, decisions: int) -> DecisionTable:
    """Return a kernel's table."""
    return DecisionTable(
        key(kernel), f"kernel-{kernel}", tuple(map(decision, range(decisions)))
    )


def filled(root: Path, kernels: int, decisions: int) -> Settings:
    """Fill a store and return its settings."""
    settings = Settings(cache_dir=root / f"{kernels}")
    store, made = Store(settings), table(0, decisions)
    for number in range(kernels):
        while store.keep_decisions(replace(made, key=key(number))) is None:
            pass  # A busy disk took longer than a call waits.
    store.close()
    return settings


def opening(settings: Settings) -> float:
    """Return the milliseconds from nothing to the answer that a key is not there."""
    begun = time.perf_counter_ns()
    store = Store(settings)
    assert store.decisions(key(-1)) is None
    taken = (time.perf_counter_ns() - begun) / 1e6
    store.close()
    return taken


def read_one(store: Store, kernels: int, random: np.random.Generator) -> None:
    """Read one kernel's table as a new process does."""
    assert store.decisions(key(int(random.integers(kernels)))) is not None


def store_rows(root: Path) -> list[dict[str, Any]]:
    """Time opening, reading one table, and a lookup in tables that were read."""
    rows: list[dict[str, Any]] = []
    reads: dict[str, Callable[[], Any]] = {}
    looks: dict[str, Callable[[], Any]] = {}
    random = np.random.default_rng(0)
    for kernels, decisions in STORES:
        settings = filled(root, kernels, decisions)
        name = f"{kernels} kernels, {kernels * decisions} decisions"
        taken = [opening(settings) for _ in range(ROUNDS)]
        rows.append({"what": f"opening with {name}", "unit": "ms", **spread(taken)})
        store = Store(settings)
        tables = Tables(lambda store=store: store)
        for number in range(kernels):
            tables.find(key(number), decision(0).point)
        reads[name] = partial(read_one, store, kernels, random)
        looks[name] = partial(look, tables, kernels, decisions, random)
    del reads[next(iter(reads))]  # Its table is 100 times smaller.
    return [
        *rows,
        *against_first("reading a table of 100", interleaved(reads, ROUNDS, 20)),
        *against_first("lookup", interleaved(looks, ROUNDS, 500)),
    ]


def look(
    tables: Tables, kernels: int, decisions: int, random: np.random.Generator
) -> None:
    """Find what serves a point of one kernel, both drawn."""
    kernel, number = int(random.integers(kernels)), int(random.integers(decisions))
    point = POINTS[number]
    assert tables.find(key(kernel), point) is not None


POINTS = [decision(number).point for number in range(1000)]


def table_rows(store: Store) -> list[dict[str, Any]]:
    """Time a lookup in one table of more and more decisions."""
    looks: dict[str, Callable[[], Any]] = {}
    random = np.random.default_rng(0)
    for decisions in TABLES:
        tables = Tables(lambda: store)
        tables.keep(table(0, decisions), writes=False)
        looks[f"1 table of {decisions}"] = partial(look, tables, 1, decisions, random)
    return against_first("lookup", interleaved(looks, ROUNDS, 500))


def against_first(what: str, times: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return microseconds, and the ratio of each to the smallest store."""
    first = next(iter(times.values()))
    rows = []
    for name, taken in times.items():
        us = spread([ns / 1e3 for ns in taken])
        rows.append({"what": f"{what}: {name}", "unit": "us", **us})
        rows.append({"what": f"{what}: {name}", "unit": "ratio", **ratio(taken, first)})
    return rows


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        append(
            "store",
            f"stores filled with kernels of 100 decisions of 8 candidates; {ROUNDS} "
            "shuffled rounds of 500 lookups in memory or 20 reads of a stored table, "
            "kernels and points drawn; ratios to the smallest by round; opening: a new "
            "Store until it says that a key is not there",
            store_rows(Path(place))
            + table_rows(Store(Settings(cache_dir=Path(place, "none")))),
        )
