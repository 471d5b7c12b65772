"""
From expected losses to boxes: a tree that splits the sizes where the winner changes.

The leaves of a classification tree (Breiman et al., Classification and Regression
Trees, 1984) are boxes without gap or overlap; its cost is the time that is lost, not
the number of wrong names. A split lies between two integers: the same integers decide
when it is applied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewise.model.decision import Range, Region, enclosing
from tilewise.tuner.inputs import Array
from tilewise.tuner.rule import TIE

__all__ = ["Leaf", "grow", "leaf_of", "opened"]

LEAST_GAIN = 1e-4
"""A split must save this share of the time, on average over the whole space."""

Spans = Sequence[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A box with the position of its variant, the places in it, and their mean loss."""

    region: Region
    variant: int
    rows: tuple[int, ...]
    loss: float


def grow(spans: Spans, sizes: Array, loss: Array) -> tuple[Leaf, ...]:
    """
    Return boxes that cover a space, each with its best variant.

    `spans` are name, low and high of each axis, `sizes` (places, axes) and `loss`
    (places, variants) what each variant loses there; inf where it cannot serve.
    """
    whole = tuple(Range(*span) for span in spans)
    count = LEAST_GAIN * len(sizes)
    return tuple(split(whole, sizes, loss, np.arange(len(sizes)), count))


def split(
    region: Region, sizes: Array, loss: Array, rows: Array, least_gain: float
) -> list[Leaf]:
    """
    Return a region's leaves: itself, or those of its halves where that saves enough.

    A region is first split as far as it goes, then what saves too little is taken
    back: a corner shows no gain before its second cut.
    """
    variant, total = best(loss[rows])
    whole = Leaf(region, variant, tuple(rows.tolist()), total / max(len(rows), 1))
    cut = best_cut(sizes, loss, rows) if total > least_gain else None
    if cut is None:
        return [whole]
    axis, last = cut
    lower, leaves = sizes[rows, axis] <= last, []
    for half, part in zip(halves(region, axis, last), (lower, ~lower), strict=True):
        leaves += split(half, sizes, loss, rows[part], least_gain)
    after = sum(leaf.loss * len(leaf.rows) for leaf in leaves)
    saves = total - after >= least_gain * (len(leaves) - 1)
    return leaves if saves and after < total else [whole]


def best(loss: Array) -> tuple[int, float]:
    """Return the simplest of those that lose least over some places, and its loss."""
    total = loss.sum(axis=0)
    near = total <= total.min() + TIE * len(loss)
    variant = int(np.argmax(near))
    return variant, float(total[variant])


def best_cut(sizes: Array, loss: Array, rows: Array) -> tuple[int, int] | None:
    """
    Return (axis, last size of the lower half) of the best split.

    Of splits that are equal the most even one; None for places of one size.
    """
    found, least = None, (math.inf, math.inf)
    for axis in range(sizes.shape[1]):
        order = rows[np.argsort(sizes[rows, axis], kind="stable")]
        ordered = sizes[order, axis]
        below = np.cumsum(loss[order], axis=0)[:-1].min(axis=1)
        above = np.cumsum(loss[order[::-1]], axis=0)[::-1][1:].min(axis=1)
        costs = np.where(ordered[:-1] < ordered[1:], below + above, math.inf)
        if not costs.size or math.isinf(costs.min()):
            continue
        equal = np.flatnonzero(costs <= costs.min() * (1 + 1e-9))
        place = int(equal[np.abs(equal - len(rows) / 2).argmin()])
        rank = float(costs[place]), abs(place - len(rows) / 2)
        if rank < least:
            low, high = int(ordered[place]), int(ordered[place + 1])
            least, found = rank, (axis, min(high - 1, math.isqrt(low * high)))
    return found


def halves(region: Region, axis: int, last: int) -> tuple[Region, Region]:
    """Cut a box along an axis: up to `last`, and from the next integer on."""
    span = region[axis]
    lower, upper = (
        Range(span.axis, span.low, last),
        Range(span.axis, last + 1, span.high),
    )
    return tuple(  # type: ignore[return-value]
        (*region[:axis], part, *region[axis + 1 :]) for part in (lower, upper)
    )


def leaf_of(leaves: Sequence[Leaf], sizes: Array) -> Leaf:
    """Return the leaf that holds a point; outside, the one next to it."""
    spans = [(s.low, s.high) for s in enclosing([leaf.region for leaf in leaves])]
    inside = [
        min(max(int(v), a), b or int(v)) for v, (a, b) in zip(sizes, spans, strict=True)
    ]
    return next(
        leaf
        for leaf in leaves
        if all(v in s for v, s in zip(inside, leaf.region, strict=True))
    )


def opened(leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, Region]]:
    """Yield the leaves at the border with their boxes opened to what lies beyond."""
    around = enclosing([leaf.region for leaf in leaves])
    for leaf in leaves:
        beyond = tuple(
            Range(
                span.axis,
                0 if span.low == edge.low else span.low,
                None if span.high == edge.high else span.high,
            )
            for span, edge in zip(leaf.region, around, strict=True)
        )
        if beyond != leaf.region:
            yield leaf, beyond
