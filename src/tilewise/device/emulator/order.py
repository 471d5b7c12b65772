"""
Order threads of a block that meet at barriers which don't take the whole block.

Vector clocks (F. Mattern, "Virtual Time and Global States of Distributed Systems",
1989): `known[b, u, t]` is the latest time of thread t that thread u has heard of. A
kernel that only has whole-block barriers needs none of it (`partial` is false).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["Order"]

Array: TypeAlias = Any


class Order:
    """Keep the clocks of the threads of a chunk."""

    def __init__(self, blocks: int, threads: int, *, partial: bool) -> None:
        self.threads, self.partial = threads, partial
        if partial:
            self.clock = np.ones(blocks * threads, np.int32)
            self.known = np.zeros((blocks, threads, threads), np.int32)

    def now(self, threads: Array) -> Array:
        """Return the threads' own times."""
        return self.clock.take(threads)

    def before(self, first: Array, times: Array, second: Array) -> Array:
        """Tell where what `first` did at its times comes before `second` now."""
        block, inner = second // self.threads, second % self.threads
        heard = self.known[block, inner, first % self.threads]
        return heard >= times

    def speak(self, threads: Array) -> Array:
        """Return a row of what each thread of one block knows; later is later."""
        block, inner = int(threads[0]) // self.threads, threads % self.threads
        known = self.known[block]
        known[inner, inner] = self.clock[threads]
        self.clock[threads] += 1
        return known[inner]

    def hear(self, threads: Array, rows: Array) -> None:
        """Let threads of one block know what is in the rows."""
        block, inner = int(threads[0]) // self.threads, threads % self.threads
        known = self.known[block]
        known[inner] = np.maximum(known[inner], rows.max(axis=0))

    def meet(self, threads: Array) -> None:
        """Let threads of one block know of each other."""
        if self.partial:
            self.hear(threads, self.speak(threads))
