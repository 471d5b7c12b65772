"""
The check of an artifact's results when a device runs it for the first time.

Two small problems of the artifact's own forms, one of whole units of 16 bytes and one
odd, are computed into poisoned memory and held against NumPy. It is to find images that
compute something else (another kernel's parameters, a compiler's or a driver's fault),
once for each device; last digits and large sizes are the tuner's to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewise.device.driver import Gpu
from tilewise.device.seam import Device
from tilewise.device.staging import Staging
from tilewise.device.views import DeviceView
from tilewise.engines.render import strong
from tilewise.errors import EngineError
from tilewise.model.expr import apply
from tilewise.model.problem import Problem
from tilewise.model.spec import Spec

__all__ = ["check_first_use", "computed", "identity"]

SIZES = ((36, 40, 20), (37, 29, 21))
POISON = 0xA5
AGREED, SHARE = 0.01, 0.9
"""Within 1 %, for 90 % of the elements: a step may fall the other way in the rest."""

Array = np.ndarray[Any, np.dtype[Any]]
Launched = Callable[[Sequence[DeviceView], Sequence[Any]], None]


def identity(device: Device) -> str:
    """Return what an artifact that was checked on a device is marked with."""
    found = device.properties
    if found.emulated:
        return "emulated"
    return Gpu(found.name, found.compute_capability, found.sm_count).slug


def check_first_use(device: Device, problem: Problem, launch: Launched) -> None:
    """
    Run small problems and compare; raises EngineError for wrong results.

    `launch(views, scalars)` launches over matrices in the problem's roles, `out` last.
    """
    numbers = [number_of(scalar.dtype) for scalar in problem.spec.scalars]
    typed = [
        np.dtype(strong(scalar.dtype)).type(number)
        for scalar, number in zip(problem.spec.scalars, numbers, strict=True)
    ]
    for sizes in SIZES:
        matrices, staging = made(problem, sizes), Staging(device)
        with np.errstate(all="ignore"):
            expected = computed(problem.spec, matrices, numbers)
        out = np.full(expected.nbytes, POISON, np.uint8).view(expected.dtype)
        out = out.reshape(expected.shape)
        views = [
            staging.copied_in(matrix, "F" if form.layout == "F" else "C")
            for matrix, form in zip(matrices, problem.forms, strict=True)
        ]
        views.append(staging.copied_in(out, "C"))
        launch(views, typed)
        device.synchronize()
        staging.copy_out(out, views[-1])
        fault = difference(out, expected)
        if fault:
            name = device.properties.name
            raise EngineError(f"its first use on {name} gives wrong results: {fault}")


def number_of(dtype: str) -> Any:
    """Return a number of a scalar's dtype; the Python ones are weak."""
    weak = {"bool": True, "int": 2, "float": 0.75}
    return weak[dtype] if dtype in weak else np.dtype(dtype).type(2)


def made(problem: Problem, sizes: tuple[int, int, int]) -> list[Array]:
    """Return matrices of a problem's forms: quarters, so that products are exact."""
    random = np.random.default_rng(7)
    m, n, k = sizes

    shapes = {"mk": (m, k), "kn": (k, n), "mn": (m, n), "m": (m, 1), "n": (1, n)}
    return [
        (random.integers(-6, 7, shapes.get(form.kind, (1, 1))) / 4).astype(form.dtype)
        for form in problem.forms
    ]


def computed(spec: Spec, matrices: Sequence[Array], numbers: Sequence[Any]) -> Array:
    """Compute a spec from its factors, operands and numbers as NumPy would."""
    x, w, *operands = matrices
    leaves = {"operand": operands, "scalar": numbers}
    values: list[Any] = []
    for node in spec.nodes:
        if node.op == "product":
            values.append(x @ w)
        elif node.op in leaves:
            values.append(leaves[node.op][node.value])
        else:
            values.append(apply(node, [values[at] for at in node.args], {}))
    shape = x.shape[0], w.shape[1]
    return np.array(np.broadcast_to(values[-1], shape), spec.dtype)


def difference(out: Array, expected: Array) -> str:
    """Say what differs too much, or ""."""
    raw = out.view(np.uint8).reshape(out.size, out.itemsize)
    kept = int((raw == POISON).all(1).sum())
    if kept:
        return f"{kept} of {out.size} elements are not written"
    with np.errstate(all="ignore"):
        pair = out.astype(np.float64), expected.astype(np.float64)
        same = np.isclose(*pair, AGREED, AGREED, equal_nan=True)
    if same.mean() >= SHARE:
        return ""
    at = tuple(map(int, np.argwhere(~same)[0]))
    return f"{out[at]!s} at {at}, not {expected[at]!s}"
