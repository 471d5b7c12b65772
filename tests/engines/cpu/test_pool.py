"""Tiles run once each, in whichever thread takes them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from tilewise.engines.cpu import pool
from tilewise.engines.cpu.pool import Tile, run_tiles

TILES = [(0,), (1,), (2,)]
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_each_tile_runs_once(threads: int, count: int) -> None:
    """None is left out and none is done twice."""
    seen: Counter[Tile] = Counter()
    tiles = [(i,) for i in range(count)]
    run_tiles(lambda tile: seen.update([tile]), tiles, threads)
    assert Counter(tiles) == seen


def test_several_threads_take_part() -> None:
    """A tile that waits for another one ends: both are under way at once."""
    together = threading.Barrier(2, timeout=20)
    run_tiles(lambda tile: together.wait(), [(0,), (1,)], 2)
    assert not together.broken


def test_an_error_in_a_worker_reaches_the_caller() -> None:
    """Whoever ran the tile, the caller raises."""

    def work(tile: Tile) -> None:
        if tile == (3,):
            raise ZeroDivisionError("tile 3")

    with pytest.raises(ZeroDivisionError, match="tile 3"):
        run_tiles(work, [(i,) for i in range(8)], 2)


def test_calls_from_many_threads_do_not_mix() -> None:
    """Each caller's tiles are done when its own call returns."""
    counts: list[int] = []

    def call() -> None:
        done: list[Tile] = []
        run_tiles(done.append, [(i,) for i in range(50)], 3)
        counts.append(len(done))

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    assert [50] * 8 == counts


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
def test_a_forked_child_makes_its_own_threads() -> None:
    """The parent's workers do not exist in a child, which must not wait for them."""
    run_tiles(lambda tile: time.sleep(0.01), [(0,), (1,)], 2)
    child = os.fork()
    if child == 0:
        together = threading.Barrier(2, timeout=10)
        try:
            run_tiles(lambda tile: together.wait(), [(0,), (1,)], 2)
            os._exit(0)
        finally:
            os._exit(1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(PROCESSORS < 2, reason="there is one processor")
def test_workers_stay_off_the_callers_processor() -> None:
    """They may run wherever the caller may, but not where it is."""
    allowed = os.sched_getaffinity(0)
    try:
        for place in sorted(allowed)[:2]:
            pool.POOL._bound = None
            run_on(place, lambda: run_tiles(nothing, [(0,), (1,)], 2))
            worker = pool.POOL._threads[0].native_id or 0
            assert {place} == allowed - os.sched_getaffinity(worker)
    finally:
        pool.POOL._bound = None


def nothing(given: Any) -> None:
    """Do nothing with a tile."""


def run_on(place: int, call: Callable[[], None]) -> None:
    """Call where the system says that this is the processor."""
    kept, pool.POOL._processor = pool.POOL._processor, lambda: place
    try:
        call()
    finally:
        pool.POOL._processor = kept


@pytest.mark.skipif(PROCESSORS < 2, reason="there is one processor")
def test_workers_follow_a_caller_whose_processors_change() -> None:
    """They share the one that it is bound to, and leave it when it may run anywhere."""
    allowed = os.sched_getaffinity(0)
    one, seen = min(allowed), Counter[Tile]()
    try:
        for now, workers in (({one}, {one}), (allowed, allowed - {one})):
            os.sched_setaffinity(0, now)
            run_on(one, lambda: run_tiles(lambda t: seen.update([t]), TILES, 2))
            assert workers == os.sched_getaffinity(pool.POOL._threads[0].native_id or 0)
    finally:
        os.sched_setaffinity(0, allowed)
    assert 2 * len(TILES) == seen.total()


@pytest.mark.skipif(PROCESSORS < 2, reason="there is one processor")
def test_a_sandbox_that_binds_no_threads_runs_all_tiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The workers stay where the system puts them, and the call succeeds."""

    def forbid(*args: object) -> None:
        raise PermissionError("forbidden")

    monkeypatch.setattr(pool, "POOL", pool.Pool())
    monkeypatch.setattr(os, "sched_setaffinity", forbid)
    seen: Counter[Tile] = Counter()
    for _ in range(2):
        run_tiles(lambda tile: seen.update([tile]), [(0,), (1,)], 2)
    assert {(0,): 2, (1,): 2} == seen


def test_a_call_goes_on_where_no_thread_can_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller does it all."""

    def refuse(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool, "POOL", pool.Pool())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    seen: Counter[Tile] = Counter()
    run_tiles(lambda tile: seen.update([tile]), TILES, 2)
    assert Counter(TILES) == seen


class Ending:
    """A job that ends its thread."""

    def take_all(self) -> None:
        """End."""
        raise SystemExit


def test_a_worker_that_ended_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call has as many threads as before, and leaves no job waiting."""
    monkeypatch.setattr(pool, "POOL", pool.Pool())
    run_tiles(nothing, TILES, 2)
    (worker,) = pool.POOL._threads
    monkeypatch.setattr(threading, "excepthook", nothing)
    pool.POOL._jobs.put(cast("pool.Job", Ending()))
    worker.join(20)
    together = threading.Barrier(2, timeout=20)
    run_tiles(lambda tile: together.wait(), TILES[:2], 2)
    assert not together.broken


def test_a_call_while_python_ends_is_done() -> None:
    """Where no thread can be made any more the caller does it all."""
    code = (
        "import atexit; from tilewise.engines.cpu.pool import run_tiles; "
        "atexit.register(run_tiles, print, [(0,), (1,)], 2)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, check=True, text=True, timeout=60,
    )  # fmt: skip
    done = sorted(ended.stdout.replace("\n", ""))
    assert (sorted("(0,)(1,)"), "") == (done, ended.stderr)
