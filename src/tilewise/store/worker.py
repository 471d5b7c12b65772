"""
One thread that does the work of one place, so that callers wait no longer than asked.

diskcache's opening retries for 60 s under a foreign lock, and a lost network drive
hangs; neither may hold a call. All work of a place is done by one thread with one
connection. It ends before a fork, so that a child inherits neither a connection nor a
lock that is held, and a process with a store forks like one without.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["Late", "Worker"]

FORK_PATIENCE_S = 1.0
EXIT_PATIENCE_S = 2.0
"""How long a fork, and the end of the process, wait for work that is being done."""
IDLE_S = 30.0
"""How long a thread waits for a job before it closes its connection and ends."""
LINE = 256
"""How many jobs may stand in line behind one that is late."""

T = TypeVar("T")


class Late(Exception):
    """The work is still waiting or being done; it goes on without the caller."""


class Job(Generic[T]):
    """Work with its result or error, once it is done."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work, self.done = work, threading.Event()
        self.results: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work and keep what comes of it."""
        try:
            self.results.append(self.work())
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class Worker:
    """Does jobs one after another in a thread that starts with the first."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end
        self.fresh()
        WORKERS.add(self)

    def fresh(self) -> None:
        """Forget thread, lock and jobs, as a forked child must."""
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self.thread: threading.Thread | None = None
        self.late: Job[Any] | None = None

    @property
    def is_late(self) -> bool:
        """Say whether a job that someone gave up waiting for is still to be done."""
        late = self.late
        return late is not None and not late.done.is_set()

    def do(
        self, work: Callable[[], T], patience_s: float | None, keep: bool = False
    ) -> T:
        """
        Have work done and return its result; None waits for ever.

        Raises what the work raises, and Late when it takes longer: it is done all
        the same. Who comes while work is late does not wait at all, and the work is
        done later only when it is to be kept and the line is not too long.
        """
        job = Job(work)
        with self.lock:
            wait_s = patience_s
            if self.is_late and patience_s is not None:
                if not keep or self.jobs.qsize() >= LINE:
                    raise Late
                wait_s = 0.0
            self.jobs.put(job)
            started = self.start()
        if not started or not job.done.wait(wait_s):
            if wait_s:
                self.late = job
            raise Late
        if job.error is not None:
            raise job.error
        return job.results[0]

    def start(self) -> bool:
        """Start the thread where none runs; False while the interpreter ends."""
        if self.thread is None:
            thread = threading.Thread(
                target=self.serve, args=(self.jobs,), name="tilewise-store", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                return False
            self.thread = thread
        return True

    def serve(self, jobs: SimpleQueue[Job[Any] | None]) -> None:
        """Do jobs until None, or nothing for a while, comes."""
        while (job := self.next_of(jobs)) is not None:
            job.run()
            del job

    def next_of(self, jobs: SimpleQueue[Job[Any] | None]) -> Job[Any] | None:
        """Return the next job; None after closing what the thread has open."""
        try:
            job = jobs.get(timeout=IDLE_S)
        except Empty:
            with self.lock:
                if not jobs.empty():
                    return jobs.get()
                self.end()
                self.thread = None
                return None
        if job is None:
            self.end()
        return job

    def stop(self, patience_s: float) -> bool:
        """End the thread after its jobs; returns whether it ended in time."""
        with self.lock:
            return self.stop_locked(patience_s)

    def stop_locked(self, patience_s: float) -> bool:
        """End the thread while the lock is held."""
        thread, self.thread = self.thread, None
        if thread is None or thread is threading.current_thread():
            return True
        self.jobs.put(None)
        self.jobs = SimpleQueue()
        thread.join(patience_s)
        return not thread.is_alive()


WORKERS: weakref.WeakSet[Worker] = weakref.WeakSet()
HELD: list[Worker] = []


def before_fork() -> None:
    """End all threads and keep new ones from starting."""
    for worker in list(WORKERS):
        if worker.lock.acquire(timeout=FORK_PATIENCE_S):
            HELD.append(worker)
            worker.stop_locked(FORK_PATIENCE_S)


def after_fork_in_parent() -> None:
    """Let threads start again."""
    while HELD:
        HELD.pop().lock.release()


def after_fork_in_child() -> None:
    """Begin anew: no thread of the parent is here."""
    HELD.clear()
    for worker in list(WORKERS):
        worker.fresh()


def at_exit() -> None:
    """Let work that goes on without a caller come to its end, for a while."""
    for worker in list(WORKERS):
        worker.stop(EXIT_PATIENCE_S)


atexit.register(at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=before_fork,
        after_in_parent=after_fork_in_parent,
        after_in_child=after_fork_in_child,
    )
