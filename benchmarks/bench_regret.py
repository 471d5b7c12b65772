"""
What tuning costs, and what its choices lose against trying everything.

    python benchmarks/bench_regret.py [largest size] [sizes drawn] [seconds to tune]

With the defaults 4096, 40 and 60 it takes about five minutes on two cores.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.problems import EPILOGUES
from benchmarks.record import append, interleaved
from tilewise import tuned_kernel
from tilewise.api.shapes import question_at
from tilewise.build.order import Counts
from tilewise.model.resolution import REFERENCE
from tilewise.runtime.once import resolver
from tilewise.runtime.race import entrants
from tilewise.tuner.contest import filling
from tilewise.tuner.sampling import caller

ROUNDS = 15
SAMPLE_S = 1e-3
WORK = 1 << 30
"""Multiplications of the largest problem that is drawn: trying all takes seconds."""

AGAIN = 10
PROBLEMS = ((16, 16, 16), (64, 512, 64), (256, 256, 256), (4096, 64, 64))
MADE = ("float32", "host", None)
PROTOCOL = (
    "tuned by a sweep first; sizes then drawn log-uniformly from a fresh seed, m*n*k "
    "up to 2^30; all variants and the function 15 shuffled rounds of 1 ms samples; the "
    "fastest of the first 7 rounds is the oracle, both are scored by the medians of "
    "the last 8; agreement: tunings without an incumbent; pass: every m from 1 once, "
    "results against NumPy's"
)


def dense(epilogue: str = "relu", budget_s: float = 1.0) -> Any:
    """Return a new kernel in a store of its own."""
    os.environ["TILEWISE_CACHE_DIR"] = tempfile.mkdtemp()
    resolver().tables.clear()
    return tuned_kernel(budget_s=budget_s)(EPILOGUES[epilogue])


def swept(kernel: Any, largest: int, budget_s: float) -> dict[str, Any]:
    """Tune a kernel over 1 to the largest size in each axis."""
    ranges = dict.fromkeys("mnk", (1, largest))
    begun = time.perf_counter()
    report = kernel.tune(ranges=ranges, budget_s=budget_s)
    whole = report.sweeps[-1]
    return {
        "figure": "sweep", "largest": largest, "budget_s": budget_s,
        "wall_s": round(time.perf_counter() - begun, 1),
        "measured_s": round(sum(one.measured_s for one in report.sweeps), 1),
        "compile_s": round(kernel.stats.compile_ms / 1e3, 1),
        "problems": sum(one.points for one in report.sweeps),
        "regions": len(whole.regions), "ended": whole.ended,
        "expected_regret": round(whole.regret, 4),
    }  # fmt: skip


def drawn(largest: int, count: int, random: np.random.Generator) -> list[Any]:
    """Draw sizes, those too large to try everything left out."""
    found: list[Any] = []
    while len(found) < count:
        logs = random.uniform(0, np.log2(largest + 1), 3)
        sizes = tuple(int(2**log) for log in logs)
        if np.prod(sizes, dtype=float) <= WORK:
            found.append(sizes)
    return found


def regret(kernel: Any, sizes: Any) -> dict[str, Any]:
    """Race all that can serve sizes; score the choice against the fastest."""
    question = question_at(
        kernel._subject, (), dict(zip("mnk", sizes, strict=True)), MADE
    )
    chosen = resolver().look(question)
    entered = entrants(resolver(), question, Counts())
    assert entered is not None
    case = entered.case
    calls = {
        str(one.variant): bound(caller(one, case, case.args), case.args)
        for one in (filling(case), *entered.contestants)
    }
    once = min(timed(call) for call in calls.values())
    times = interleaved(calls, ROUNDS, max(1, int(SAMPLE_S / once)))
    half = ROUNDS // 2
    first = {name: statistics.median(us[:half]) for name, us in times.items()}
    last = {name: statistics.median(us[half:]) for name, us in times.items()}
    oracle = min(first, key=lambda name: first[name])
    name = str(chosen.variant)
    return {
        "figure": "regret", "m": sizes[0], "n": sizes[1], "k": sizes[2],
        "variant": name, "grade": chosen.grade, "oracle": oracle,
        "regret": round(max(0.0, last[name] / last[oracle] - 1), 4),
        "speed": round(last[str(REFERENCE)] / last[name], 3),
    }  # fmt: skip


def bound(call: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a call with its arguments."""
    return lambda: call(*args)


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds of a call that is warm."""
    call()
    begun = time.perf_counter()
    call()
    return max(time.perf_counter() - begun, 1e-7)


def agreement(sizes: Any) -> dict[str, Any]:
    """Tune one problem several times from nothing; say how often the choice is one."""
    counts: Counter[str] = Counter()
    for _ in range(AGAIN):
        kernel = dense()
        report = kernel.tune(shapes=[sizes])
        counts[str(report.resolutions[0].variant)] += 1
    return {
        "figure": "agreement", "m": sizes[0], "n": sizes[1], "k": sizes[2],
        "tunings": AGAIN, "agree": counts.most_common(1)[0][1],
        "variants": dict(counts),
    }  # fmt: skip


def passed(kernel: Any, largest: int, how: str) -> dict[str, Any]:
    """Call a kernel for every m; count the tunings and compare each result."""
    random = np.random.default_rng(5)
    x, w, b = (
        random.standard_normal(s).astype("f4") for s in ((largest, 64), (64, 64), 64)
    )
    begun, before, worst = time.perf_counter(), kernel.stats.tunings, 0.0
    for m in range(1, largest + 1):
        result, right = kernel(x[:m], w, b), kernel.reference(x[:m], w, b)
        worst = max(worst, float(np.abs(result - right).max()))
    return {
        "figure": "pass", "how": how, "largest": largest,
        "tunings": kernel.stats.tunings - before, "largest_difference": worst,
        "seconds": round(time.perf_counter() - begun, 1),
    }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and worst regret."""
    found = [row["regret"] for row in rows]
    return {
        "figure": "regret of all", "problems": len(found),
        "mean": round(statistics.fmean(found), 4), "worst": max(found),
    }  # fmt: skip


def main(largest: int, count: int, budget_s: float) -> None:
    """Measure and record all figures."""
    kernel = dense()
    rows = [swept(kernel, largest, budget_s)]
    print(rows[0], flush=True)
    sizes = drawn(largest, count, np.random.default_rng())
    losses = [regret(kernel, one) for one in sizes]
    rows += [*losses, summary(losses)]
    print(rows[-1], flush=True)
    rows += [agreement(one) for one in PROBLEMS]
    rows.append(passed(dense(budget_s=0.2), largest, "tuned by calls"))
    kernel = dense()
    kernel.tune(ranges={"m": (1, largest), "n": 64, "k": 64}, budget_s=10)
    rows.append(passed(kernel, largest, "swept first"))
    append("regret", PROTOCOL, rows)


if __name__ == "__main__":
    given = [float(one) for one in sys.argv[1:]]
    main(*(int(one) for one in given[:2] or (4096, 40)), *(given[2:] or (60.0,)))
