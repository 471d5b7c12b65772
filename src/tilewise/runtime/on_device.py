"""Calls whose arrays live on a device: the result is made there, in the same type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.device.arrays import EmulatedArray
from tilewise.device.views import device_empty
from tilewise.engines.base import Run
from tilewise.model.problem import Problem

__all__ = ["allocating", "reference_on"]


def allocating(run: Run, problem: Problem) -> Callable[..., Any]:
    """Return a call that allocates its result beside x and fills it."""
    place, shape = problem.spec.x.position, problem.shape
    dtype = np.dtype(problem.spec.dtype)

    def call(*args: Any) -> Any:
        return run(*args, device_empty(args[place], shape, dtype))

    return call


def reference_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    Return the reference for device arrays.

    CuPy's arrays answer NumPy's protocols, so the function itself serves them; for
    the emulated device's it is NumPy on copies.
    """

    def call(*args: Any) -> Any:
        emulated = [arg for arg in args if isinstance(arg, EmulatedArray)]
        if not emulated:
            return function(*args)
        host = [arg.get() if isinstance(arg, EmulatedArray) else arg for arg in args]
        result = np.ascontiguousarray(function(*host))
        made = device_empty(emulated[0], result.shape, result.dtype)
        made.set(result)
        return made

    return call
