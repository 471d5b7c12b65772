"""
What is right for a large result: spots of it closely, all of it against NumPy's.

Evaluating all of a large result in wider precision, several times, takes seconds. An
element depends on a row and a column of the factors alone, so that some rows and
columns of the result are evaluated closely, from their part of the arguments. They
show how far from NumPy's own result an element may usually be; the elements that are
farther off, the worst of them, are then evaluated closely as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewise.tuner.contest import Case
from tilewise.tuner.expect import Expected, Fault, expect
from tilewise.tuner.inputs import EPILOGUE, Array
from tilewise.tuner.nudge import spread

__all__ = ["Spots", "expect_spots"]

LARGE = 1 << 26
"""Multiplications from which a result is judged by spots."""

ROWS, COLUMNS = 64, 256
"""The rows and columns that are looked at closely, and rows of a second look."""

USUAL = 0.9
"""A few large rows or columns among the spots hide nothing in the others."""

TINY = float(np.finfo(np.float64).tiny)
LEAST = 1e-60
"""The size of a row of zeros, such that products of two do not vanish."""

CHUNK = 1 << 18
"""Elements that are compared at a time, within the second-level cache."""

Place = tuple[Array, Array]
"""Rows and columns."""


@dataclass(frozen=True, slots=True)
class Spots:
    """
    The results that count as right, by spots of them; see `Expected`.

    `expected` is what is right at `place`, `plain` NumPy's own result, and `near` how
    far from it nine of ten elements at `place` may be, as a factor for each row and one
    for each column: what is wrong in small rows does not hide behind large ones.
    """

    case: Case
    args: tuple[Any, ...]
    likely: bool
    plain: Array
    place: Place
    expected: Expected
    near: Place = field(init=False)

    def __post_init__(self) -> None:
        rows, columns = self.place
        sizes = size_of(self.plain[:, columns], 1), size_of(self.plain[rows], 0)
        scale = np.multiply.outer(sizes[0][rows], sizes[1][columns])
        radius = self.expected.radius.reshape(*scale.shape, -1).max(axis=2)
        usual = float(np.quantile(radius / scale, USUAL))
        object.__setattr__(self, "near", (sizes[0] * max(usual, TINY), sizes[1]))

    def judge(self, actual: Array) -> tuple[float, Fault | None]:
        """Return the largest error of a result, and its worst element if wrong."""
        error, fault = self.judged(actual, self.place, self.expected)
        if fault is not None:
            return error, fault
        place = self.doubtful(actual)
        if not place[0].size:
            return error, None
        other, fault = self.judged(actual, place, self.closely(place))
        return max(error, other), fault

    def judged(
        self, actual: Array, place: Place, expected: Expected
    ) -> tuple[float, Fault | None]:
        """Judge a part; a few elements that are off get the closest look."""
        error, fault = expected.judge(actual[np.ix_(*place)])
        if fault is None:
            return error, None
        row, column = (int(at[i]) for at, i in zip(place, fault.index, strict=True))
        if fault.doubtful:
            one = np.array([row]), np.array([column])
            error, fault = self.closely(one, True).judge(actual[np.ix_(*one)])
        return error, fault and replace(fault, index=(row, column))

    def closely(self, place: Place, closest: bool = False) -> Expected:
        """Evaluate a part in wider precision."""
        return closely(self.case, self.args, place, self.likely, closest)

    def doubtful(self, actual: Array) -> Place:
        """Return the worst elements that are too far from NumPy's, one in a row."""
        step = max(1, CHUNK // max(1, self.plain.shape[1]))
        parts = (slice(at, at + step) for at in range(0, len(actual), step))
        found = [self.excess(actual, part) for part in parts]
        excess, columns = map(np.concatenate, zip(*found, strict=True))
        worst = np.argsort(-excess, kind="stable")[:ROWS]
        rows = np.sort(worst[excess[worst] > 1])
        return rows, np.unique(columns[rows])

    def excess(self, actual: Array, part: slice) -> Place:
        """Return how many times too far each row's worst element is, and which."""
        mine, plain = actual[part], self.plain[part]
        if mine.dtype.kind in "fc":
            near = np.multiply.outer(self.near[0][part], self.near[1])
            with np.errstate(all="ignore"):
                apart = np.abs(mine - plain) / near
            if not np.isfinite(apart).all():  # NumPy's own NaN or infinities are right.
                apart[(mine == plain) | (np.isnan(mine) & np.isnan(plain))] = 0
                apart[np.isnan(apart)] = np.inf
        else:
            apart = np.where(mine != plain, np.inf, 0.0)
        columns = apart.argmax(axis=1)
        return np.take_along_axis(apart, columns[:, None], 1)[:, 0], columns


def size_of(plain: Array, axis: int) -> Array:
    """Return how large nine of ten elements along an axis are at most; above 0."""
    size = np.abs(plain).astype(np.float64)
    size[~np.isfinite(size)] = 0.0
    found: Array = np.maximum(np.quantile(size, USUAL, axis=axis), LEAST)
    return found


def expect_spots(case: Case, args: Sequence[Any], likely: bool) -> Spots | None:
    """
    Return what is right for a large case, or None where all of it should be looked at.

    That is for small ones, for a tolerance that is a function, where arguments have no
    parts, and where the function of a part is not that part of the function.
    """
    if case.part is None or callable(case.tolerance) or work(case) < LARGE:
        return None
    with np.errstate(all="ignore"):
        plain = np.asarray(case.reference(*args)).astype(case.dtype, copy=False)
    rows, columns = case.shape
    place = spread(rows, ROWS), spread(columns, COLUMNS)
    # All rows may be in the sample, and their number in the function: one by itself.
    last = place[0][-1:], place[1][-1:]
    looks = [(at, closely(case, args, at, likely)) for at in (place, last)]
    if plain.shape != case.shape or not all(agree(plain, *look) for look in looks):
        return None
    return Spots(case, tuple(args), likely, plain, *looks[0])


def agree(plain: Array, place: Place, expected: Expected) -> bool:
    """Say whether NumPy's own result is right by the evaluation of a part."""
    return expected.judge(plain[np.ix_(*place)])[1] is None


def work(case: Case) -> int:
    """Return what a case costs, in multiplications."""
    return int(np.prod(case.shape)) * max(case.depth, EPILOGUE)


def closely(
    case: Case, args: Sequence[Any], place: Place, likely: bool, closest: bool = False
) -> Expected:
    """Evaluate a part of a result in wider precision."""
    assert case.part is not None
    own, shape = case.part(args, *place), (len(place[0]), len(place[1]))
    part = replace(case, args=own, shape=shape, part=None)
    return expect(part, own, likely=likely, closely=closest)
