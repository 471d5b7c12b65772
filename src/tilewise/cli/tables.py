"""What commands share: JSON, aligned columns, the rows of `show`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from tilewise.api.explain_text import aligned
from tilewise.model.decision import DecisionTable
from tilewise.model.resolution import REFERENCE

__all__ = ["Json", "aligned", "printed", "show_rows"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def printed(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, default=str))


def show_rows(tables: Sequence[DecisionTable]) -> list[dict[str, Any]]:
    """Return a row per decided region: winner, speed-up, age, what it was made with."""
    rows = []
    for table in tables:
        for decision in table.decisions:
            times = {c.variant: c.timing for c in decision.candidates if c.timing}
            best, base = times.get(decision.variant), times.get(REFERENCE)
            rows.append(
                {
                    "kernel": table.kernel_name,
                    "table": table.key.label,
                    "hardware": table.key.fingerprint,
                    "region": ", ".join(map(str, decision.region)),
                    "variant": str(decision.variant),
                    "contended": decision.contended,
                    "speed": base.median_us / best.median_us if best and base else None,
                    "made": decision.made_utc,
                    "age_h": age_hours(decision.made_utc),
                    "provenance": dict(decision.provenance),
                }
            )
    return rows


def age_hours(made_utc: str) -> float | None:
    """Return how long ago a time was (hours), or None when it is no time."""
    try:
        made = datetime.fromisoformat(made_utc)
    except ValueError:
        return None
    return round((datetime.now(UTC) - made).total_seconds() / 3600, 2)
