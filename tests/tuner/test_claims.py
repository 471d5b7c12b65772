"""Claims: one sweep at a time, across threads and processes, also after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilewise.tuner.claims import claim

HOLD = """
import sys, pathlib
from tilewise.tuner.claims import claim
with claim(pathlib.Path(sys.argv[1]), "sweep") as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Start a process that claims and holds until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def said(process: subprocess.Popen[str]) -> str:
    """Return the first line that a holder prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    """Let a holder go and wait for it."""
    process.communicate("")


def test_one_thread_gets_it(tmp_path: Path) -> None:
    """Of eight threads that claim at once exactly one gets it."""
    start, over, got = threading.Barrier(8), threading.Barrier(8), []

    def work() -> None:
        start.wait()
        with claim(tmp_path, "sweep") as mine:
            got.append(mine)
            over.wait()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [False] * 7 + [True] == sorted(got)


def test_is_free_again_afterwards(tmp_path: Path) -> None:
    """A claim that was given back can be taken."""
    for _ in range(2):
        with claim(tmp_path, "sweep") as mine:
            assert mine


def test_names_are_apart(tmp_path: Path) -> None:
    """Two names can be held at the same time."""
    with claim(tmp_path, "one") as one, claim(tmp_path, "other") as other:
        assert (True, True) == (one, other)


def test_one_process_gets_it(tmp_path: Path) -> None:
    """While a process holds a claim, this one does not get it."""
    process = holder(tmp_path)
    try:
        assert "True" == said(process)
        with claim(tmp_path, "sweep") as mine:
            assert not mine
    finally:
        end(process)
    with claim(tmp_path, "sweep") as mine:
        assert mine


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_one_takes_over_from_the_dead(tmp_path: Path) -> None:
    """When a holder is killed, exactly one of three others gets its claim."""
    first = holder(tmp_path)
    assert "True" == said(first)
    first.kill()
    first.communicate()
    others = [holder(tmp_path) for _ in range(3)]
    try:
        answers = sorted(said(process) for process in others)
    finally:
        for process in others:
            end(process)
    assert ["False", "False", "True"] == answers


def test_a_folder_that_cannot_be_made_still_serves_threads(tmp_path: Path) -> None:
    """Without a place for the file the claim holds within the process."""
    place = tmp_path / "file"
    place.write_text("")
    with claim(place, "sweep") as one, claim(place, "sweep") as two:
        assert (True, False) == (one, two)


def test_an_error_gives_the_claim_back(tmp_path: Path) -> None:
    """A sweep that raises leaves nothing behind."""
    with pytest.raises(ZeroDivisionError), claim(tmp_path, "sweep"):
        raise ZeroDivisionError
    with claim(tmp_path, "sweep") as mine:
        assert mine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_keep_a_claim(tmp_path: Path) -> None:
    """A child that was forked meanwhile, and lives on, bars nobody."""
    code = """
import os, pathlib, sys
from tilewise.tuner.claims import claim
with claim(pathlib.Path(sys.argv[1]), "sweep") as mine:
    if not os.fork():
        print(mine, flush=True)
        sys.stdin.read()
        os._exit(0)
os._exit(0)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        assert "True" == said(process)
        process.wait(60)
        with claim(tmp_path, "sweep") as mine:
            assert mine
    finally:
        end(process)


def test_the_folder_is_private(tmp_path: Path) -> None:
    """Claims may be the first to make the store's directory: nobody else may look."""
    with claim(tmp_path / "store" / "claims", "sweep") as mine:
        assert mine
    modes = [
        (tmp_path / name).stat().st_mode & 0o777 for name in ("store", "store/claims")
    ]
    assert [0o700, 0o700] == modes
