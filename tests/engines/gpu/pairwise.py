"""
Make the table of cases in which every pair of values meets: `python pairwise.py`.

Greedy: of some random rows the one with the most new pairs is taken, until none is
left. The table is committed, so that a run tries what the last one tried.
"""

from __future__ import annotations

import csv
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from tests.engines.gpu.cases import (
    DTYPES,
    EPILOGUES,
    KERNELS,
    LANDINGS,
    LAYOUTS,
    SIZES,
    VALUES,
    Case,
)

TABLE = Path(__file__).with_name("pairwise.csv")
COLUMNS = (KERNELS, tuple(EPILOGUES), LAYOUTS, SIZES, VALUES, DTYPES, LANDINGS)
INEXACT = ("plain", "bias", "wide")
"""Epilogues without jumps, which take sums that are not exact."""
HEAVY = ("smooth", "double")
"""Epilogues that take seconds to compile in float64: `nox -s emulate` does."""

Pair = tuple[int, str, int, str]


def allowed(row: Sequence[str]) -> bool:
    """Say whether a row is for this table: steps and jumps need exact sums."""
    inexact = row[4] == "random" and row[1] not in INEXACT
    return not inexact and not (row[5] == "float64" and row[1] in HEAVY)


def pairs(row: tuple[str, ...]) -> set[Pair]:
    """Return the pairs of values that a row has."""
    return {
        (i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)
    }


def wanted() -> set[Pair]:
    """Return all pairs that some allowed row has."""
    found = set()
    usual = [KERNELS[0], "plain", "C C", "1", "exact", "float32", "lazy"]
    for (i, first), (j, second) in itertools.combinations(enumerate(COLUMNS), 2):
        for a, b in itertools.product(first, second):
            row = [*usual[:i], a, *usual[i + 1 : j], b, *usual[j + 1 :]]
            if allowed(row):
                found.add((i, a, j, b))
    return found


def rows(seed: int = 1) -> Iterator[tuple[str, ...]]:
    """Yield rows until every pair was there."""
    left, dice = wanted(), random.Random(seed)
    while left:
        i, a, j, b = min(left)
        tries = []
        while len(tries) < 60:
            row = [dice.choice(column) for column in COLUMNS]
            row[i], row[j] = a, b
            if allowed(tuple(row)):
                tries.append(tuple(row))
        best = max(tries, key=lambda row: len(pairs(row) & left))
        left -= pairs(best)
        yield best


def read() -> list[Case]:
    """Return the committed table."""
    with TABLE.open(newline="") as file:
        return [Case(*row) for row in itertools.islice(csv.reader(file), 1, None)]


def main() -> None:
    """Write the table."""
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Case))
        writer.writerows(sorted(astuple(Case(*row)) for row in rows()))


if __name__ == "__main__":
    main()
