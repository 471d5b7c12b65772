"""Problems whose times are known: a landscape over (m, n, k) on a simulated machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.tuner.simulated import Machine
from tilewise.model.decision import Decision, Point
from tilewise.model.measurement import Candidate
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.contest import Case, Contestant

SMALL, BLAS, TALL = (Variant("test", name) for name in ("small", "blas", "tall"))

Times = Mapping[Variant, Callable[..., float]]


def plane(m: int, n: int, k: int) -> dict[Variant, float]:
    """Return microseconds that look like a CPU's: overheads, rates, a tall corner."""
    work, result = m * n * k, m * n
    return {
        REFERENCE: 4 + work / 8e4 + result / 800,
        SMALL: 1 + work / 6e3 + result / 4e3,
        BLAS: 3 + work / 8e4 + result / 2e3,
        TALL: 5 + work / 6e4 + result / 6e3,
    }


@dataclass
class Landscape:
    """Poses points; counts how often each variant was run at each."""

    machine: Machine
    times: Callable[..., dict[Variant, float]] = plane
    rejects: Callable[[Variant, Point], str | None] = lambda variant, point: None
    runs: dict[tuple[Variant, Point], int] = field(default_factory=dict)

    def pose(
        self, point: Point
    ) -> tuple[Case, Sequence[Contestant], Sequence[Candidate]]:
        """Return a point's case with all contestants that take it."""
        times = self.times(*(size for _, size in point))
        one = np.ones((1, 1), np.float32)

        def reference(x: Any) -> Any:
            if type(x) is np.ndarray and x.dtype == one.dtype:  # not the wider oracle
                self.count(REFERENCE, point)
                self.machine.spend(times[REFERENCE])
            return x

        case = Case((one,), reference, None, (1, 1), one.dtype, 0, point=point)
        others = [v for v in times if v != REFERENCE]
        reasons = {v: self.rejects(v, point) for v in others}
        able = [
            Contestant(v, self.run(v, point, times[v]))
            for v in others
            if reasons[v] is None
        ]
        unable = [Candidate(v, "rejected", r) for v, r in reasons.items() if r]
        return case, able, unable

    def run(self, variant: Variant, point: Point, us: float) -> Callable[..., Any]:
        """Return a run that takes its time."""

        def run(x: Any, out: Any) -> Any:
            self.count(variant, point)
            self.machine.spend(us)
            out[...] = x
            return out

        return run

    def count(self, variant: Variant, point: Point) -> None:
        """Count a run."""
        key = variant, point
        self.runs[key] = self.runs.get(key, 0) + 1

    def loss(self, decisions: Sequence[Decision], sizes: Sequence[int]) -> float:
        """Return what the region that holds some sizes loses there."""
        point = tuple(zip(("m", "n", "k"), map(int, sizes), strict=False))
        times = self.times(*(size for _, size in point))
        chosen = next(d for d in decisions if d.covers(point)).variant
        return times[chosen] / min(times.values()) - 1
