"""What is decided and who competes: a case and its contestants, no engine in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.device.views import device_copy
from tilewise.engines.base import Run
from tilewise.model.decision import Point
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.tuner.bench import Bench

__all__ = ["Case", "Contestant", "Part", "Run", "filling", "returning"]

Part = Callable[[Sequence[Any], Any, Any], tuple[Any, ...]]
"""Takes arguments, rows and columns of a result; see `Case`."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """
    A variant that is loaded and ready to run.

    `compile_ms` is what building it took; an `isolated` one may crash, so that it is
    verified and timed in a worker process. `direct(*args)` is what a call without an
    output comes to, where that is not `run` on a new one. `version` identifies the
    code: figures of another do not hold for it.
    """

    variant: Variant
    run: Run
    compile_ms: float = 0.0
    isolated: bool = False
    direct: Callable[..., Any] | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """
    One problem to decide, at the caller's own arguments, which are never written.

    `reference(*args)` is the user's function; `wider` computes the same in a wider
    precision from the same arguments, and is None where the reference itself, given
    wider arguments, does. `shape` and `dtype` are the result's; where a case is not
    one that `fills` an output, contestants return whatever the reference does. `depth`
    is the length k of its dot products; 0 says that there are none, and then only the
    caller's arguments are tried, since others may break what the function assumes.
    `tolerance` replaces the bound on the error: a number (relative and absolute), a
    pair (relative, absolute), or a callable of (actual, expected). A `bound` case is
    timed with its constants prepared, as a bound kernel runs it. A case with a `bench`
    is run there, on copies of `args`, which are host arrays. `part(args, rows,
    columns)` are the arguments of some rows and columns of the result, where it has
    such parts.
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
    fills: bool = True
    bench: Bench | None = None
    part: Part | None = None


def filling(case: Case) -> Contestant:
    """Return the case's reference as a contestant."""
    return returning(REFERENCE, case.reference, case.fills)


def returning(
    variant: Variant,
    function: Callable[..., Any],
    fills: bool,
    isolated: bool = False,
) -> Contestant:
    """
    Return a contestant whose function returns its result.

    Where the case has an output, it is filled by copying; the result of any but the
    reference must have its shape and dtype.
    """

    def fill(*args_out: Any) -> Any:
        *args, out = args_out
        result = function(*args)
        form = (np.shape(result), getattr(result, "dtype", None))
        if form != (out.shape, out.dtype) and variant != REFERENCE:
            raise TypeError(
                f"it returns {form[1]} {form[0]}, the function {out.dtype} {out.shape}"
            )
        if isinstance(out, np.ndarray):
            out[...] = result
        else:
            device_copy(out, result)
        return out

    run = fill if fills else function
    return Contestant(variant, run, isolated=isolated, direct=function)
