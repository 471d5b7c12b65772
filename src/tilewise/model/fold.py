"""
Batched and 1-D arguments as the 2-D problem that engines know.

A fold is a set of views, never a copy: "batch" makes one matrix of x's leading axes,
"row" gives a 1-D x a leading unit axis, "column" a 1-D w a trailing one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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


class Folded:
    """
    A run for matrices that serves the caller's own shapes.

    Bound, it binds the run for matrices.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        spec: Spec,
        fold: str,
        shape: tuple[int, ...],
    ) -> None:
        self._run, self._about = run, (spec, fold, shape)

    def __call__(self, *args_out: Any) -> Any:
        """Fill and return the last argument."""
        spec, out = self._about[0], args_out[-1]
        args = self.folded(args_out[:-1])
        rows = args[spec.x.position].shape[0]
        columns = args[spec.w.position].shape[1]
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        self._run(*args, whole.reshape(rows, columns))
        if whole is not out:
            np.copyto(out, whole)
        return out

    def bind(self, args: Sequence[Any]) -> Callable[..., Any]:
        """Bind the run for matrices, if it can be bound."""
        bind = getattr(self._run, "bind", None)
        if bind is None:
            return self
        return Folded(bind(self.folded(args)), *self._about)

    def folded(self, args: Sequence[Any]) -> list[Any]:
        """Return the arguments as the run takes them."""
        spec, fold, shape = self._about
        found = list(args)
        x_at, w_at = spec.x.position, spec.w.position
        found[x_at], found[w_at], _ = unfolded(fold, found[x_at], found[w_at])
        for operand in spec.operands:
            at = operand.position
            found[at] = fold_operand(fold, found[at], shape)
        return found


def folded_run(
    run: Callable[..., Any], spec: Spec, fold: str, shape: tuple[int, ...]
) -> Callable[..., Any]:
    """Let a run for matrices serve the caller's own shapes."""
    return Folded(run, spec, fold, shape) if fold else run
