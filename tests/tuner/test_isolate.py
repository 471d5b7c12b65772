"""Isolation: what crashes, hangs or exhausts memory is recorded, tuning goes on."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tuner import contestants as c
from tilewise.model.resolution import REFERENCE
from tilewise.tuner.isolate import Limits, Lost, Worker
from tilewise.tuner.planner import decide

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

LIMITS = Limits(seconds=1.0, bytes=1 << 30)

REASONS = {
    c.raiser: "raises ValueError: no such tile",
    c.exiter: "exits with code 3",
    c.quitter: "exits with code 4",
    c.aborter: "is killed by SIGABRT",
    c.looper: "ran past 1 s, the most that any gets",
    c.interrupter: "raises KeyboardInterrupt: ",
}


@pytest.mark.parametrize("run", REASONS, ids=lambda run: run.__name__)
def test_records_how_a_contestant_ends(run: Any) -> None:
    """Each way to go is recorded, and the tuning goes on with the others."""
    entries = [c.entry(run, isolated=True), c.entry(c.right)]
    decision = decide(c.case(), entries, (), None, 0.01, limits=LIMITS)
    parts = {str(part.variant): part for part in decision.candidates}
    part = parts[f"test/{run.__name__}"]
    assert ("failed", REASONS[run]) == (part.status, part.reason)
    assert parts["test/right"].error is not None


def test_records_exhausted_memory() -> None:
    """A contestant that asks for 64 GiB gets none and fails alone."""
    entries = [c.entry(c.hoarder, isolated=True)]
    part = decide(c.case(), entries, (), None, 0.01, limits=LIMITS).candidates[-1]
    assert "failed" == part.status
    assert "MemoryError" in part.reason


def test_times_a_contestant_in_its_worker() -> None:
    """An isolated contestant that is right is measured like any other."""
    entries = [c.entry(c.lazy, isolated=True)]
    part = decide(c.case(), entries, (), None, 10, limits=LIMITS).candidates[-1]
    assert "measured" == part.status
    assert part.timing is not None
    assert part.timing.rounds > 0


def test_finds_wrong_results_in_a_worker() -> None:
    """Verification in a worker gives the same verdict as here."""
    entries = [c.entry(c.half_writer, isolated=True)]
    part = decide(c.case(), entries, (), None, 0.01, limits=LIMITS).candidates[-1]
    assert "leaves 6 of 54 elements unwritten (your arguments)" == part.reason


def test_records_a_crash_while_timing() -> None:
    """One that passes verification and then aborts is failed, without figures."""
    calls = iter([c.right] * 7)

    def late(*args: Any) -> Any:
        return next(calls, c.aborter)(*args)

    entries = [c.entry(late, isolated=True)]
    decision = decide(c.case(), entries, (), None, 10, limits=LIMITS)
    part = decision.candidates[-1]
    assert (REFERENCE, "failed") == (decision.variant, part.status)
    assert ("is killed by SIGABRT", None) == (part.reason, part.timing)


def test_a_worker_ends_with_its_tuning() -> None:
    """No process is left when a decision is made."""
    entries = [c.entry(c.right, isolated=True)]
    decide(c.case(), entries, (), None, 0.01, limits=LIMITS)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_lost_worker_stays_lost() -> None:
    """Asking again gives the same reason, and no new process."""
    worker = Worker({"go": c.quitter}, LIMITS)
    with pytest.raises(Lost, match="exits with code 4"):
        worker.ask("go")
    with pytest.raises(Lost, match="exits with code 4"):
        worker.ask("go")


def test_a_worker_ends_after_its_parent(tmp_path: Path) -> None:
    """One that loops without end does not outlive a parent that was killed."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, threading, time
            from tests.tuner import contestants as c
            from tilewise.tuner import isolate

            isolate.GRACE_S = 0.1
            worker = isolate.Worker({"go": c.looper}, isolate.Limits(0.5, 1 << 30))
            print(worker.pid, flush=True)
            os.write(worker.sending, b"go\\n")
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=60,
    )
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    end = time.monotonic() + 10
    while is_running(stat) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(stat)


def is_running(stat: Path) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_answers_are_values() -> None:
    """A worker hands back numbers and texts."""
    worker = Worker({"add": lambda a, b: int(a) + int(b)}, LIMITS)
    assert 5 == worker.ask("add", 2, 3)
    worker.close()


def test_says_why_it_cannot_isolate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without os.fork the contestant fails with a clear reason, not the tuning."""
    monkeypatch.delattr(os, "fork")
    entries = [c.entry(c.right, isolated=True)]
    part = decide(c.case(), entries, (), None, 0.01).candidates[-1]
    assert ("failed", "cannot be isolated: this system has no os.fork") == (
        part.status,
        part.reason,
    )


def test_many_workers_are_asked_at_once() -> None:
    """Descriptors beyond the 1024 that select() takes are waited for, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    place = os.open(os.devnull, os.O_RDONLY)
    held = [os.dup(place) for _ in range(1030)]
    try:
        worker = Worker({"add": lambda a, b: int(a) + int(b)}, LIMITS)
        assert 5 == worker.ask("add", 2, 3)
        worker.close()
    finally:
        for one in (place, *held):
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_worker_that_cannot_start_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes or descriptors have run out the contestant fails alone."""

    def none_left() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    before = len(list(Path("/dev/fd").iterdir()))
    monkeypatch.setattr(os, "fork", none_left)
    with pytest.raises(Lost, match="cannot be isolated"):
        Worker({}, LIMITS)
    assert before == len(list(Path("/dev/fd").iterdir()))


def test_two_answers_at_once_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contestant that forks, so that two answer, fails; the tuning does not."""
    worker = Worker({"go": lambda: 1}, LIMITS)
    monkeypatch.setattr(worker, "line", lambda: b'["value", 1]["value", 1]\n')
    with pytest.raises(Lost, match="answers in other words"):
        worker.ask("go")
    with pytest.raises(ChildProcessError):
        os.waitpid(worker.pid, 0)


def test_scripts_without_a_main_guard_work(tmp_path: Path) -> None:
    """A script that tunes at its top level runs once, isolation included."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from tests.tuner import contestants as c
            from tilewise.tuner.planner import decide

            print("top")
            entries = [c.entry(c.lazy, isolated=True)]
            parts = decide(c.case(), entries, (), None, 10).candidates
            print(parts[-1].status)
            """
        )
    )
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert ("top\nmeasured\n", "") == (done.stdout, done.stderr)


def test_leaves_no_file_open() -> None:
    """A worker starts without a ResourceWarning, as `python -W error` would show."""
    code = "from tilewise.tuner.isolate import Worker; Worker({'a': int}).ask('a')"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "" == found.stderr
