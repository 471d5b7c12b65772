"""Medians with intervals, of times and of paired ratios; no distribution is assumed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["SURE", "Z95", "Interval", "median_interval", "ratio"]

Z95 = 1.96
SURE = 3.29
"""99.9 %: for decisions that are looked at again and again while sampling goes on."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A median with the bounds of its interval; number and extremes of the samples."""

    median: float
    low: float
    high: float
    count: int
    least: float = math.nan
    most: float = math.nan


def median_interval(samples: Sequence[float], z: float = Z95) -> Interval:
    """
    Return the median with its interval from order statistics.

    The bounds are the samples of ranks n/2 -+ z sqrt(n)/2 (normal approximation of
    the binomial distribution; Conover, Practical Nonparametric Statistics, 3rd ed.,
    section 3.2). With too few samples for `z` they are minus and plus infinity.
    """
    values = np.sort(np.asarray(samples, float))
    count = len(values)
    if not count:
        return Interval(math.nan, -math.inf, math.inf, 0)
    middle = float(np.median(values))
    first = math.floor(count / 2 - z * math.sqrt(count) / 2)
    low, high = -math.inf, math.inf
    if first >= 0:
        low, high = float(values[first]), float(values[-1 - first])
    return Interval(middle, low, high, count, float(values[0]), float(values[-1]))


def ratio(over: Sequence[float], under: Sequence[float], z: float = Z95) -> Interval:
    """
    Return the median of log(over / under) with its interval, pair by pair.

    Pairs come from the same round, so that load which lasts longer than a round
    moves both; rounds that either missed (NaN) do not count.
    """
    logs = np.log(np.asarray(over, float) / np.asarray(under, float))
    return median_interval(logs[np.isfinite(logs)], z)
