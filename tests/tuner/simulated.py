"""
A clock that only moves when a contestant runs, with the noise of a shared machine.

Each call takes its time times lognormal noise; one in twelve meets a spike of up to
sixty times, and load comes and goes for stretches, in which all take 1.3 to 2 times
as long (facts: 256^3 took 0.27 ms quiet and 16 ms loaded).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewise.model.variant import Variant
from tilewise.tuner.clock import Clock
from tilewise.tuner.sampling import Sampler


@dataclass
class Machine:
    """A simulated machine; `noise` 0 makes it exact."""

    seed: int = 0
    noise: float = 0.04
    spikes: float = 1 / 12
    busy: float = 0.0
    now: float = 0.0
    rested: float = 0.0
    random: np.random.Generator = field(init=False)
    until: float = 0.0
    load: float = 1.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def clock(self) -> Clock:
        """The machine's clock, in ns, with a grain of 100."""
        return Clock("simulated", lambda: self.now, self.rest, self.meter, 100.0)

    def rest(self, ns: float) -> None:
        """Let time pass."""
        self.now += ns
        self.rested += ns

    def meter(self) -> Callable[[], float]:
        """Say that others use a fixed share."""
        return lambda: self.busy

    def spend(self, us: float) -> None:
        """Let a call of so many microseconds run."""
        if not self.noise:
            self.now += us * 1e3
            return
        if self.now >= self.until:
            self.load = 1.0 if self.load > 1 else self.random.uniform(1.3, 2)
            self.until = self.now + self.random.exponential(3e7)
        taken = us * self.load * np.exp(self.noise * self.random.standard_normal())
        if self.random.random() < self.spikes:
            taken *= self.random.uniform(1, 60)
        self.now += float(taken) * 1e3

    def sampler(self, us: float) -> Sampler:
        """Return a sampler of calls that take `us` microseconds in the quiet."""

        def sample(calls: int) -> float:
            begun = self.now
            for _ in range(calls):
                self.spend(us)
            return self.now - begun

        return sample

    def entries(self, times: Sequence[float]) -> list[tuple[Variant, Sampler]]:
        """Return the reference and then a, b, c, ... at these microseconds."""
        names = [Variant("reference"), *(Variant("test", n) for n in "abcdefgh")]
        return [(v, self.sampler(us)) for v, us in zip(names, times, strict=False)]
