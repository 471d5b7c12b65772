"""
The race: interleaved, shuffled rounds until the winner is settled or time is up.

Samples are long against the clock's grain; the number of calls in one
is part of the protocol.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewise.model.measurement import Protocol, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.clock import WALL, Clock
from tilewise.tuner.isolate import Lost, ending_of
from tilewise.tuner.rule import Standing, standing
from tilewise.tuner.sampling import Sampler
from tilewise.tuner.stats import median_interval
from tilewise.tuner.watch import tell

__all__ = ["LEAST_S", "MOST_S", "Lane", "Outcome", "Rules", "race"]

SAMPLE_NS = 50_000.0
GRAINS = 200
"""A sample lasts at least 50 us and 200 grains of the clock."""

CALLS_MAX = 4096
FIRST_LOOK = 3
GROWTH = 1.4
"""The standing is judged after 3 rounds, then each time there are 1.4 times as many."""

LEAST_S, MOST_S = 1.0, 10.0
LEAST_CALLS = 24
"""Without a stated budget a race takes 1 s, or 24 of the incumbent's calls: within 1 s
a product of 2048 cubed left most variants untried on two busy cores."""

LONE = 9
"""Rounds of one that has no rival (left): its figure is kept for later ones."""

LOUD = 1.5
REST_NS = 1e7
RESTED = 4
"""One after which four calls of another all take 1.5 times as long as four that had
10 ms of rest is loud: those after it get that rest (OpenMP's threads spin for 8)."""

REFUSALS = 3
"""A contestant whose clock fails so often in a row is out."""

SPIN_NS = 1.2e8
DISTURBED = 1.15
"""A threaded one that takes 1.15 times as long right after the incumbent as when it
is by itself is shy: it runs by itself. OpenBLAS's threads spin for 100 ms after a
product, on the processors that the other's threads need."""

SHY_S = 2.0
TURN = 4
"""Where there are shy ones they and the others take turns, of four rounds each; a race
without a stated budget then takes two seconds more, most of them rests."""


@dataclass(slots=True)
class Lane:
    """
    One contestant's way through the race; `us` holds NaN for a round it missed.

    A `loud` one, such as one with threads that go on spinning, slows whoever comes
    next, so that the others rest after it; a `shy` one, whose threads others' spinning
    ones hold up, is timed by itself.
    """

    variant: Variant
    sample: Sampler
    calls: int = 1
    call_ns: float = 0.0
    us: list[float] = field(default_factory=list)
    loud: bool = False
    shy: bool = False
    reason: str = ""
    failed: bool = False
    running: bool = True
    refused: int = 0

    @property
    def rounds(self) -> int:
        """How many samples count."""
        return sum(map(math.isfinite, self.us))


@dataclass(frozen=True, slots=True)
class Rules:
    """The margin of a win, the clock, and whether arguments take turns ("cold")."""

    margin: float = 0.05
    clock: Clock = WALL
    cache: str = "warm"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a race gave: the lanes, who won, and the share that others used."""

    lanes: tuple[Lane, ...]
    standing: Standing
    busy: float
    protocol: Protocol

    @property
    def winner(self) -> Variant:
        """The variant that won."""
        return self.lanes[self.standing.winner].variant

    @property
    def ties(self) -> tuple[Variant, ...]:
        """Those that could not be told from the winner."""
        return tuple(self.lanes[i].variant for i in self.standing.ties)

    def timing(self, lane: Lane) -> Timing | None:
        """Return a lane's median with its 95 % interval, or None without samples."""
        taken = [us for us in lane.us if math.isfinite(us)]
        if not taken:
            return None
        found = median_interval(taken)
        few = math.isinf(found.high)
        low, high = (min(taken), max(taken)) if few else (found.low, found.high)
        protocol = Protocol(
            self.protocol.clock, self.protocol.cache, self.protocol.order, lane.calls
        )
        return Timing(found.median, low, high, len(taken), protocol, self.busy)


def race(
    entries: Sequence[tuple[Variant, Sampler]],
    budget_s: float | None,
    base: int = 0,
    *,
    rules: Rules = Rules(),
    random: np.random.Generator | None = None,
) -> Outcome:
    """
    Time contestants against each other for at most `budget_s` seconds.

    None is one second, or what 24 calls of the incumbent take up to ten seconds, after
    each was called once. `entries` come the simplest first; `base` is the incumbent's
    position, which is tried first and never dropped. One call that is already running
    is not cut short.
    """
    lanes = tuple(Lane(variant, sample) for variant, sample in entries)
    run = Race(lanes, base, rules, random or np.random.default_rng())
    begun = rules.clock.read()
    share = rules.clock.meter()
    run.warm(begun + 1e9 * (MOST_S if budget_s is None else budget_s))
    given_s = run.enough_s() if budget_s is None else budget_s
    end = math.inf if budget_s is None else begun + 1e9 * budget_s
    run.listen(given_s)
    run.look_for_shy(given_s, end)
    if budget_s is None:  # What came before may take long on a busy machine.
        given_s += SHY_S * any(lane.shy for lane in lanes)
        end = rules.clock.read() + 1e9 * given_s
    run.rounds(end)
    protocol = Protocol(rules.clock.name, rules.cache)
    return Outcome(lanes, run.standing(), share(), protocol)


def disturbs(after: Sequence[float], rested: Sequence[float]) -> bool:
    """Say whether all samples right after a contestant are slower than all rested."""
    return min(after, default=0.0) > LOUD * max(rested, default=math.inf)


def own_threads(lane: Lane) -> int:
    """Return the threads that a variant's configuration names."""
    named = dict(lane.variant.config).get("threads", 1)
    return named if isinstance(named, int) else 1


def held_up(after: Sequence[float], alone: Sequence[float]) -> bool:
    """Say whether a contestant is slower after another one than by itself."""
    if not after or not alone:
        return False
    return bool(np.median(after) > DISTURBED * np.median(alone))


def possible(taken: float) -> bool:
    """Say whether a clock can have measured this: above 0 and finite."""
    return taken > 0 and math.isfinite(taken)


def shuffled(random: np.random.Generator, count: int) -> Sequence[int]:
    """Return the order of a round."""
    order: list[int] = random.permutation(count).tolist()
    return order


@dataclass(slots=True)
class Race:
    """The state of one race."""

    lanes: tuple[Lane, ...]
    base: int
    rules: Rules
    random: np.random.Generator
    last: int = -1

    @property
    def clock(self) -> Clock:
        """The race's clock."""
        return self.rules.clock

    def standing(self) -> Standing:
        """Judge the race; the reference stands in for an incumbent that failed."""
        if self.lanes[self.base].failed:
            names = [lane.variant for lane in self.lanes]
            self.base = names.index(REFERENCE) if REFERENCE in names else 0
        samples = [lane.us for lane in self.lanes]
        return standing(samples, self.base, self.rules.margin)

    def warm(self, end: float) -> None:
        """Call each once or twice, to warm it up and to find its calls per sample."""
        first = [self.lanes[self.base]]
        for lane in first + [lane for lane in self.lanes if lane is not first[0]]:
            if self.clock.read() > end and lane is not first[0]:
                lane.running = False
                lane.reason = "not tried (budget)"
                continue
            tell("measuring", lane.variant)
            taken = self.timed(lane, 1)
            if taken and taken < SAMPLE_NS * 10:
                taken = self.timed(lane, 1) or taken
            if taken:
                lane.call_ns = taken
                target = max(SAMPLE_NS, GRAINS * self.clock.grain_ns)
                lane.calls = max(1, min(CALLS_MAX, math.ceil(target / taken)))

    def enough_s(self) -> float:
        """Return the seconds that a race takes where no budget is stated."""
        return min(
            MOST_S, max(LEAST_S, LEAST_CALLS * self.lanes[self.base].call_ns / 1e9)
        )

    def listen(self, budget_s: float) -> None:
        """
        Find who slows the others, by calls right after it and after a rest.

        Left out where calls are long against what threads spin, or time is short.
        """
        others = [i for i, lane in enumerate(self.lanes) if i != self.base]
        slowest = max(lane.call_ns for lane in self.lanes)
        if not others or slowest > REST_NS / 4 or budget_s * 1e9 < 40 * REST_NS:
            return
        rested = {i: self.repeated(i, None) for i in (self.base, others[0])}
        for place in (self.base, *others):
            canary = others[0] if place == self.base else self.base
            after = self.repeated(canary, place)
            if disturbs(after, rested[canary]):
                self.lanes[place].loud = True
                self.clock.rest(REST_NS)

    def repeated(self, place: int, after: int | None) -> list[float]:
        """Time calls of one, each after a call of another or after a rest."""
        taken = []
        for _ in range(RESTED):
            if after is None:
                self.clock.rest(REST_NS)
            else:
                self.timed(self.lanes[after], 1)
            taken.append(self.timed(self.lanes[place], 1))
        return [ns for ns in taken if ns]

    def look_for_shy(self, budget_s: float, end: float) -> None:
        """
        Find whose own threads are held up by those that the incumbent leaves.

        Not where that takes half of the time left, or calls are long against a spin.
        """
        if budget_s * 1e9 < 8 * SPIN_NS:
            return
        base = self.lanes[self.base]
        for place, lane in enumerate(self.lanes):
            if place == self.base or not lane.running or own_threads(lane) < 2:
                continue
            looking_ns = SPIN_NS + RESTED * (base.call_ns + 2 * lane.call_ns)
            long = max(base.call_ns, lane.call_ns) > 2 * SPIN_NS
            if long or 2 * looking_ns > end - self.clock.read():
                continue
            after = self.repeated(place, self.base)
            self.clock.rest(SPIN_NS)
            alone = [self.timed(lane, 1) for _ in range(1 + RESTED)][1:]
            lane.shy = held_up(after, [ns for ns in alone if ns])

    def rounds(self, end: float) -> None:
        """Sample round by round; the order is drawn anew for each."""
        count = TURN if any(lane.shy for lane in self.lanes) else 1
        look = FIRST_LOOK * count
        while self.contested():
            for lane in self.lanes:
                lane.us += [math.nan] * count
            for places in self.groups():
                for at in range(-count, 0):
                    if not self.round(places, at, end):
                        return
            if len(self.lanes[0].us) >= look:
                look = math.ceil(look * GROWTH)
                if self.judged(end):
                    return

    def groups(self) -> Iterator[list[int]]:
        """Yield the others and the shy, in any order; the shy when it is still."""
        shy = [i for i, lane in enumerate(self.lanes) if lane.shy and lane.running]
        others = [i for i, lane in enumerate(self.lanes) if i not in shy]
        first = not shy or self.random.random() < 0.5
        if first:
            yield others
        if shy:
            self.clock.rest(SPIN_NS)
            self.timed(self.lanes[shy[0]], 1)
            yield shy
        if not first:
            yield others

    def round(self, places: list[int], at: int, end: float) -> bool:
        """Sample each of some once, for the round `at`; say whether time is left."""
        order = shuffled(self.random, len(places))
        if not self.lanes[self.base].rounds:  # Others' samples alone tell nothing.
            order = sorted(order, key=lambda number: places[number] != self.base)
        for number in order:
            if not self.lanes[places[number]].running:
                continue
            self.sample(places[number], at)
            if self.clock.read() > end:
                return False
        return True

    def contested(self) -> bool:
        """Say whether two still run, or one that is alone has too few rounds."""
        running = [lane for lane in self.lanes if lane.running]
        return len(running) > 1 or any(lane.rounds < LONE for lane in running)

    def judged(self, end: float) -> bool:
        """Drop who can't win; say whether the winner is settled."""
        found = self.standing()
        self.tell(self.lanes[found.winner], end)
        for place in found.hopeless:
            lane = self.lanes[place]
            if lane.running:
                lane.running = False
                lane.reason = lane.reason or f"can't win after {lane.rounds} rounds"
        return found.settled

    def tell(self, best: Lane, end: float) -> None:
        """Tell who watches who leads and how much of the budget is left."""
        median_us = float(np.nanmedian(best.us)) if best.rounds else 0.0
        left_s = max(0.0, (end - self.clock.read()) / 1e9)
        tell("measuring", best.variant, best.variant, median_us, left_s)

    def sample(self, place: int, at: int) -> None:
        """Take one sample; short calls are led in by one that is not timed."""
        lane, before = self.lanes[place], self.last
        if before >= 0 and self.lanes[before].loud and before != place:
            self.clock.rest(REST_NS)
        self.last = place
        if lane.calls > 1:
            self.timed(lane, 1)
        taken = self.timed(lane, lane.calls)
        if taken:
            lane.us[at] = taken / lane.calls / 1e3

    def timed(self, lane: Lane, calls: int) -> float | None:
        """Time some calls; an error or a clock that fails is noted by name."""
        if not lane.running:
            return None
        try:
            taken = lane.sample(calls)
        except Lost as lost:
            self.fail(lane, str(lost))
            return None
        except (Exception, SystemExit) as error:
            self.fail(lane, ending_of(error))
            return None
        if possible(taken):
            lane.refused = 0
            return taken
        self.refuse(lane, taken)
        return None

    def fail(self, lane: Lane, reason: str) -> None:
        """End a lane that raised or was lost; what it ran before does not count."""
        lane.running, lane.failed, lane.reason = False, True, reason
        lane.us = [math.nan] * len(lane.us)

    def refuse(self, lane: Lane, taken: float) -> None:
        """Refuse a sample of 0, a negative one or NaN; too many end the lane."""
        lane.refused += 1
        lane.reason = f"{self.clock.name} gave {taken:g} ns for a sample: refused"
        if lane.refused >= REFUSALS:
            lane.running = False
            lane.failed = lane.rounds == 0
