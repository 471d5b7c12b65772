"""Values to store, and processes to store them, for the tests of this folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tilewise
from tilewise.errors import StoreWarning
from tilewise.model.decision import Decision, DecisionTable, TableKey, cell
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.variant import Artifact, Variant

__all__ = ["KEY", "artifact", "decision", "is_root", "python", "table", "told"]

KEY = TableKey("cpu_here", "spec-1", "t", "host", "float32")
NOBODY = 65534


def artifact(size: int = 100, kind: str = "ptx", fill: bytes = b"x") -> Artifact:
    """Return compiled code of a size in bytes."""
    return Artifact(kind, "entry", fill * size, arch="arch", variant="cpu/small a=1")


def decision(m: int = 5, method: str = "small", made_utc: str = "") -> Decision:
    """Return a decision for the cell around a size."""
    winner = Variant("cpu", method, (("a", 1), ("b", 2.0), ("c", True), ("d", "e")))
    timing = Timing(1.5, 1.25, 1.75, 30)
    found = Candidate(winner, "measured", timing=timing, error=0.5)
    point = (("m", m),)
    return Decision(cell(point), winner, point, (found,), made_utc=made_utc)


def table(*decisions: Decision, key: TableKey = KEY) -> DecisionTable:
    """Return a table of the kernel `dense`."""
    return DecisionTable(key, "dense", decisions)


ANOTHER_USER = """
import os, diskcache, msgspec, platformdirs, sqlite3
import tilewise.store.readonly, tilewise.store.stack
os.setgroups([]), os.setgid({0}), os.setuid({0})
"""
"""What makes a process another user's. It imports first: the interpreter may lie where
that user can't look."""


def python(
    code: str, *args: object, unprivileged: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """
    Run code in a process of its own; its warnings are errors.

    An `unprivileged` one is not root, for whom permissions do not hold.
    """
    if unprivileged and is_root():
        code = ANOTHER_USER.format(NOBODY) + code
    source = str(Path(tilewise.__file__).parents[1])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TILEWISE_")}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**kept, "PYTHONPATH": source, **variables}, start_new_session=True,
    )  # fmt: skip
    with process:
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # Its forks hold the pipes too.
            raise
    return subprocess.CompletedProcess(code, process.returncode, out, err)


def is_root() -> bool:
    """Say whether permissions do not hold for this process."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


@contextmanager
def told() -> Iterator[list[str]]:
    """Collect what is told."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(one.message) for one in caught if one.category is StoreWarning]
