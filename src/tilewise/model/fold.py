"""
Batched and 1-D arguments as the 2-D problem that engines know.

A fold is a set of views, never a copy: "batch" makes one matrix of x's leading axes,
"row" gives a 1-D x a leading unit axis, "column" a 1-D w a trailing one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.model.spec import Spec

__all__ = ["fold_of", "fold_operand", "folded_run", "unfolded"]


def fold_of(spec: Spec, x: Any, w: Any) -> str | None:
    """
    Return the fold for two factors: "" for matrices, or words of the above.

    None stands for a pair that has no 2-D form without a copy.
    """
    if w.ndim > 2 or not (x.ndim and w.ndim) or x.ndim == w.ndim == 1:
        return None
    words = []
    if x.ndim == 1:
        words.append("row")
    if x.ndim > 2:
        if not x.flags.c_contiguous:
            return None
        words.append("batch")
    if w.ndim == 1:
        words.append("column")
    if words and not separate(spec):
        return None
    return " ".join(words)


def separate(spec: Spec) -> bool:
    """Say whether no argument is used twice or through a view."""
    used = (spec.x, spec.w, *spec.operands)
    places = [operand.position for operand in used]
    return len(set(places)) == len(places) and not any(o.view for o in used)


def unfolded(fold: str, x: Any, w: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Return both factors as matrices and the shape of the result."""
    shape = tuple(x.shape[:-1]) + tuple(w.shape[1:])
    if "row" in fold:
        x = x[None, :]
    elif "batch" in fold:
        x = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return x, w[:, None] if "column" in fold else w, shape


def fold_operand(fold: str, view: Any, shape: tuple[int, ...]) -> Any:
    """
    Return an operand against a result of `shape` as it stands in the 2-D problem.

    None stands for one that varies along a part of the leading axes, or has more of
    them than the result.
    """
    if not fold or view.ndim == 0:
        return view
    if view.ndim > len(shape):
        return None
    if "column" in fold:
        view = view[..., None]
        shape = (*shape, 1)
    lead, last = view.shape[:-1], view.shape[-1]
    if all(size == 1 for size in lead):
        return (
            view.reshape(1, last) if view.flags.c_contiguous or view.ndim == 1 else None
        )
    if tuple(lead) != shape[:-1] or not view.flags.c_contiguous:
        return None
    return view.reshape(math.prod(lead), last)


def folded_run(
    run: Callable[..., Any], spec: Spec, fold: str, shape: tuple[int, ...]
) -> Callable[..., Any]:
    """Let a run for matrices serve the caller's own shapes."""
    if not fold:
        return run
    x_at, w_at = spec.x.position, spec.w.position
    places = [operand.position for operand in spec.operands]

    def folded(*args_out: Any) -> Any:
        *args, out = args_out
        args[x_at], args[w_at], _ = unfolded(fold, args[x_at], args[w_at])
        for place in places:
            args[place] = fold_operand(fold, args[place], shape)
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        run(*args, whole.reshape(args[x_at].shape[0], args[w_at].shape[1]))
        if whole is not out:
            np.copyto(out, whole)
        return out

    return folded
