"""What a call of a kernel with axes costs over its variant."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.record import append, interleaved, spread
from tilewise import tuned_kernel

ROUNDS, INNER = 41, 2000


@tuned_kernel(
    axes={"n": lambda x: x.size, "cells": lambda bins: bins * bins},
)
def first(x: Any, y: Any, bins: int) -> Any:
    """Be a kernel of two axes and three arguments."""
    return x[0] + y[0] + bins


@first.variant
def same(x: Any, y: Any, bins: int) -> Any:
    """Be its variant."""
    return x[0] + y[0] + bins


def rows() -> list[dict[str, Any]]:
    """Time a call, and its variant alone."""
    x, y = np.ones(1000), np.ones(1000)
    first.pin("user/same")
    first(x, y, 8)
    times = interleaved(
        {"call": lambda: first(x, y, 8), "variant": lambda: same(x, y, 8)},
        ROUNDS,
        INNER,
    )
    over = [a - b for a, b in zip(times["call"], times["variant"], strict=True)]
    return [{"what": "axes call minus its variant", "unit": "ns", **spread(over)}]


if __name__ == "__main__":
    append("axes", f"two axes, {ROUNDS} shuffled rounds of {INNER} calls", rows())
