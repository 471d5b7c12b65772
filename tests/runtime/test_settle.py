"""Whose turn it is to measure: one thread, one process; the others go on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tilewise import tuned_kernel
from tilewise.runtime.once import resolver
from tilewise.runtime.question import ask
from tilewise.runtime.settle import turn
from tilewise.store.decisions import table_name
from tilewise.store.stack import open_store

HOLD = """
import sys, pathlib
from tilewise.tuner.claims import claim
with claim(pathlib.Path(sys.argv[1]), sys.argv[2]) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def kernel() -> Any:
    """Return a fresh kernel of one function."""
    return tuned_kernel(budget_s=0.05)(lambda x, w, b: np.maximum(x @ w + b, 0))


def inputs() -> list[Any]:
    """Return (x, w, b)."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype("f4") for s in ((9, 8), (8, 7), (7,))]


def key_of(dense: Any) -> Any:
    """Return the key of the table that a call asks."""
    problem = ask(dense._subject, tuple(inputs())).problem
    assert problem is not None
    return resolver().key(problem)


@contextmanager
def another_process(dense: Any) -> Iterator[subprocess.Popen[str]]:
    """Let another process have the turn inside a `with` block."""
    folder, name = (
        Path(str(open_store().directory), "claims"),
        table_name(key_of(dense)),
    )
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert "True" == process.stdout.readline().strip()
    try:
        yield process
    finally:
        process.communicate("")


def test_a_call_goes_on_while_another_process_measures() -> None:
    """It is right, nothing is measured, and the next call after that measures."""
    dense = kernel()
    with another_process(dense):
        np.testing.assert_allclose(dense(*inputs()), dense.reference(*inputs()), 1e-5)
        assert 0 == dense.stats.tunings
    dense(*inputs())
    assert 1 == dense.stats.tunings


def test_a_dead_process_gives_its_turn_back() -> None:
    """Killed while it measures, another measures at once."""
    dense = kernel()
    with another_process(dense) as process:
        process.kill()
        process.wait(60)
        dense(*inputs())
        assert 1 == dense.stats.tunings


def test_tune_waits_for_another_process() -> None:
    """A tuning that was asked for is done when the other has ended."""
    dense = kernel()
    with another_process(dense) as process:
        threading.Timer(0.5, process.kill).start()
        report = dense.tune(*inputs())
    assert ("measured", 1) == (report.resolutions[0].grade, dense.stats.tunings)


def test_a_call_goes_on_while_another_thread_measures() -> None:
    """The turn of one thread is no other's."""
    dense, over = kernel(), threading.Event()
    began = threading.Event()

    def hold() -> None:
        with turn(resolver(), key_of(dense)):
            began.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    began.wait(60)
    dense(*inputs())
    assert 0 == dense.stats.tunings
    over.set()
    thread.join(60)
    dense(*inputs())
    assert 1 == dense.stats.tunings


CALL = """
import numpy as np
from tilewise import tuned_kernel
dense = tuned_kernel(budget_s=0.3)(lambda x, w, b: np.maximum(x @ w + b, 0))
rng = np.random.default_rng(1)
args = [rng.standard_normal(s).astype("f4") for s in ((9, 8), (8, 7), (7,))]
print("ready", flush=True)
input()
dense(*args)
print(dense.stats.tunings, flush=True)
input()
"""


def test_one_of_several_processes_measures() -> None:
    """Four that call at once measure once; each result is there at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CALL],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(4)
    ]  # fmt: skip
    pipes = [(p.stdin, p.stdout) for p in processes if p.stdin and p.stdout]
    try:
        for _, said in pipes:
            assert "ready" == said.readline().strip()
        for given, _ in pipes:
            given.write("\n")
            given.flush()
        told = sorted(said.readline().strip() for _, said in pipes)
    finally:
        for process in processes:
            process.communicate("\n")
    assert ["0", "0", "0", "1"] == told
