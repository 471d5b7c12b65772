"""
Read launches written as text: "cdiv(n,16),cdiv(m,16)", "float32[m*k]", "int32=m".

Expressions are integers, the names given, + - * // % and cdiv; nothing is evaluated
by Python itself.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tilewise.errors import ArgumentError

__all__ = ["argument", "sizes"]

_OPERATORS: Final[Mapping[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ARGUMENT: Final = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(?:=\s*(.+?))?\s*\Z")


def sizes(text: str, names: Mapping[str, int]) -> tuple[int, ...]:
    """Return the integers of a comma-separated list of expressions."""
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
    except SyntaxError:
        raise ArgumentError(f"{text!r} is no list of sizes") from None
    assert isinstance(tree, ast.Tuple)
    return tuple(_value(node, names, text) for node in tree.elts)


def _value(node: ast.expr, names: Mapping[str, int], text: str) -> int:
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, names, text)
        case ast.Name(name) if name in names:
            return names[name]
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            a, b = _value(left, names, text), _value(right, names, text)
            if b == 0 and isinstance(op, (ast.FloorDiv, ast.Mod)):
                raise ArgumentError(f"{text!r} divides by zero")
            return _OPERATORS[type(op)](a, b)
        case ast.Call(ast.Name("cdiv"), [left, right], []):
            a, b = _value(left, names, text), _value(right, names, text)
            if b == 0:
                raise ArgumentError(f"{text!r} divides by zero")
            return -(-a // b)
    known = ", ".join(names) or "no names"
    raise ArgumentError(
        f"{text!r}: {ast.unparse(node)!r} is not understood; known are {known}, "
        "integers, + - * // % and cdiv(a,b)"
    )


def argument(text: str, names: Mapping[str, int], at: int) -> Any:
    """
    Return the value of one argument text.

    Arrays without a fill are random: normal for floats, 0 to 9 for integers, seeded
    by the position `at`.
    """
    match = _ARGUMENT.match(text)
    try:
        dtype = np.dtype(match[1]) if match else None
    except TypeError:
        dtype = None
    if match is None or dtype is None or dtype.kind not in "biuf":
        raise ArgumentError(f"{text!r} is no argument: 'float32[m*k]' or 'int32=m'")
    fill = None if match[3] is None else _number(match[3], names, dtype)
    if match[2] is None:
        if fill is None:
            raise ArgumentError(f"{text!r} is a number without a value")
        return fill
    shape = sizes(match[2], names)
    if fill is not None:
        return np.full(shape, fill)
    random = np.random.default_rng(at)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 10, shape).astype(dtype)


def _number(text: str, names: Mapping[str, int], dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        try:
            return dtype.type(float(text))
        except ValueError:
            pass
    value = sizes(text, names)
    if len(value) != 1:
        raise ArgumentError(f"{text!r} is not one number")
    try:
        return dtype.type(value[0])
    except OverflowError:
        raise ArgumentError(f"{value[0]} has no room in {dtype}") from None
