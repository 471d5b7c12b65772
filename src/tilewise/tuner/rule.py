"""
The winner rule: who wins, who ties, who can't win, and whether that is settled.

A challenger must beat the incumbent by the margin; among those that do, the simplest
within a tie of the fastest wins. The incumbent is the reference at first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewise.tuner.stats import SURE, Interval, ratio

__all__ = ["TIE", "Standing", "apart", "standing"]

TIE = 0.02
"""Two less than 2 % apart count as one: the simpler wins, at a loss of at most that."""

FEW = 6
"""Below so many pairs there is no 95 % interval."""

FEW_MARGIN = 0.25
"""With few pairs each of them must show at least this gain."""

Samples = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Standing:
    """
    The race as it stands, by position, the simplest first.

    `ties` could not be told from the winner; `hopeless` cannot win any more;
    `settled` says that more samples would not change the winner.
    """

    winner: int
    ties: tuple[int, ...]
    hopeless: frozenset[int]
    settled: bool


def standing(samples: Samples, base: int, margin: float) -> Standing:
    """
    Judge a race.

    `samples` holds each contestant's microseconds by round, NaN where it missed one;
    `base` is the position of the incumbent.
    """
    rivals = [i for i in range(len(samples)) if i != base]
    need = math.log1p(margin)
    gains = {i: ratio(samples[base], samples[i]) for i in rivals}
    winning = [i for i in rivals if beats(gains[i], need)]
    winner, leader = base, base
    if winning:
        leader = max(winning, key=lambda i: gains[i].median)
        losses = {i: ratio(samples[i], samples[leader]).median for i in winning}
        winner = next(i for i in winning if losses[i] < math.log1p(TIE))
    ties = tuple(
        i
        for i in range(len(samples))
        if i != winner
        and tied(ratio(samples[i], samples[winner]), winner == base, need)
    )
    hopeless, open_ = outlook(samples, base, leader, need)
    return Standing(winner, ties, hopeless, not open_)


def beats(gain: Interval, need: float) -> bool:
    """Say whether a gain is over the margin and no accident."""
    if gain.count >= FEW:
        return gain.median > need and gain.low > 0
    return gain.least > max(need, math.log1p(FEW_MARGIN))


def tied(apart: Interval, stays: bool, need: float) -> bool:
    """
    Say whether a contestant counts as equal to the winner, by their ratio.

    Its interval reaches a tie's width; one that beats an incumbent that `stays`, but
    not by the margin, is equal too.
    """
    low, high = (apart.low, apart.high)
    if apart.count < FEW:
        low, high = apart.least, apart.most
    width = math.log1p(TIE)
    return low < width and (high > -width or (stays and high > -need))


def outlook(
    samples: Samples, base: int, leader: int, need: float
) -> tuple[frozenset[int], list[int]]:
    """Return who cannot win any more, and who may still change the winner."""
    hopeless, open_ = set(), []
    for i in range(len(samples)):
        if i == base:
            continue
        gain = ratio(samples[base], samples[i], SURE)
        lag = ratio(samples[i], samples[leader], SURE)
        if gain.high < need or lag.low > math.log1p(TIE) or far(samples, i, leader):
            hopeless.add(i)
        elif gain.low < need or (i != leader and lag.high > math.log1p(TIE)):
            open_.append(i)
    return frozenset(hopeless), open_


def far(samples: Samples, one: int, leader: int) -> bool:
    """Say whether three rounds or more all show a contestant at half the speed."""
    lag = ratio(samples[one], samples[leader])
    return lag.count >= 3 and lag.least > math.log(2.0)


def apart(
    figures: Sequence[tuple[float, float, float]], base: int, margin: float
) -> tuple[int, tuple[int, ...]]:
    """
    Return winner and ties from (median, low, high) of different races.

    A challenger needs the margin and an interval that lies below the incumbent's.
    """
    middle, floor, _ = figures[base]
    winning = [
        i
        for i, (median, _, high) in enumerate(figures)
        if i != base and median * (1 + margin) < middle and high < floor
    ]
    winner = base
    if winning:
        best = min(figures[i][0] for i in winning)
        winner = next(i for i in winning if figures[i][0] < best * (1 + TIE))
    _, low, high = figures[winner]
    wide = margin if winner == base else TIE
    ties = tuple(
        i
        for i, (_, least, most) in enumerate(figures)
        if i != winner and least < high * (1 + TIE) and low < most * (1 + wide)
    )
    return winner, ties
