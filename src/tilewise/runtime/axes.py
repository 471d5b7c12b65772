"""
The axes of a kernel: sizes that its author computes from the arguments of a call.

They and the arguments' forms are all that the choice of a variant depends on, so both
are the key under which a call is looked up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.device.views import device_view, is_device_array
from tilewise.errors import ArgumentError, TilewiseError
from tilewise.model.decision import Point
from tilewise.runtime.dispatch import NUMBERS, is_static

__all__ = ["Axis", "axis_of", "form_of", "forms_of", "point_of", "raised"]


LARGEST = (1 << 63) - 1
"""The largest size that a table holds."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A named size: `function` is given the arguments at `places`."""

    name: str
    function: Callable[..., Any]
    places: tuple[int, ...]

    def at(self, args: Sequence[Any]) -> int:
        """Return the size for a call's arguments; ArgumentError when it is none."""
        try:
            size = self.function(*[args[place] for place in self.places])
        except TilewiseError:  # As a standin raises that is traced.
            raise
        except Exception as error:
            told = f"the axis {self.name} raised {raised(error)}"
            raise ArgumentError(told) from error
        if type(size) is int and 0 <= size <= LARGEST:
            return size
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        if not whole or not 0 <= size <= LARGEST:
            raise ArgumentError(
                f"the axis {self.name} gives {size!r}: it must return an integer, "
                "0 or more, below 2^63"
            )
        return int(size)


def raised(error: Exception) -> str:
    """Write what a user's function raised in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def axis_of(name: str, function: Any, parameters: Sequence[str]) -> Axis:
    """
    Return an axis, its function's parameters matched to the kernel's.

    They are matched by name, any of them; a function with other names takes all
    arguments in order. Raises ArgumentError for what is no such function.
    """
    if not callable(function):
        raise ArgumentError(f"axes[{name!r}] is {function!r}: give a function")
    names = tuple(inspect.signature(function).parameters)
    if set(names) <= set(parameters):
        return Axis(name, function, tuple(parameters.index(n) for n in names))
    if len(names) == len(parameters):
        return Axis(name, function, tuple(range(len(parameters))))
    raise ArgumentError(
        f"axes[{name!r}] takes {', '.join(names)}: let it take some of the kernel's "
        f"parameters, {', '.join(parameters)}"
    )


def point_of(axes: Sequence[Axis], args: Sequence[Any]) -> Point:
    """Return the sizes by axis."""
    return tuple((axis.name, axis.at(args)) for axis in axes)


def forms_of(parameters: Sequence[str], args: Sequence[Any]) -> tuple[str, ...]:
    """Return what each argument is, its size apart, in words."""
    forms = zip(parameters, map(form_of, args), strict=True)
    return tuple(f"{name}: {written(*form)}" for name, form in forms)


def written(kind: Any, *rest: Any) -> str:
    """Write a form: a type, a value, or an array's type, dtype, axes and layout."""
    if not rest:
        return named(kind) if isinstance(kind, type) else str(kind)
    dtype, ndim, straight = rest
    whose = "" if kind is np.ndarray else f"{named(kind)} "
    return f"{whose}{dtype} {ndim}-D {'C' if straight else 'strided'}"


def named(kind: type) -> str:
    """Write a type so that no two are one: Python's and NumPy's by their names."""
    if kind.__module__ in ("builtins", "numpy"):
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def form_of(arg: Any) -> tuple[Any, ...]:
    """
    Describe an argument: an array by dtype, number of axes and layout.

    Strings, flags and None count by value; all else, numbers too, by type.
    """
    kind = type(arg)
    if kind is np.ndarray:
        return (kind, arg.dtype, arg.ndim, arg.flags.c_contiguous)
    if kind in NUMBERS:
        return (kind,)
    if is_static(arg):
        return (repr(arg),)
    if is_device_array(arg):
        view = device_view(arg)
        return (kind, view.dtype, view.ndim, view.flags.c_contiguous)
    if isinstance(arg, np.ndarray):
        return (kind, arg.dtype, arg.ndim, arg.flags.c_contiguous)
    return (kind,)
