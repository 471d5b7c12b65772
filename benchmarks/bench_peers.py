"""
The suite in JAX, torch, torch.compile and numexpr, each in a process of its own.

    python benchmarks/bench_peers.py [--venvs DIR] [--only relu,gelu,silu float32]

DIR holds a virtual environment for each of `jax` (with numexpr) and `torch`; those that
are missing are made there, by default in a directory that is removed afterwards. One
process works at a time, in shuffled rounds, with a rest between two for threads that
still spin. The tuned kernels run the decisions of the store that the suite used.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import SIZES
from benchmarks.record import REST_S, append, geomean, ratio

ROUNDS = 9
BLOCK_S = 2e-3
PROTOCOL = (
    "a process each, 9 shuffled rounds in blocks of at least 2 ms with 0.12 s of "
    "rest between; peer's time over the tuned kernel's by round: median and quartiles"
)
VENVS = {
    "jax": ("jax", ("jax", "numexpr", "numpy<2.5")),
    "numexpr": ("jax", ()),
    "torch": ("torch", ("torch", "numpy<2.5")),
    "torch.compile": ("torch", ()),
}
Problem = tuple[str, str, tuple[int, int, int]]


class Peer:
    """A process that answers one line with another."""

    def __init__(self, name: str, python: str) -> None:
        root = str(Path(__file__).parents[1])
        paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("peer.py")), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**kept, "PYTHONPATH": ":".join(paths)},
        )  # fmt: skip

    def ask(self, question: Any) -> Any:
        """Send a question and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def python_of(name: str, venvs: Path) -> str:
    """Return a peer's Python; makes its environment where it is missing."""
    if name not in VENVS:
        return sys.executable
    folder, packages = VENVS[name]
    python = venvs / folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", venvs / folder], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *packages], check=True, timeout=900
        )
    return str(python)


def rows_of(problem: Problem, peers: dict[str, Peer]) -> list[dict[str, Any]]:
    """Time one problem in all processes; returns a row for each peer."""
    epilogue, dtype, (m, n, k) = problem
    answers = {name: peer.ask(problem) for name, peer in peers.items()}
    able = [name for name, answer in answers.items() if "error" not in answer]
    once = {name: min(peers[name].ask(1) for _ in range(3)) for name in able}
    inner = {name: max(1, min(500, int(BLOCK_S * 1e9 / once[name]))) for name in able}
    random, times = np.random.default_rng(0), {name: [] for name in able}
    for _ in range(ROUNDS):
        for name in random.permutation(able):
            time.sleep(REST_S)
            times[name].append(peers[name].ask(inner[name]))
    place = {"epilogue": epilogue, "dtype": dtype, "m": m, "n": n, "k": k}
    rows = [
        {**place, "peer": name, "speed": ratio(times[name], times["tilewise"]),
         "us": round(statistics.median(times[name]) / 1e3, 2)}
        for name in able if name != "tilewise"
    ]  # fmt: skip
    failed = [name for name in answers if name not in able]
    return rows + [{**place, "peer": n, **answers[n]} for n in failed]


def main(given: list[str]) -> None:
    """Start the peers, run the problems, record."""
    epilogues, dtypes = ["relu", "gelu", "residual"], ["float32"]
    if "--only" in given:
        first = given.index("--only") + 1
        epilogues, dtypes = (one.split(",") for one in given[first : first + 2])
    with tempfile.TemporaryDirectory() as made:
        venvs = Path(given[given.index("--venvs") + 1] if "--venvs" in given else made)
        names = ("tilewise", "numpy", *VENVS)
        peers = {name: Peer(name, python_of(name, venvs)) for name in names}
        problems = [(e, d, s) for d in dtypes for e in epilogues for s in SIZES]
        rows = []
        for problem in problems:
            found = rows_of(problem, peers)
            print(problem, {r["peer"]: r.get("speed", r) for r in found}, flush=True)
            rows.extend(found)
        for peer in peers.values():
            peer.close()
    append("peers", PROTOCOL, rows)
    for name in names[1:]:
        speeds = [r["speed"]["median"] for r in rows if r["peer"] == name and "us" in r]
        print(f"over {name}: {geomean(speeds):.2f} on {len(speeds)} problems")


if __name__ == "__main__":
    main(sys.argv[1:])
