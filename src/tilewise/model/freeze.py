"""
What a traced function may read from outside: values that cannot change unseen.

Globals and closure values are read while tracing and frozen, as numba does;
anything mutable is refused by name.
"""

from __future__ import annotations

import dis
import enum
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Any

import numpy as np

from tilewise.errors import TraceError, UnsupportedOp

__all__ = ["check_captures"]

PLAIN = (
    int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range,
    np.generic, np.dtype, enum.Enum, type, np.ufunc, types.ModuleType,
    types.BuiltinFunctionType, types.MethodDescriptorType, property,
)  # fmt: skip
ARRAY_FUNCTION = type(np.where)
UNSEEN = ("NOP", "CACHE", "EXTENDED_ARG")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
CHANGING = ("numpy.random", "random", "secrets", "time")
"""Modules whose functions give something else at each call."""


def check_captures(function: Callable[..., Any]) -> None:
    """
    Refuse by name what a function, or a helper that it names, reads and can change.

    Raises TraceError naming the function, the variable and its type.
    """
    seen: set[int] = set()
    waiting: list[Callable[..., Any]] = [function]
    while waiting:
        current = waiting.pop()
        if id(current) in seen or not isinstance(current, types.FunctionType):
            continue
        seen.add(id(current))
        if str(current.__module__).split(".")[0] in ("numpy", "scipy", "math"):
            continue
        for name, value in captures(current):
            waiting.extend(helpers(value))
            if is_changing(value):
                raise changing(current, name)
            if not is_frozen(value):
                raise refusal(current, name, value)


def helpers(value: Any) -> list[Callable[..., Any]]:
    """Return the Python functions that a captured value stands for."""
    value = getattr(value, "reference", value)
    return [value] if isinstance(value, types.FunctionType) else []


def refusal(function: types.FunctionType, name: str, value: Any) -> TraceError:
    """Make the error that names a mutable capture."""
    return TraceError(
        f"{function.__qualname__} reads {name}, a {type(value).__name__}, from "
        "outside; it can change without being seen",
        place_of(function),
        "Captures may be numbers, NumPy scalars, str, bytes, None, tuples of these, "
        "modules, classes and functions.",
        f"Pass {name} as an argument instead.",
    )


def is_changing(value: Any) -> bool:
    """Say whether a function gives something else at each call, as np.random's do."""
    if isinstance(value, (type, types.ModuleType)) or not callable(value):
        return False
    owner = getattr(value, "__self__", None)
    home = (
        value if owner is None or isinstance(owner, types.ModuleType) else type(owner)
    )
    place = str(getattr(home, "__module__", ""))
    return any(place == name or place.startswith(f"{name}.") for name in CHANGING)


def changing(function: types.FunctionType, name: str) -> UnsupportedOp:
    """Make the error that names a function such as np.random.normal."""
    return UnsupportedOp(
        f"{name} cannot be part of a kernel: it gives something else at each call, and "
        f"{function.__qualname__} is traced once",
        place_of(function),
        "A kernel computes its result from its arguments alone.",
        f"Call {name} outside and pass the result as an argument.",
    )


def place_of(function: types.FunctionType) -> str:
    """Say in which file and line a function begins."""
    code = function.__code__
    return f"  {code.co_filename}, line {code.co_firstlineno}, in {code.co_name}"


def is_frozen(value: Any) -> bool:
    """Say whether a captured value can be read once and kept."""
    if isinstance(value, (tuple, frozenset)):
        return all(is_frozen(item) for item in value)
    if isinstance(value, (*PLAIN, types.FunctionType, ARRAY_FUNCTION)):
        return True
    return isinstance(getattr(value, "reference", None), types.FunctionType)


def captures(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """
    Yield the (name, value) pairs that a function reads from outside itself.

    Of a module it is what is taken from the module: `config.scale` is a name, too.
    """
    outside = dict(function.__globals__)
    free = function.__code__.co_freevars
    cells = zip(free, function.__closure__ or (), strict=True)
    for name, cell in cells:
        with suppress(ValueError):  # Filled after the decorated function is made.
            outside[name] = cell.cell_contents
    for path in sorted(paths(function.__code__, free)):
        if path[0] in outside:
            yield resolved(outside[path[0]], path)


def resolved(value: Any, path: tuple[str, ...]) -> tuple[str, Any]:
    """Follow a path through modules to the first value that is none."""
    for count, name in enumerate(path[1:], 1):
        if not isinstance(value, types.ModuleType) or not hasattr(value, name):
            return ".".join(path[:count]), value
        value = getattr(value, name)
    return ".".join(path), value


def paths(code: types.CodeType, free: tuple[str, ...]) -> set[tuple[str, ...]]:
    """
    Return the names that a code object, or one inside it, reads from outside.

    Each comes with the attributes that are taken from it. Of a closure's names only
    those in `free` are from outside: the others are a function's own variables.
    """
    found: set[tuple[str, ...]] = set()
    steps = [one for one in dis.get_instructions(code) if one.opname not in UNSEEN]
    for at, step in enumerate(steps):
        if step.opname in GLOBALS or (step.opname in CELLS and step.argval in free):
            rest = takewhile(lambda one: one.opname in ATTRIBUTES, steps[at + 1 :])
            found.add((str(step.argval), *(str(one.argval) for one in rest)))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= paths(constant, free)
    return found
