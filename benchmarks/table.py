"""
README's speed table, from the records: `python benchmarks/table.py` writes it there.

It shows the newest run of the suite and the newest of its peers on that machine, whole
or not: how many problems stand behind a figure is said.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from benchmarks.record import RECORDS, geomean, read

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- speed table: benchmarks/table.py -->", "<!-- end of speed table -->"
FLOOR = 0.97
"""A problem is slower than NumPy when the upper 95 % bound of its ratio is below."""

Rows = list[dict[str, Any]]


def newest(bench: str, file: Path) -> Rows:
    """Return the rows of a benchmark's last run in a file."""
    rows = read(bench, file)
    return [row for row in rows if row["run"] == rows[-1]["run"]]


def suite_file() -> Path | None:
    """Return the records with the newest run of the suite, or None."""
    runs = {file: newest("suite", file) for file in RECORDS.glob("cpu_*.jsonl")}
    dated = {file: rows[-1]["run"] for file, rows in runs.items() if rows}
    return max(dated, key=lambda file: dated[file]) if dated else None


def figure(values: list[float]) -> str:
    """Write a geometric mean with the range behind it."""
    if not values:
        return "-"
    return f"{geomean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def speeds(rows: Rows, **wanted: str) -> list[float]:
    """Return the median speeds of the rows that have some values."""
    chosen = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
    return [r["speed"]["median"] for r in chosen if "speed" in r]


def suite_lines(rows: Rows) -> list[str]:
    """Write the table by epilogue and dtype."""
    dtypes = ("float32", "float64")
    lines = ["| over plain NumPy | float32 | float64 |", "|---|---|---|"]
    for name in dict.fromkeys(r["epilogue"] for r in rows):
        cells = [figure(speeds(rows, epilogue=name, dtype=d)) for d in dtypes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def peer_lines(rows: Rows) -> list[str]:
    """Write the table by peer."""
    lines = ["| over | geometric mean (range) | problems |", "|---|---|---|"]
    for name in dict.fromkeys(r["peer"] for r in rows):
        found = speeds(rows, peer=name)
        lines.append(f"| {name} | {figure(found)} | {len(found)} |")
    return lines


def floor_text(rows: Rows) -> str:
    """Say how far from the roofline the large and the shallow problems are."""
    square = [r["over_floor"] for r in rows if r["m"] == r["n"] == r["k"] >= 256]
    shallow = [r["over_floor"] for r in rows if r["k"] <= 64 and r["m"] > r["k"]]
    parts = [
        f"{name} {figure(values)}"
        for name, values in (
            ("squares from 256 up", square),
            ("k up to 64 with a large result", shallow),
        )
        if values
    ]
    said = "; ".join(parts) or "not measured"
    return f"Times with `out=` over the roofline's floor: {said}."


def slower_text(rows: Rows) -> str:
    """Name the problems that are slower than NumPy."""
    slow = [
        f"{r['epilogue']} {r['dtype']} {r['m']}x{r['n']}x{r['k']}"
        for r in rows
        if r["speed"]["upper"] < FLOOR
    ]
    return f"Below {FLOOR} at the upper 95 % bound: {', '.join(slow) or 'none'}."


def table() -> str:
    """Return what stands between the markers."""
    file = suite_file()
    if file is None:
        return "\nNothing was measured yet.\n"
    run = newest("suite", file)
    rows = [r for r in run if "speed" in r]
    last, peers = run[-1], newest("peers", file)
    loads = [r["load"] for r in run]
    versions = last["provenance"]
    head = (
        f"Measured on {last['date']} on `{file.stem}` (load {min(loads)} to "
        f"{max(loads)}), NumPy {versions['numpy']} with {versions['blas']}, Python "
        f"{versions['python']}: geometric means of {len(rows)} problems' median "
        "speed, and their range, with the decisions that tuning stored, results "
        "allocated in each call, new arrays in NumPy too. NumPy against itself in "
        f"the same rounds: {figure([r['control']['median'] for r in rows])}."
    )
    texts = [textwrap.fill(t, 88) for t in (head, slower_text(rows), floor_text(rows))]
    texts.insert(1, "\n".join(suite_lines(rows)))
    if peers:
        texts.append("\n".join(peer_lines(peers)))
    return "\n" + "\n\n".join(texts) + "\n"


def with_table(text: str) -> str:
    """Return the README's text with the table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text("utf-8")), encoding="utf-8")
