"""The space of sizes as a lattice, with what each variant is expected to lose there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tilewise.model.variant import Variant
from tilewise.tuner.forecast import Axis, Forecast, Measured, log2
from tilewise.tuner.inputs import Array
from tilewise.tuner.regions import Leaf, grow, leaf_of
from tilewise.tuner.rule import TIE

__all__ = ["Survey", "boxes", "held_out", "levels", "risk", "survey", "volumes"]

LEVELS = {1: 97, 2: 25, 3: 13, 4: 6}
"""Sizes of the lattice on each axis: every octave of 1..4096 with three axes."""

SPREAD = 0.15
"""The standard deviation of a forecast two octaves away from all points (15 %)."""

FOLDS = 8


@dataclass(frozen=True, slots=True)
class Survey:
    """A lattice: its sizes, (places, variants) of expected loss, and the forecast."""

    variants: tuple[Variant, ...]
    sizes: Array
    loss: Array
    times: Array
    forecast: Forecast


def survey(axes: Sequence[Axis], measured: Measured, finer: int = 1) -> Survey:
    """Forecast all variants over the lattice of a space, `finer` times as fine."""
    sizes, forecast = lattice(axes, finer), Forecast(measured)
    times = forecast.times(sizes)
    return Survey(measured.variants, sizes, losses(times), times, forecast)


def losses(times: Array) -> Array:
    """Return by how much each is slower than the fastest; 0 within a tie."""
    loss: Array = np.expm1(times - times.min(axis=1, keepdims=True))
    return np.where(loss < TIE, 0.0, loss)


def lattice(axes: Sequence[Axis], finer: int = 1) -> Array:
    """Return all places of the lattice."""
    count = finer * (LEVELS.get(len(axes), 4) - 1) + 1
    return np.array(list(product(*(levels(axis, count) for axis in axes))))


def levels(axis: Axis, count: int) -> list[int]:
    """Return up to `count` different sizes of an axis, evenly spaced in logarithms."""
    spaced = np.linspace(math.log2(axis.low), math.log2(axis.high), count)
    return sorted({round(2**x) for x in spaced.tolist()})


def risk(found: Survey) -> Array:
    """
    Return what choosing by the forecast is expected to lose at each place.

    The forecast of a difference is taken as normal, with a spread that grows with
    the distance from the measured points: the expected gain of each other variant
    (as in expected improvement, Jones, Schonlau and Welch, J. Glob. Optim. 13, 1998).
    """
    order = np.sort(found.times, axis=1)
    apart = found.forecast.distances(found.sizes).min(axis=1)
    spread = SPREAD * np.minimum(apart / 2, 1.0) + 1e-9
    total = np.zeros(len(order))
    for place in range(1, order.shape[1]):
        z = (order[:, place] - order[:, 0]) / spread
        density = np.exp(-0.5 * np.minimum(z, 30) ** 2) / math.sqrt(2 * math.pi)
        total += spread * np.maximum(density - z * above(z), 0.0)
    return np.where(np.isfinite(total), total, 0.0)


def above(z: Array) -> Array:
    """Return the upper tail of the normal distribution for z >= 0 (Zelen, Severo)."""
    z = np.minimum(z, 30)
    t = 1 / (1 + 0.33267 * z)
    poly = t * (0.4361836 + t * (-0.1201676 + t * 0.9372980))
    tail: Array = poly * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return tail


def volumes(axes: Sequence[Axis], sizes: Array, count: int = 4096) -> Array:
    """Return each point's share of the log-size space: that of which it is nearest."""
    low, high = (np.log2([getattr(a, n) for a in axes]) for n in ("low", "high"))
    places = low + np.random.default_rng(0).random((count, len(axes))) * (high - low)
    apart = ((places[:, None, :] - log2(sizes)[None]) ** 2).sum(axis=2)
    shares: Array = np.bincount(apart.argmin(axis=1), minlength=len(sizes)) / count
    return shares


def held_out(axes: Sequence[Axis], measured: Measured) -> Array:
    """
    Return what each measured point loses under boxes drawn without it.

    Cross-validation in eight parts. A variant without a figure at a point is judged
    by the forecast from all points; one that is barred gives way to the reference.
    """
    count = len(measured.sizes)
    real = Forecast(measured).times(measured.sizes)
    real = np.where(np.isfinite(measured.us), np.log(measured.us), real)
    loss = losses(real)
    found = np.zeros(count)
    parts = np.random.default_rng(0).permutation(count) % min(FOLDS, count)
    for part in range(min(FOLDS, count) if count > 1 else 0):
        leaves = boxes(axes, survey(axes, measured.only(parts != part)))
        for row in np.flatnonzero(parts == part):
            variant = leaf_of(leaves, measured.sizes[row]).variant
            lost = loss[row, variant]
            found[row] = lost if math.isfinite(lost) else loss[row, 0]
    return found


def boxes(axes: Sequence[Axis], found: Survey) -> tuple[Leaf, ...]:
    """Draw the boxes of a survey."""
    spans = [(axis.name, axis.low, axis.high) for axis in axes]
    return grow(spans, found.sizes, found.loss)
