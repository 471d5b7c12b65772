"""Functions made from source text, for tests of what identifies code."""

from __future__ import annotations

from typing import Any

import numpy as np


def made(source: str, name: str = "f", file: str = "<made>", **names: Any) -> Any:
    """Return a function made from source text, as generated code is."""
    scope = {"__name__": "made_under_test", "np": np, **names}
    exec(compile(source, file, "exec"), scope)
    return scope[name]
