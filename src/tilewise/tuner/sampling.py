"""
How one contestant is timed: what a user's call comes to, on copies of the arguments.

The output is allocated, the Python around the code runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from tilewise.device.views import device_empty, is_device_array
from tilewise.engines.base import bound_run
from tilewise.model.resolution import REFERENCE
from tilewise.tuner.bench import placed
from tilewise.tuner.clock import Clock
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.inputs import Guarded, guarded, is_plain

__all__ = ["Sampler", "caller", "sampler"]

Sampler = Callable[[int], float]
"""sampler(calls): make so many calls and return the nanoseconds that they took."""

COLD_BYTES = 1 << 26
COLD_COPIES = 64
"""A cold cache: arguments rotate through 64 MiB or 64 copies."""


def caller(
    contestant: Contestant, case: Case, args: Sequence[Any]
) -> Callable[..., Any]:
    """Return what a user's call comes to: a function, or an output and a run."""
    if contestant.variant == REFERENCE:
        return case.bench.reference if case.bench else case.reference
    if contestant.direct is not None:
        return contestant.direct
    shape, dtype = case.shape, case.dtype
    like = next((arg for arg in args if is_device_array(arg)), None)
    empty = np.empty if like is None else partial(device_empty, like)
    run = bound_run(contestant.run, args) if case.bound else contestant.run

    def call(*args: Any) -> Any:
        return run(*args, empty(shape, dtype))

    return call


def sampler(
    contestant: Contestant, case: Case, clock: Clock, cache: str = "warm"
) -> Sampler:
    """Time a contestant in this process, on copies of the caller's arguments."""
    turns = [copies(case) for _ in range(rotation(case, cache))]
    # Lazy: what fails to bind fails in its lane.
    sets = cycle((caller(contestant, case, args), args) for args in turns)
    read, bench = clock.read, case.bench

    def sample(calls: int) -> float:
        taken = [next(sets) for _ in range(calls)]

        def each() -> None:
            for call, args in taken:
                call(*args)

        if bench is not None:
            return bench.time_ns(each, taken[0][1])
        begun = read()
        each()
        return read() - begun

    return sample


def copies(case: Case) -> tuple[Any, ...]:
    """Copy a case's arrays in their layouts: a contestant cannot spoil the caller's."""
    made = [guarded(a, a) if is_plain(a) else a for a in case.args]
    if case.bench is None:
        return tuple(a.array if isinstance(a, Guarded) else a for a in made)
    device = case.bench.device
    return tuple(placed(device, a)[1] if isinstance(a, Guarded) else a for a in made)


def rotation(case: Case, cache: str) -> int:
    """Return how many copies of the arguments take turns."""
    if cache == "warm":
        return 1
    arrays = [a for a in case.args if isinstance(a, np.ndarray)]
    size = sum(a.nbytes for a in arrays)
    return max(2, min(COLD_COPIES, math.ceil(COLD_BYTES / max(size, 1))))
