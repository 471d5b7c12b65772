"""Calls whose arrays live on a device: the result is made there, in the same type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.device.arrays import EmulatedArray
from tilewise.device.views import (
    device_copy,
    device_empty,
    device_view,
    is_device_array,
)
from tilewise.engines.base import Run
from tilewise.model.problem import Problem

__all__ = ["allocating", "reference_on", "unfolding"]


def allocating(run: Run, problem: Problem) -> Callable[..., Any]:
    """Return a call that allocates its result beside x and fills it."""
    place, shape = problem.spec.x.position, problem.shape
    dtype = np.dtype(problem.spec.dtype)

    def call(*args: Any) -> Any:
        return run(*args, device_empty(args[place], shape, dtype))

    return call


def unfolding(run: Run, problem: Problem) -> Run:
    """
    Let a folded run serve any library's arrays, and an `out` of any strides.

    A fold takes views that some libraries' arrays do not have.
    """
    if not problem.fold:
        return run

    def call(*args_out: Any) -> Any:
        *args, out = args_out
        seen = [device_view(arg) if is_device_array(arg) else arg for arg in args]
        if device_view(out).flags.c_contiguous:
            run(*seen, device_view(out))
            return out
        whole = device_empty(out, problem.shape, np.dtype(problem.spec.dtype))
        run(*seen, device_view(whole))
        device_copy(out, whole)
        return out

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
