"""What commands share: their common options, JSON, aligned columns."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tilewise.api.explain_text import aligned

__all__ = ["Debug", "Json", "aligned", "printed"]

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def printed(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, default=str))
