"""
Times between the measured points: a cost model for each variant, set right by them.

A variant's time is fitted as a sum of products of the sizes with coefficients >= 0
(for m, n, k: an overhead, traffic such as m n, and work m n k; compare the roofline
model, Williams, Waterman and Patterson, CACM 52, 2009), each size as it is or up to
whole vectors or tiles. What the model misses is
interpolated between the points nearby, weighted by inverse distance, in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewise.model.decision import Decision
from tilewise.model.variant import Variant
from tilewise.tuner.inputs import Array

__all__ = ["Axis", "Forecast", "Measured", "log2"]

POWER = 3
"""How fast a point's say falls with its distance: those around decide, not all."""

WHOLE = 16
"""What a last vector or tile costs, however little of it is needed."""

BARRED = ("rejected", "failed", "wrong")


@dataclass(frozen=True, slots=True)
class Axis:
    """A size that varies from `low` to `high`, both included and at least 1."""

    name: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Measured points as numbers.

    `sizes` is (points, axes); `us` (points, variants), NaN where there is no figure;
    `barred` says where a variant cannot serve. Variants come the simplest first.
    """

    variants: tuple[Variant, ...]
    sizes: Array
    us: Array
    barred: Array

    @classmethod
    def of(cls, decisions: Sequence[Decision]) -> Measured:
        """Gather the figures of some decisions about points with the same axes."""
        variants = in_order(decisions)
        places = {variant: i for i, variant in enumerate(variants)}
        shape = len(decisions), len(variants)
        us, barred = np.full(shape, math.nan), np.zeros(shape, bool)
        for row, decision in enumerate(decisions):
            for candidate in decision.candidates:
                place = places.get(candidate.variant)
                if place is None:
                    continue
                barred[row, place] = candidate.status in BARRED
                if candidate.status == "measured" and candidate.timing is not None:
                    us[row, place] = candidate.timing.median_us
        sizes = np.array([[size for _, size in d.point] for d in decisions])
        return cls(variants, sizes, us, barred)

    def only(self, rows: Array) -> Measured:
        """Return some of the points."""
        return Measured(
            self.variants, self.sizes[rows], self.us[rows], self.barred[rows]
        )


def in_order(decisions: Iterable[Decision]) -> tuple[Variant, ...]:
    """Return all measured variants in the order in which the decisions list them."""
    found: dict[Variant, None] = {}
    for decision in decisions:
        for candidate in decision.candidates:
            if candidate.status == "measured":
                found.setdefault(candidate.variant)
    return tuple(found)


class Forecast:
    """Predicts the logarithm of each variant's time anywhere in the space."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.logs = log2(measured.sizes)
        features = terms(measured.sizes)
        self.models: list[Array] = []
        self.rest = np.full(measured.us.shape, math.nan)
        for place in range(len(measured.variants)):
            known = np.isfinite(measured.us[:, place])
            model = fitted(features[known], measured.us[known, place])
            self.models.append(model)
            guess = np.log(np.maximum(features[known] @ model, 1e-9))
            self.rest[known, place] = np.log(measured.us[known, place]) - guess

    def times(self, sizes: Array) -> Array:
        """Return log(us) as (places, variants); inf where the next point is barred."""
        features, apart = terms(sizes), self.distances(sizes)
        near = 1 / (apart + 0.05) ** POWER
        found = np.empty((len(sizes), len(self.models)))
        for place, model in enumerate(self.models):
            known = np.isfinite(self.rest[:, place])
            if not known.any():
                found[:, place] = math.inf
                continue
            share = near[:, known]
            rest = (share @ self.rest[known, place]) / share.sum(axis=1)
            found[:, place] = np.log(np.maximum(features @ model, 1e-9)) + rest
        found[self.measured.barred[apart.argmin(axis=1)]] = math.inf
        return found

    def distances(self, sizes: Array) -> Array:
        """Return the distance of places to the measured points, in octaves."""
        apart = (log2(sizes)[:, None, :] - self.logs[None]) ** 2
        found: Array = np.sqrt(apart.sum(axis=2))
        return found


def log2(sizes: Array) -> Array:
    """Return the logarithms of sizes; 0 counts as 1."""
    found: Array = np.log2(np.maximum(sizes, 1))
    return found


def terms(sizes: Array) -> Array:
    """Return the products of all subsets of the sizes, each as it is or rounded up."""
    found = np.ones((len(sizes), 1))
    for size in sizes.astype(float).T:
        forms = np.stack([np.ones_like(size), size, np.ceil(size / WHOLE) * WHOLE])
        found = (found[:, :, None] * forms.T[:, None]).reshape(len(sizes), -1)
    return found


def fitted(features: Array, us: Array) -> Array:
    """Fit coefficients >= 0 to times, by least squares of the relative error."""
    kept = list(range(features.shape[1]))
    found = np.zeros(features.shape[1])
    if not len(us):
        return found
    scaled = features / us[:, None]
    widths = np.maximum(np.sqrt((scaled**2).sum(axis=0)), 1e-300)
    while kept:
        solved = np.linalg.lstsq(scaled[:, kept] / widths[kept], np.ones(len(us)))[0]
        if solved.min() >= 0:
            found[kept] = solved / widths[kept]
            break
        kept.pop(int(solved.argmin()))
    return found
