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
from typing import Any

import numpy as np

from tilewise.errors import TraceError

__all__ = ["captures", "check_captures", "is_frozen"]

PLAIN = (
    int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range,
    np.generic, np.dtype, enum.Enum, type, np.ufunc, types.ModuleType,
    types.BuiltinFunctionType, types.MethodDescriptorType, property,
)  # fmt: skip
ARRAY_FUNCTION = type(np.where)


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
            if not is_frozen(value):
                raise refusal(current, name, value)


def helpers(value: Any) -> list[Callable[..., Any]]:
    """Return the Python functions that a captured value stands for."""
    value = getattr(value, "reference", value)
    return [value] if isinstance(value, types.FunctionType) else []


def refusal(function: types.FunctionType, name: str, value: Any) -> TraceError:
    """Make the error that names a mutable capture."""
    code = function.__code__
    return TraceError(
        f"{function.__qualname__} reads {name}, a {type(value).__name__}, from "
        "outside; it can change without being seen",
        f"  {code.co_filename}, line {code.co_firstlineno}, in {code.co_name}",
        "Captures may be numbers, NumPy scalars, str, bytes, None, tuples of these, "
        "modules, classes and functions.",
        f"Pass {name} as an argument instead.",
    )


def is_frozen(value: Any) -> bool:
    """Say whether a captured value can be read once and kept."""
    if isinstance(value, (tuple, frozenset)):
        return all(is_frozen(item) for item in value)
    if isinstance(value, (*PLAIN, types.FunctionType, ARRAY_FUNCTION)):
        return True
    return isinstance(getattr(value, "reference", None), types.FunctionType)


def captures(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the (name, value) pairs that a function reads from outside itself."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            yield name, cell.cell_contents
        except ValueError:  # The cell is filled after the decorated function is made.
            continue
    for name in sorted(global_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def global_names(code: types.CodeType) -> set[str]:
    """Return the names that a code object, or one inside it, reads as globals."""
    names = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= global_names(constant)
    return names
