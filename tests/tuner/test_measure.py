"""The race: who is sampled, when it stops, and what counts as a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.tuner import contestants as c
from tests.tuner.simulated import Machine
from tilewise.engines.base import Run
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.clock import WALL, Clock
from tilewise.tuner.measure import Outcome, Rules, race
from tilewise.tuner.sampling import Sampler, sampler

A = Variant("test", "a")
B = Variant("test", "b")


def run(
    machine: Machine, times: list[float], base: int = 0, s: float | None = 1
) -> Outcome:
    """Race the reference and a, b, ... on a simulated machine."""
    rules = Rules(clock=machine.clock)
    entries = machine.entries(times)
    random = np.random.default_rng(machine.seed)
    return race(entries, s, base, rules=rules, random=random)


def share(times: list[float], winner: Variant, base: int = 0) -> float:
    """Return in what share of 100 noisy races a variant wins."""
    wins = [run(Machine(seed), times, base).winner == winner for seed in range(100)]
    return sum(wins) / len(wins)


def test_near_ties_agree() -> None:
    """With two that are half a percent apart, 99 of 100 tunings name the same."""
    assert share([200, 150.75, 150], A) >= 0.99


def test_finds_ten_percent() -> None:
    """A candidate that is 10 % faster is chosen in 99 of 100 tunings."""
    assert share([100, 90], A) >= 0.99


def test_three_percent_leave_the_incumbent() -> None:
    """One that is 3 % faster leaves the incumbent in place in 99 of 100 tunings."""
    assert share([150, 100, 97], A, base=1) >= 0.99


def test_regret_of_two_that_are_close_is_small() -> None:
    """Of two that are 3 % apart and beat the incumbent, the loss is below 1 %."""
    times = {REFERENCE: 150.0, A: 103.0, B: 100.0}
    chosen = [run(Machine(s), list(times.values())).winner for s in range(100)]
    loss = np.mean([times[v] / 100 - 1 for v in chosen])
    assert loss <= 0.01


def test_ties_go_to_the_simpler() -> None:
    """Of two equal challengers the first, which is the simpler, wins."""
    outcome = run(Machine(noise=0), [200, 100, 100])
    assert (A, (B,)) == (outcome.winner, outcome.ties)


def test_ties_go_to_the_reference() -> None:
    """A challenger within the margin of the reference does not win, and is a tie."""
    outcome = run(Machine(noise=0), [100, 99])
    assert (REFERENCE, (A,)) == (outcome.winner, outcome.ties)


def test_an_incumbent_stays_against_the_reference() -> None:
    """The reference, too, must beat an incumbent by the margin."""
    assert A == run(Machine(noise=0), [97, 100], base=1).winner


def test_stops_when_settled() -> None:
    """A clear winner takes a small part of the budget."""
    machine = Machine(noise=0.02, spikes=0)
    run(machine, [200, 100], s=10)
    assert machine.now < 1e8


def test_hopeless_candidates_stop_early() -> None:
    """One that is twice as slow is dropped after three rounds, and it is said."""
    lanes = run(Machine(3), [100, 97, 400]).lanes
    assert "can't win after 3 rounds" == lanes[2].reason
    assert lanes[1].rounds > 10


def test_stops_at_the_budget() -> None:
    """Sampling ends with the sample that passes the budget."""
    machine = Machine(noise=0.3)
    run(machine, [100, 95.2], s=0.05)
    assert machine.now < 0.06e9 + 60 * 100e3


def test_says_what_the_budget_did_not_reach() -> None:
    """A contestant that was never called is `not tried (budget)`."""
    outcome = run(Machine(noise=0), [1e6, 1e6, 1e6], s=0.5)
    assert "not tried (budget)" == outcome.lanes[2].reason
    assert outcome.timing(outcome.lanes[2]) is None


def test_a_short_budget_goes_to_the_incumbent() -> None:
    """Where time is left for one sample it is the incumbent's, not a rival's."""
    for seed in range(20):
        lanes = run(Machine(seed), [3e5, 3e5], s=0.5).lanes
        assert [1, 0] == [lane.rounds for lane in lanes]


def test_slow_calls_get_more_than_a_second() -> None:
    """Without a stated budget all are tried where a call takes 0.2 s."""
    machine = Machine(noise=0)
    outcome = run(machine, [2e5, 1.5e5, 2.5e5], s=None)
    assert A == outcome.winner
    assert all(lane.rounds for lane in outcome.lanes)
    assert 6e9 > machine.now


def test_samples_are_long_against_the_grain() -> None:
    """A call of 1 us is made 50 times in a sample; the protocol says so."""
    outcome = run(Machine(noise=0), [1, 10])
    timing = outcome.timing(outcome.lanes[0])
    assert timing is not None
    assert (50, 1.0) == (timing.protocol.calls, timing.median_us)


def test_a_coarse_clock_makes_longer_samples() -> None:
    """With a grain of 10 us a sample lasts 2 ms."""
    machine = Machine(noise=0)
    coarse = Clock("coarse", machine.clock.read, machine.rest, machine.meter, 1e4)
    outcome = race(machine.entries([10, 20]), 1, rules=Rules(clock=coarse))
    assert 200 == outcome.lanes[0].calls


@pytest.mark.parametrize("bad", [0.0, -5.0, math.nan])
def test_refuses_impossible_samples(bad: float) -> None:
    """A sample of 0, a negative one or NaN is refused by name, and never wins."""
    machine = Machine(noise=0)
    entries = machine.entries([100, 50])
    entries[1] = (A, lambda calls: bad)
    outcome = race(entries, 1, rules=Rules(clock=machine.clock))
    assert REFERENCE == outcome.winner
    assert f"simulated gave {bad:g} ns for a sample: refused" == outcome.lanes[1].reason
    assert outcome.lanes[1].failed


def test_one_bad_sample_is_not_counted() -> None:
    """A single impossible sample is left out; the others count."""
    machine = Machine(noise=0)
    entries = machine.entries([100, 50])
    good, turns = entries[1][1], iter([100.0, 100.0, 0.0])
    entries[1] = (A, lambda calls: next(turns, None) or good(calls))
    outcome = race(entries, 1, rules=Rules(clock=machine.clock))
    assert A == outcome.winner


def test_records_a_contestant_that_raises() -> None:
    """An exception while timing fails that contestant alone."""
    machine = Machine(noise=0)
    entries = machine.entries([100, 50, 60])
    turns = iter([50e3, 50e3])
    entries[1] = (A, lambda calls: next(turns))
    outcome = race(entries, 1, rules=Rules(clock=machine.clock))
    assert B == outcome.winner
    assert "raises StopIteration: " == outcome.lanes[1].reason


def test_the_reference_stands_in_for_a_failed_incumbent() -> None:
    """An incumbent that fails while it is timed does not stay."""
    machine = Machine(noise=0)
    entries = machine.entries([100, 50])
    entries[1] = (A, lambda calls: math.nan)
    assert REFERENCE == race(entries, 1, 1, rules=Rules(clock=machine.clock)).winner


def test_records_how_busy_the_machine_was() -> None:
    """The share of others stands in each timing."""
    outcome = run(Machine(noise=0, busy=0.4), [100, 50])
    timing = outcome.timing(outcome.lanes[1])
    assert timing is not None
    assert 0.4 == timing.busy


def test_orders_differ_between_rounds() -> None:
    """Contestants are shuffled anew in each round."""
    machine, seen = Machine(noise=0), []
    entries = [
        (v, lambda calls, v=v, s=s: (seen.append(v), s(calls))[1])
        for v, s in machine.entries([100, 99, 98])
    ]
    race(entries, 0.01, rules=Rules(clock=machine.clock))
    rounds = [tuple(seen[i : i + 3]) for i in range(6, len(seen) - 2, 3)]
    assert len(set(rounds)) > 2


def haunted(machine: Machine) -> list[tuple[Variant, Sampler]]:
    """Return contestants of which a leaves threads that slow the others for 5 ms."""
    until = [0.0]

    def sample(calls: int, us: float, pool: bool) -> float:
        begun = machine.now
        for _ in range(calls):
            machine.spend(us if pool or machine.now > until[0] else 3 * us)
        if pool:
            until[0] = machine.now + 5e6
        return machine.now - begun

    times = ((REFERENCE, 100.0, False), (A, 94.0, True), (B, 80.0, False))
    return [(v, partial(sample, us=us, pool=pool)) for v, us, pool in times]


def test_thread_pools_do_not_disturb_the_others() -> None:
    """One whose threads go on spinning neither wins by that nor spoils a figure."""
    machine = Machine(noise=0)
    outcome = race(haunted(machine), 2, rules=Rules(clock=machine.clock))
    assert B == outcome.winner
    assert [False, True, False] == [lane.loud for lane in outcome.lanes]
    assert [100, 94, 80] == [outcome.timing(lane).median_us for lane in outcome.lanes]


def test_a_slow_warm_up_leaves_time_for_the_race() -> None:
    """On a busy machine the first calls alone may take more than a race's second."""
    machine = Machine(noise=0)
    entries = []
    for variant, sample in machine.entries([100, 50]):
        first = iter([1e6])

        def slow(calls: int, sample: Any = sample, first: Any = first) -> float:
            machine.spend(next(first, 0))
            return float(sample(calls))

        entries.append((variant, slow))
    outcome = race(entries, None, rules=Rules(clock=machine.clock))
    assert A == outcome.winner


