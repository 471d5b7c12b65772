"""`tilewise report`: what kernels cost and saved so far, in all processes."""

from __future__ import annotations

from dataclasses import asdict

from tilewise.cli.tables import Debug, Json, aligned, printed
from tilewise.model.totals import Totals
from tilewise.store.stack import open_store

__all__ = ["report"]


def report(*, as_json: Json = False, debug: Debug = False) -> None:
    """
    Say what tuning and compiling cost, and what the winners saved, per kernel.

    Counted are processes that have ended and that tuned, compiled, or saved at least
    0.1 s. Saved is told by the medians that chose the winners.
    """
    rows = open_store().totals.every()
    if as_json:
        printed([asdict(row) for row in rows])
    elif rows:
        print(table(rows))
    else:
        print("no process has told what its kernels cost and saved yet")


def table(rows: list[Totals]) -> str:
    """Write totals for people, a block per hardware."""
    head = ("kernel", "runs", "calls", "tunings", "tuning", "compiling", "saved")
    lines = []
    for hardware in sorted({row.hardware for row in rows}):
        own = [told(row) for row in rows if row.hardware == hardware]
        lines += [f"on {hardware}", *aligned([head, *own], right=range(1, 7))]
    return "\n".join(lines)


def told(row: Totals) -> tuple[str, ...]:
    """Write one kernel's totals."""
    counts = (row.processes, row.calls, row.tunings)
    times = (row.tuning_ms, row.compile_ms, row.saved_ms)
    return (row.kernel, *map(str, counts), *map(seconds, times))


def seconds(value_ms: float) -> str:
    """Write a time in s with three figures, or in ms."""
    return f"{value_ms / 1e3:.3g} s" if value_ms >= 1e3 else f"{value_ms:.1f} ms"
