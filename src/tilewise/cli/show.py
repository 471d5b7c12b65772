"""`tilewise show`: the decided regions as a table, as JSON, as a map or a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewise.api.explain_text import age_s, age_text, beyond_text
from tilewise.cli.tables import Debug, Json, aligned, printed
from tilewise.errors import ArgumentError
from tilewise.model.box import BoxTable
from tilewise.model.decision import Decision, DecisionTable, Range
from tilewise.model.resolution import REFERENCE
from tilewise.store.stack import Store, open_store

__all__ = ["show"]

SHOWN = ("numpy", "numba", "driver", "tilewise")
"""The versions that stand in the text; JSON has all of them."""


def show(
    kernel: Annotated[str, typer.Argument(help="A kernel's name, or all.")] = "",
    *,
    plot: Annotated[
        Path | None, typer.Option(help="Draw a map of the winners to a .png or .svg.")
    ] = None,
    at: Annotated[
        str, typer.Option(help="With --plot: the axes that are fixed, as in k=784.")
    ] = "",
    script: Annotated[
        bool, typer.Option("--script", help="Print a program that measures it again.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the decided regions with winner, speed-up, age and provenance."""
    store = open_store()
    tables, stated = decided(store, kernel)
    if script:
        from tilewise.cli.script import script_of

        print(script_of(tables), end="")
        return
    if plot is not None:
        from tilewise.cli.plots import draw

        rows = {t.key: {row.point for row in store.rows(t.key)} for t in tables}
        draw(tables, plot, at, rows)
        print(f"wrote {plot}", file=sys.stderr)
    if as_json:
        every: list[DecisionTable | BoxTable] = [*tables, *stated]
        printed([row for table in every for row in rows_of(table)])
    elif plot is None:
        named = map(stated_text, stated) if kernel else [names_text(stated)]
        parts = [*map(told, tables), *named]
        print("\n\n".join(filter(None, parts)) or "nothing is decided yet")


def decided(store: Store, name: str) -> tuple[list[DecisionTable], list[BoxTable]]:
    """
    Return what is decided and what programs stated for a name, or for all.

    Raises ArgumentError with similar names where a name has neither.
    """
    tables, stated = store.tables(), store.boxes.every()
    own = [t for t in tables if name in ("", t.kernel_name)]
    others = [t for t in stated if name in ("", t.name)]
    if name and not own and not others:
        names = sorted({t.kernel_name for t in tables} | {t.name for t in stated})
        near = ", ".join(get_close_matches(name, names))
        hint = f"; similar names are {near}" if near else ""
        raise ArgumentError(f"nothing is decided for a kernel named {name!r}{hint}")
    return own, others


def names_text(stated: Sequence[BoxTable]) -> str:
    """Say what regions programs stated themselves, and how they are shown."""
    names = sorted({table.name for table in stated})
    if not names:
        return ""
    return (
        f"regions by name, as programs stated them: {', '.join(names)}\n"
        '  "tilewise show NAME" shows them, DecisionStore.get_regions returns them'
    )


def stated_text(table: BoxTable) -> str:
    """Write the regions that a program stated, in their order."""
    age = age_s(table.made_utc)
    head = f"{table.name}: regions by {', '.join(table.axes)}, as a program stated them"
    lines = [head, f"  on {table.fingerprint}"]
    if table.code_version:
        lines.append(f"  of code {table.code_version}")
    lines += [] if age is None else [f"  {age_text(age)} ago"]
    given = [json.loads(box.text) for box in table.boxes]
    lines += ["  " + ", ".join(f"{k}={v}" for k, v in one.items()) for one in given]
    return "\n".join(lines)


def rows_of(table: DecisionTable | BoxTable) -> list[dict[str, Any]]:
    """Return a row per region: winner, speed-up, age, what it was made with."""
    if isinstance(table, BoxTable):
        return [
            {
                "name": table.name,
                "hardware": table.fingerprint,
                "region": json.loads(box.text),
                "code_version": table.code_version,
                "made": table.made_utc,
                "provenance": dict(table.provenance),
            }
            for box in table.boxes
        ]
    return [
        {
            "kernel": table.kernel_name,
            "table": table.key.label,
            "hardware": table.key.fingerprint,
            "region": ", ".join(map(str, decision.region)),
            "variant": str(decision.variant),
            "grade": decision.grade,
            "ties": [str(variant) for variant in decision.ties],
            "contended": decision.contended,
            "speed": speed_of(decision),
            "regret": decision.regret,
            "measured_at": dict(decision.point),
            "made": decision.made_utc,
            "age_s": age_s(decision.made_utc),
            "provenance": dict(decision.provenance),
        }
        for decision in table.decisions
    ]


def told(table: DecisionTable) -> str:
    """Write a table's regions for people."""
    rows = [("region", "winner", "speed", "loss", "age", "grade")]
    inside = [one for one in table.decisions if one.origin != "extrapolated"]
    beyond = len(table.decisions) - len(inside)
    for one in inside or table.decisions:
        speed, age = speed_of(one), age_s(one.made_utc)
        notes = [one.grade, "tied"[: 4 * bool(one.ties)]]
        notes.append("under load" if one.contended else "")
        rows.append(
            (
                ", ".join(map(span_text, one.region)),
                str(one.variant),
                f"{speed:.2f}x" if speed else "-",
                "-" if one.regret is None else f"{one.regret:.1%}",
                "-" if age is None else age_text(age),
                ", ".join(filter(None, notes)),
            )
        )
    head = [f"{table.kernel_name}: {table.key.label}", f"  on {table.key.fingerprint}"]
    lines = [f"  {line}" for line in aligned(rows, right=(2, 3, 4))]
    if inside and beyond:
        lines.append(f"  {beyond_text(beyond)}")
    return "\n".join([*head, *versions(table.decisions), *lines])


def versions(decisions: Sequence[Decision]) -> list[str]:
    """Return a line for each set of versions that decisions were made with."""
    sets = dict.fromkeys(
        ", ".join(f"{k} {v}" for k, v in one.provenance if k in SHOWN and v)
        for one in decisions
    )
    return [f"  with {one}" for one in sets if one]


def span_text(span: Range) -> str:
    """Write a range in short: `m 64-127`, `m 4096+`, `m 0`."""
    if span.high is None:
        return f"{span.axis} {span.low}+" if span.low else f"any {span.axis}"
    high = f"-{span.high}" if span.high != span.low else ""
    return f"{span.axis} {span.low}{high}"


def speed_of(decision: Decision) -> float | None:
    """Return how many times as fast as the reference the winner was measured."""
    best, base = decision.timing(decision.variant), decision.timing(REFERENCE)
    return base.median_us / best.median_us if best and base else None
