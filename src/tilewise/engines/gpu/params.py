"""
The parameters of a generated kernel: what the source names and a launch fills in.

All are pointers, 64-bit integers or scalars, in this order: the arrays' pointers, the
sizes m, n and k, each array's strides by row and column in elements, the scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.engines.render import strong
from tilewise.model.problem import Form, Problem

__all__ = ["Face", "Param", "arrays", "face", "fixed", "indexed", "parameters"]

SIZES = ("m", "n", "k")


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: its name in the source, its dtype, and whether it is a pointer."""

    name: str
    dtype: str
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Face:
    """A 2-D array on a device: address, sizes and strides in elements."""

    address: int
    sizes: tuple[int, int]
    strides: tuple[int, int]

    def in_units(self, axis: int, unit: int) -> bool:
        """Say whether lines along an axis are whole units of 16 bytes, all aligned."""
        sizes, strides = self.sizes, self.strides
        whole = sizes[axis] % unit == 0 and strides[1 - axis] % unit == 0
        return whole and self.address % 16 == 0


def arrays(problem: Problem) -> tuple[tuple[str, Form], ...]:
    """Return the names of all arrays in the source, `out` last, with their forms."""
    operands = [f"o{i}_" for i in range(len(problem.spec.operands))]
    out = Form(problem.spec.dtype, "mn", "S")
    return tuple(zip(("x", "w", *operands, "out"), (*problem.forms, out), strict=True))


def parameters(problem: Problem) -> tuple[Param, ...]:
    """Return a problem's parameters in their order."""
    named = arrays(problem)
    pointers = [Param(name, form.dtype, pointer=True) for name, form in named]
    sizes = [Param(name, "int64") for name in SIZES]
    strides = [Param(name + axis, "int64") for name, _ in named for axis in "rc"]
    scalars = [
        Param(f"s{i}", strong(s.dtype)) for i, s in enumerate(problem.spec.scalars)
    ]
    return (*pointers, *sizes, *strides, *scalars)


def indexed(name: str, form: Form, row: str, column: str) -> str:
    """Write an array's element; unit strides and axes it does not vary along vanish."""
    both, unit = len(form.kind) == 2, form.layout
    steps = []
    if both or form.kind == "m":
        steps.append(row if both and unit == "F" else f"{row} * {name}r")
    if both or form.kind == "n":
        steps.append(column if unit == "C" else f"{column} * {name}c")
    return f"{name}[{' + '.join(steps) or '0'}]"


def face(view: Any) -> Face:
    """Return a device view as a 2-D array, leading axes of one element added."""
    item = view.dtype.itemsize
    shape, strides = (1, 1, *view.shape)[-2:], (0, 0, *view.strides)[-2:]
    return Face(view.address, shape, (strides[0] // item, strides[1] // item))


def fixed(faces: Sequence[Face], k: int) -> list[Any]:
    """Return what a launch passes between addresses and scalars, as in `parameters`."""
    m, n = faces[-1].sizes
    strides = [step for one in faces for step in one.strides]
    return [np.int64(value) for value in (m, n, k, *strides)]
