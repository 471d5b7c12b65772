"""Work is done by one thread, and no caller waits longer than asked."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.store.samples import python
from tilewise.store import worker as module
from tilewise.store.worker import Late, Worker


class Held:
    """Work that does not end until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self) -> None:
        self.go.wait(20)


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Make a worker that ends with the test."""
    made = Worker(lambda: None)
    yield made
    made.stop(1)


@pytest.fixture
def held(worker: Worker) -> Iterator[Held]:
    """Give the worker something that it is late with."""
    work = Held()
    with pytest.raises(Late):
        worker.do(work, 0.01)
    yield work
    work.go.set()


def seconds(step: Callable[[], object]) -> float:
    """Return how long a late step took."""
    started = time.perf_counter()
    with pytest.raises(Late):
        step()
    return time.perf_counter() - started


def test_result_comes_back(worker: Worker):
    """The caller gets what the work returns."""
    assert 3 == worker.do(lambda: 3, 1)


def test_error_comes_back(worker: Worker):
    """The caller gets the error that the work raises."""
    with pytest.raises(ZeroDivisionError):
        worker.do(lambda: 1 // 0, 1)


def test_all_work_is_done_by_one_thread(worker: Worker):
    """A connection is used by the thread that made it."""
    threads = {worker.do(threading.get_ident, 1) for _ in range(3)}

    assert 1 == len(threads)


def test_late_work_lets_the_caller_go(worker: Worker):
    """A caller waits as long as it wishes, and no longer."""
    work = Held()
    took_s = seconds(lambda: worker.do(work, 0.1))
    work.go.set()

    assert 0.1 <= took_s < 5


def test_who_comes_later_does_not_wait(worker: Worker, held: Held):
    """While work is late, others are let go at once."""
    assert seconds(lambda: worker.do(int, 30)) < 5


def test_kept_work_is_done_later(worker: Worker, held: Held):
    """A write goes on without its caller."""
    done: list[str] = []
    with pytest.raises(Late):
        worker.do(lambda: done.append("write"), 30, keep=True)
    held.go.set()
    worker.do(int, None)

    assert ["write"] == done


def test_other_work_is_dropped(worker: Worker, held: Held):
    """A read that nobody waits for is not done."""
    done: list[str] = []
    with pytest.raises(Late):
        worker.do(lambda: done.append("read"), 30)
    held.go.set()
    worker.do(int, None)

    assert [] == done


def test_line_behind_late_work_is_not_late(worker: Worker, held: Held):
    """Once the late work is done, callers wait their turn again."""
    behind, first = Held(), worker.late
    with pytest.raises(Late):
        worker.do(behind, 30, keep=True)
    held.go.set()
    assert first is not None
    assert first.done.wait(20)
    threading.Timer(0.1, behind.go.set).start()

    assert 3 == worker.do(lambda: 3, 20)


def test_line_is_bounded(worker: Worker, held: Held, monkeypatch: pytest.MonkeyPatch):
    """Writes do not pile up for ever behind one that is late."""
    monkeypatch.setattr(module, "LINE", 2)
    done: list[int] = []
    for number in range(5):
        with pytest.raises(Late):
            worker.do(lambda n=number: done.append(n), 0, keep=True)  # type: ignore[misc]
    held.go.set()
    worker.do(int, None)

    assert [0, 1] == done


def test_stopped_worker_closes_and_starts_again():
    """What the thread has open is closed by it, and the next job starts another."""
    ended: list[int] = []
    worker = Worker(lambda: ended.append(threading.get_ident()))
    threads = [worker.do(threading.get_ident, 1)]
    worker.stop(1)
    is_open = worker.do(lambda: len(ended), 1)
    worker.stop(1)

    assert (1, threads[0], 2) == (is_open, ended[0], len(ended))


def test_idle_worker_ends(monkeypatch: pytest.MonkeyPatch):
    """A thread without work closes what it has open and ends."""
    monkeypatch.setattr(module, "IDLE_S", 0.01)
    ended = threading.Event()
    worker = Worker(ended.set)
    worker.do(int, 1)

    assert ended.wait(10)


FORK = """
import os, threading, time
from tilewise.store.worker import Worker
worker = Worker(lambda: None)
worker.do(int, None)
if {late}:
    try:
        worker.do(lambda: time.sleep({late}), 0.1)
    except Exception:
        pass
pid = os.fork()
if not pid:
    os._exit(worker.do(lambda: 7, 5))
threads = threading.active_count()
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(threads, status, worker.do(lambda: 8, None))
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@forks
def test_both_sides_of_a_fork_work():
    """Parent and child go on; only one thread was there when they parted."""
    done = python(FORK.format(late=0))

    assert ("1 7 8\n", "") == (done.stdout, done.stderr)


@forks
def test_fork_waits_for_work_only_so_long():
    """A thread that hangs does not keep a process from forking."""
    code = "import warnings; warnings.simplefilter('ignore')\n" + FORK

    assert "2 7 8\n" == python(code.format(late=2)).stdout


def test_end_of_the_process_waits_for_kept_work():
    """A write that goes on without its caller is done before the process ends."""
    code = """
import time
from tilewise.store.worker import Late, Worker
def work():
    time.sleep(0.3)
    print("written", flush=True)
try:
    Worker(lambda: None).do(work, 0)
except Late:
    print("late", flush=True)
"""

    assert "late\nwritten\n" == python(code).stdout
