"""NumPy functions that are no ufuncs, and how tracing records each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tilewise.model.ops import OPS
from tilewise.model.standin import clip
from tilewise.model.trace import Session, unsupported

__all__ = ["FUNCTIONS"]


def where(session: Session, condition: Any, x: Any = None, y: Any = None) -> Any:
    """Record np.where with three operands."""
    if x is None or y is None:
        raise unsupported("np.where with one argument", "it finds positions")
    return session.call(OPS["where"], condition, x, y)


def clipped(
    session: Session,
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    out: Any = None,
) -> Any:
    """Record np.clip with either spelling of its bounds."""
    from tilewise.model.standin import store

    low, high = (a_min if min is None else min), (a_max if max is None else max)
    result = clip(session, a, low, high)
    return result if out is None else store(out, result)


def transposed(session: Session, a: Any, axes: Any = None) -> Any:
    """Record np.transpose and np.matrix_transpose."""
    return a.transpose(axes)


def dot(session: Session, a: Any, b: Any) -> Any:
    """Record np.dot."""
    return session.product("dot", a, b)


def matmul(session: Session, a: Any, b: Any) -> Any:
    """Record np.linalg.matmul."""
    return session.product("matmul", a, b)


def cast(session: Session, x: Any, dtype: Any, copy: bool = True) -> Any:
    """Record np.astype."""
    return x.astype(dtype, copy=copy)


def expanded(session: Session, a: Any, axis: int) -> Any:
    """Record np.expand_dims for one axis."""
    place = axis if axis >= 0 else axis + a.ndim + 1
    index = (slice(None),) * place + (None,)
    return a[index]


FUNCTIONS: Mapping[Any, Callable[..., Any]] = MappingProxyType(
    {
        np.where: where,
        np.clip: clipped,
        np.transpose: transposed,
        np.matrix_transpose: lambda session, x: x.T,
        np.dot: dot,
        np.linalg.matmul: matmul,
        np.astype: cast,
        np.copy: lambda session, a, **_: a.copy(),
        np.expand_dims: expanded,
        np.reshape: lambda session, a, shape: a.reshape(shape),
        np.ndim: lambda session, a: a.ndim,
        np.shape: lambda session, a: a.shape,
    }
)