THREADED = Variant("test", "b", (("threads", 2),))


def held_up(machine: Machine, slower: float) -> list[tuple[Variant, Sampler]]:
    """Return contestants of which the first two leave threads that spin for 100 ms."""
    until = [0.0]

    def sample(calls: int, us: float, threaded: bool) -> float:
        begun = machine.now
        for _ in range(calls):
            held = threaded and machine.now < until[0]
            machine.spend(slower * us if held else us)
            until[0] = until[0] if threaded else machine.now + 1e8
        return machine.now - begun

    times = ((REFERENCE, 5000.0, False), (A, 4900.0, False), (THREADED, 4000.0, True))
    return [(v, partial(sample, us=us, threaded=own)) for v, us, own in times]


def test_one_that_spinning_threads_hold_up_is_timed_by_itself() -> None:
    """Its figure is that of a program that calls it again and again."""
    machine = Machine(noise=0)
    outcome = race(held_up(machine, 1.6), None, rules=Rules(clock=machine.clock))
    assert THREADED == outcome.winner
    assert [False, False, True] == [lane.shy for lane in outcome.lanes]
    medians = [outcome.timing(lane).median_us for lane in outcome.lanes]
    assert [5000, 4900, 4000] == medians


def test_two_of_long_calls_are_both_looked_at() -> None:
    """Looking for the shy does not use up the time of a race without a budget."""
    machine, until = Machine(noise=0), [0.0]

    def sample(calls: int, ms: float, threaded: bool) -> float:
        begun = machine.now
        for _ in range(calls):
            held = threaded and machine.now < until[0]
            machine.spend(1.6e3 * ms if held else 1e3 * ms)
            until[0] = until[0] if threaded else machine.now + 1e8
        return machine.now - begun

    other = Variant("test", "c", (("threads", 2),))
    times = ((REFERENCE, 50.0, False), (other, 45.0, True), (THREADED, 20.0, True))
    entries = [(v, partial(sample, ms=ms, threaded=own)) for v, ms, own in times]
    outcome = race(entries, None, rules=Rules(clock=machine.clock))
    assert [False, True, True] == [lane.shy for lane in outcome.lanes]
    assert THREADED == outcome.winner


