"""What is decided and who competes: a case and its contestants, no engine in sight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.engines.base import Run
from tilewise.model.decision import Point
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant

__all__ = ["Case", "Contestant", "Run", "filling"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """
    A variant that is loaded and ready to run.

    `compile_ms` is what building it took; an `isolated` one may crash, so that it is
    verified and timed in a worker process.
    """

    variant: Variant
    run: Run
    compile_ms: float = 0.0
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """
    One problem to decide, at the caller's own arguments, which are never written.

    `reference(*args)` is the user's function; `wider` computes the same in a wider
    precision from the same arguments, and is None where the reference itself, given
    wider arguments, does. `shape` and `dtype` are the result's. `depth` is the length
    k of its dot products; 0 says that there are none, and then only the caller's
    arguments are tried, since others may break what the function assumes.
    `tolerance` replaces the bound on the error: a number (relative and absolute), a
    pair (relative, absolute), or a callable of (actual, expected). A `bound` case is
    timed with its constants prepared, as a bound kernel runs it.
    """

    args: tuple[Any, ...]
    reference: Callable[..., Any]
    wider: Callable[..., Any] | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    depth: int
    tolerance: object = None
    point: Point = ()
    bound: bool = False


def filling(case: Case) -> Contestant:
    """Return the case's reference as a contestant that fills its output."""

    def run(*args_out: Any) -> Any:
        *args, out = args_out
        out[...] = case.reference(*args)
        return out

    return Contestant(REFERENCE, run)
