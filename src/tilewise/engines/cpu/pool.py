"""
A small pool of Python threads that share the tiles of one call.

Native code releases the GIL, so the threads run at once. The caller takes tiles too
and waits only for tiles that a worker has taken: a worker that the system has not
woken yet costs nothing. No thread of a library takes part; a forked child makes its
own threads.

After a product OpenBLAS's threads go on spinning, so that the system sees no idle
processor and leaves a worker that wakes behind the caller, on the caller's own: the
call then takes as long as in one thread. Workers are therefore kept off the processor
where the caller is. One that has just woken goes before a thread that spins, which
never yields: for some milliseconds it has the processor, then they share it.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

__all__ = ["Job", "run_tiles"]

Tile = tuple[int, ...]


class Job:
    """Tiles of one call, each taken once, and the error of the last that failed."""

    __slots__ = ("_next", "_tiles", "_work", "done", "error", "finished")

    def __init__(self, work: Callable[[Tile], Any], tiles: Sequence[Tile]) -> None:
        self._work, self._tiles = work, tiles
        self._next = itertools.count()
        self.finished = itertools.count(1)
        self.done = threading.Lock()
        self.done.acquire()
        self.error: BaseException | None = None

    def take_all(self) -> None:
        """Work on tiles until none is left; whoever ends the last one says so."""
        tiles, work, total = self._tiles, self._work, len(self._tiles)
        while (number := next(self._next)) < total:
            try:
                work(tiles[number])
            except BaseException as error:
                self.error = error
            if next(self.finished) == total:
                self.done.release()


def processor() -> Callable[[], int] | None:
    """Return what tells the processor that a thread runs on, where it can be chosen."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        found = ctypes.PyDLL(None).sched_getcpu
    except AttributeError:  # A C library without it.
        return None
    found.argtypes, found.restype = (), ctypes.c_int
    return found


class Pool:
    """Daemon threads that wait for jobs; made when first needed."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._processor = processor()
        self._bound: object = None

    def offer(self, job: Job, helpers: int) -> None:
        """Let up to `helpers` threads take part in a job, of those that there are."""
        if sum(thread.is_alive() for thread in self._threads) < helpers:
            self._grow(helpers)
        if self._processor is not None:
            self._avoid(self._processor())
        for _ in self._threads[:helpers]:
            self._jobs.put(job)

    def _grow(self, count: int) -> None:
        """Start the threads that are missing, as far as the system lets us."""
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()]
            while len(self._threads) < count:
                name = f"tilewise-{len(self._threads)}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # A limit is reached, or Python is ending.
                    return
                self._threads.append(thread)
                self._bound = None

    def _avoid(self, place: int) -> None:
        """
        Keep the workers off a processor, among those where the caller may run.

        What the caller may use can change, so it is read each time (0.4 us).
        """
        allowed = os.sched_getaffinity(0)
        if self._bound == (place, allowed):
            return
        for thread in self._threads:
            # A sandbox may forbid it, and a worker may have ended.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(
                    thread.native_id or 0, allowed - {place} or allowed
                )
        self._bound = (place, allowed)

    def _serve(self) -> None:
        """Take part in one job after the other."""
        while True:
            self._jobs.get().take_all()


POOL = Pool()


def run_tiles(work: Callable[[Tile], Any], tiles: Sequence[Tile], threads: int) -> None:
    """
    Call `work` on every tile, in up to `threads` threads, the caller's among them.

    Returns when all tiles are done; raises what the last failing one raised.
    """
    helpers = min(threads, len(tiles)) - 1
    if helpers < 1:
        for tile in tiles:
            work(tile)
        return
    job = Job(work, tiles)
    POOL.offer(job, helpers)
    job.take_all()
    with job.done:
        pass
    if job.error is not None:
        raise job.error


def fresh() -> None:
    """Forget the parent's threads, which a forked child does not have."""
    global POOL  # noqa: PLW0603 - a forked child has no other way
    POOL = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fresh)