def test_the_shy_are_chosen_on_a_noisy_machine() -> None:
    """Load that comes and goes hides a fifth in less than half of the races."""
    won = 0
    for seed in range(40):
        machine, random = Machine(seed, spikes=0), np.random.default_rng(seed)
        rules = Rules(clock=machine.clock)
        outcome = race(held_up(machine, 1.6), None, rules=rules, random=random)
        won += THREADED == outcome.winner
    assert won > 20


def test_one_that_is_hardly_held_up_takes_part_in_each_round() -> None:
    """Threads alone make nobody shy."""
    machine = Machine(1, noise=0.02, spikes=0)
    outcome = race(held_up(machine, 1.05), None, rules=Rules(clock=machine.clock))
    assert not any(lane.shy for lane in outcome.lanes)


def test_a_short_budget_leaves_no_time_to_look_for_the_shy() -> None:
    """Rests of a tenth of a second do not fit."""
    machine = Machine(1, noise=0.02, spikes=0)
    outcome = race(held_up(machine, 1.6), 0.3, rules=Rules(clock=machine.clock))
    assert not any(lane.shy for lane in outcome.lanes)
    assert machine.now < 0.4e9


def test_looking_for_the_shy_leaves_time_for_the_race() -> None:
    """Four threaded contestants of long calls are timed within the budget."""
    machine = Machine(noise=0)

    def sample(calls: int) -> float:
        machine.spend(3e5 * calls)
        return 3e8 * calls

    threaded = [Variant("test", name, (("threads", 2),)) for name in "abcd"]
    entries = [(REFERENCE, sample), *((variant, sample) for variant in threaded)]
    outcome = race(entries, 3, rules=Rules(clock=machine.clock))
    assert all(lane.rounds for lane in outcome.lanes)
    assert machine.now < 3.5e9


def test_times_an_allocated_output() -> None:
    """What is timed is a call as a user makes it: with a fresh output each time."""
    outputs = []

    def run(x: object, w: object, b: object, out: np.ndarray) -> None:
        outputs.append(out)

    sampler(c.entry(run), c.case(), WALL)(3)
    assert 3 == len({id(out) for out in outputs})


def test_the_reference_is_timed_as_it_is() -> None:
    """The reference is called with the arguments alone: no copy into an output."""
    calls = []
    posed = c.case(reference=lambda *args: calls.append(len(args)))
    sampler(c.Contestant(REFERENCE, c.raiser), posed, WALL)(2)
    assert [3, 3] == calls


def test_a_cold_cache_rotates_the_arguments() -> None:
    """Under the cold protocol consecutive calls get other copies."""
    seen = []

    def run(x: np.ndarray, w: object, b: object, out: object) -> None:
        seen.append(x.ctypes.data)

    sampler(c.entry(run), c.case(), WALL, "cold")(4)
    assert 4 == len(set(seen))


def test_a_bound_case_is_timed_bound() -> None:
    """Constants are prepared once, outside the time; the bound run is what is timed."""

    class Packing:
        bound = called = 0

        def bind(self, args: Sequence[Any]) -> Run:
            self.bound += 1
            return self.run

        def run(self, *args: Any) -> Any:
            self.called += 1
            return args[-1]

        def __call__(self, *args: Any) -> Any:
            raise AssertionError("it packs at each call")

    packing = Packing()
    sampler(c.Contestant(A, packing), c.case(bound=True), WALL)(3)
    assert (1, 3) == (packing.bound, packing.called)
