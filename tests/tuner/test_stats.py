"""Medians, their intervals, and paired ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewise.tuner.stats import Interval, median_interval, ratio


def test_the_interval_covers_the_median() -> None:
    """Of 400 intervals from skewed samples, 95 % cover the true median."""
    random = np.random.default_rng(0)
    found = [median_interval(np.exp(random.standard_normal(30))) for _ in range(400)]
    covered = np.mean([i.low <= 1 <= i.high for i in found])
    assert 0.93 <= covered <= 0.99


def test_few_samples_have_no_interval() -> None:
    """Three samples bound nothing at 95 %; their extremes are told."""
    assert Interval(2.0, -math.inf, math.inf, 3, 1.0, 3.0) == median_interval([3, 1, 2])


def test_no_samples() -> None:
    """Without samples the median is NaN."""
    assert math.isnan(median_interval([]).median)


def test_ratios_are_paired() -> None:
    """Load that doubles both in a round leaves the ratio as it was."""
    found = ratio([2.0, 4.0, 2.2], [1.0, 2.0, 1.1])
    assert (pytest.approx(math.log(2)), 3) == (found.median, found.count)


def test_rounds_that_one_missed_do_not_count() -> None:
    """A pair with NaN is left out."""
    assert 1 == ratio([1.0, math.nan, 3.0], [math.nan, 2.0, 1.5]).count
