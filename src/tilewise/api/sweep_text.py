"""A sweep as text for people: its regions, and what they may cost."""

from __future__ import annotations

import math

from tilewise.api.explain_text import aligned, beyond_text, wrapped
from tilewise.model.decision import Decision, Region
from tilewise.model.swept import Swept

__all__ = ["swept_text"]

ENDS = {
    "regret": "the expected loss is low enough",
    "settled": "nothing is left to probe",
    "budget": "the budget is spent",
    "interrupted": "interrupted: what is measured is kept",
    "decided": "swept before: nothing was measured",
    "busy": "another process measures this table",
}


def swept_text(sweep: Swept) -> list[str]:
    """Return the lines of a sweep: what it was, then a row a region."""
    head = f"{box_text(sweep.box)}: {ENDS[sweep.ended]}"
    if sweep.points:
        count = f"{sweep.points} problem{'s' * (sweep.points != 1)}"
        loss = f"{sweep.regret:.1%}" if math.isfinite(sweep.regret) else "unknown"
        head += f"; {count} measured in {sweep.measured_s:.1f} s, expected loss {loss}"
    rows: list[tuple[str, ...]] = [("region", "variant", "expected loss")]
    rows += [row_of(one) for one in sweep.regions if one.origin != "extrapolated"]
    beyond = sum(one.origin == "extrapolated" for one in sweep.regions)
    lines = [*wrapped(head), *wrapped(sweep.label, "  ")]
    if len(rows) > 1:
        lines += [f"  {row}" for row in aligned(rows)]
    if beyond:
        lines.append(f"  {beyond_text(beyond)}")
    return [*lines, ""]


def row_of(decision: Decision) -> tuple[str, ...]:
    """Return a region's row."""
    loss = "-" if decision.regret is None else f"{decision.regret:.1%}"
    loss += ", under load" if decision.contended else ""
    return (box_text(decision.region), str(decision.variant), loss)


def box_text(region: Region) -> str:
    """Write a box."""
    return ", ".join(map(str, region))
