"""Python functions made of native code by its address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["closure", "function"]

METH_KEYWORDS, METH_FASTCALL = 0x2, 0x80


class MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


@cache
def definition_of(address: int, flags: int) -> MethodDef:
    """Return the definition of a function, kept: Python has a pointer to it."""
    return MethodDef(b"run", address, flags, None)


def function(address: int) -> Callable[..., Any]:
    """Make a Python function of code that takes (self, arguments, count)."""
    return made(address, METH_FASTCALL, None)


def closure(address: int, bound: list[Any]) -> Callable[..., Any]:
    """Make one of code that takes (self, arguments, count, names): self is `bound`."""
    return made(address, METH_FASTCALL | METH_KEYWORDS, id(bound))


def made(address: int, flags: int, bound: int | None) -> Callable[..., Any]:
    """Make a Python function; it keeps its self alive."""
    make = ctypes.pythonapi.PyCMethod_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 4
    definition = ctypes.addressof(definition_of(address, flags))
    call: Callable[..., Any] = make(definition, bound, None, None)
    return call
