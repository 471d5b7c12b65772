"""Python ints that meet integer arrays: NumPy checks their range at each call."""

from __future__ import annotations

import numpy as np

from tilewise.model.expr import Node
from tilewise.model.ops import loop_dtypes
from tilewise.model.spec import Spec

__all__ = ["range_reason"]

OTHERS = ("product", "operand", "scalar", "const", "astype")


def range_reason(spec: Spec) -> str | None:
    """
    Return why the range of a Python int keeps a spec from being fused, or None.

    A constant must fit the integers that it is computed in. One that a call gives is
    converted to int64, which says itself when it does not fit.
    """
    for node in spec.nodes:
        if node.op in OTHERS:
            continue
        below = [spec.nodes[i] for i in node.args]
        loop = loop_dtypes(node.op, tuple(n.dtype for n in below))
        for operand, dtype in zip(below, loop, strict=False):
            if operand.dtype == "int" and not fits(operand, dtype):
                return f"{node.op} takes a Python int whose range in {dtype} counts"
    return None


def fits(operand: Node, dtype: str) -> bool:
    """Say whether a Python int can be computed in a dtype without a check."""
    if np.dtype(dtype).kind not in "iu":
        return True
    if operand.op != "const":
        return dtype == "int64"
    limits = np.iinfo(dtype)
    return bool(limits.min <= operand.value <= limits.max)
