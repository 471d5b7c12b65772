"""
Reach a first result in a fresh process: `numpy` or `tilewise`, then m, n and k.

Prints the monotonic time (ns) at the result, the variants that served and which of
the libraries that must stay away were imported.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

ABSENT = ("numba", "cupy", "cuda")


def dense(x: Any, w: Any, b: Any) -> Any:
    """Be the expression."""
    return np.maximum(x @ w + b, 0)


def main(way: str, m: int, n: int, k: int) -> None:
    """Compute one result and say when it was there."""
    x, w, b = (np.ones(shape, np.float32) for shape in ((m, k), (k, n), (n,)))
    if way == "numpy":
        dense(x, w, b)
        print(time.monotonic_ns())
        return
    import tilewise

    kernel = tilewise.tuned_kernel(dense)
    kernel(x, w, b)
    done = time.monotonic_ns()
    print(done, *kernel.stats.dispatches, *(m for m in ABSENT if m in sys.modules))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
