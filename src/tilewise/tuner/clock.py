"""The clock of a race, and how much of the machine others used meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

__all__ = ["CONTENDED", "WALL", "Clock", "busy_meter", "others_share"]

CONTENDED = 0.25
"""The share of the machine in others' hands from which a decision is contended."""

JIFFIES = 4
"""Readings that the two ends of an interval may be off, on each side two."""


def grain_ns(read: Callable[[], float]) -> float:
    """Return the smallest step of a clock, as seen in 50 reads."""
    reads = [read() for _ in range(51)]
    steps = [b - a for a, b in pairwise(reads) if b > a]
    return min(steps, default=1000.0)


@dataclass(frozen=True, slots=True)
class Clock:
    """
    How time is read, waited for and how busy the machine was.

    `read` gives nanoseconds; `rest` waits so many; `meter` starts watching and gives
    a function that says which share (0..1) of the machine others have used since.
    """

    name: str
    read: Callable[[], float]
    rest: Callable[[float], None]
    meter: Callable[[], Callable[[], float]]
    grain_ns: float = 100.0


def busy_meter(root: Path = Path("/proc")) -> Callable[[], float]:
    """Start watching the machine's and the own process's time; 0 without /proc."""
    begun = cpu_seconds(root), own_seconds(), time.perf_counter()

    def share() -> float:
        ended = cpu_seconds(root), own_seconds(), time.perf_counter()
        used, own, elapsed = (b - a for a, b in zip(begun, ended, strict=True))
        return others_share(used, own, elapsed, os.cpu_count() or 1)

    return share


def others_share(used_s: float, own_s: float, elapsed_s: float, cpus: int) -> float:
    """
    Return the share of the machine that others used, from CPU seconds.

    The kernel counts in steps of 10 ms: so much is taken off as the ends may be
    wrong, so that a short race is not called contended for a single step.
    """
    slack = JIFFIES * tick()
    others = used_s - own_s - slack
    return min(1.0, max(0.0, others / max(elapsed_s * cpus, 1e-9)))


def tick() -> float:
    """Return the seconds of one step of the kernel's counters."""
    return 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


def own_seconds() -> float:
    """Return the CPU seconds of this process, of all its threads and ended children."""
    return sum(os.times()[:4])


def cpu_seconds(root: Path) -> float:
    """Return the CPU seconds used by everybody, stolen ones included; 0 if unknown."""
    try:
        first = (root / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(float, first[1:9])
    return (user + nice + system + irq + softirq + steal) * tick()


WALL = Clock(
    "perf_counter_ns",
    time.perf_counter_ns,
    lambda ns: time.sleep(ns * 1e-9),
    busy_meter,
    grain_ns(time.perf_counter_ns),
)
"""The machine's own clock."""
