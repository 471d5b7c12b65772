"""
An expression as a list of nodes, each naming earlier ones by index.

The list is what tracing yields: it holds every NumPy call of the user's function
in the order in which NumPy would make it, equal calls once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.model.ops import is_weak, lookup

__all__ = ["Builder", "Expr", "Node", "apply", "evaluate", "written"]

PRODUCTS: Mapping[str, Any] = {"matmul": np.matmul, "dot": np.dot}


@dataclass(frozen=True, slots=True)
class Node:
    """
    One step of an expression.

    `op` is a leaf ("array", "scalar": an argument by name; "const": a value;
    "size": (name, axis) of an argument's shape), "matmul" or "dot", "view" (a
    transpose "T", or an index of None and full slices written "n:"), "astype", or
    a row of the table of ops. `dtype` is NumPy's name, or that of a Python
    scalar's type; `ndim` is -1 where it is not known.
    """

    op: str
    args: tuple[int, ...]
    dtype: str
    ndim: int
    value: Any = None

    @property
    def weak(self) -> bool:
        """Whether the node is a Python scalar."""
        return is_weak(self.dtype)

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two nodes the same; 0.0 and -0.0 and NaNs are told apart."""
        kind = type(self.value).__name__
        return (self.op, self.args, self.dtype, kind, repr(self.value))


@dataclass(frozen=True, slots=True)
class Expr:
    """A traced function: its nodes in order and the index of its result."""

    nodes: tuple[Node, ...]
    result: int

    def __str__(self) -> str:
        """Write the expression as one line of NumPy."""
        return written(self.nodes, self.result)

    def uses(self, index: int) -> set[int]:
        """Return the indexes of all nodes that a node is computed from, itself too."""
        found, waiting = set(), [index]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting.extend(self.nodes[at].args)
        return found


@dataclass(slots=True)
class Builder:
    """Collects nodes while a function is traced; equal nodes become one."""

    nodes: list[Node] = field(default_factory=list)
    known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, node: Node) -> int:
        """Append a node, or find the equal one, and return its index."""
        index = self.known.setdefault(node.identity, len(self.nodes))
        if index == len(self.nodes):
            self.nodes.append(node)
        return index


def evaluate(expr: Expr, arguments: Mapping[str, Any]) -> Any:
    """
    Compute an expression with NumPy, call by call as the user's function would.

    `arguments` maps the names of the function's parameters to their values.
    """
    values: list[Any] = []
    for node in expr.nodes:
        values.append(apply(node, [values[i] for i in node.args], arguments))
    return values[expr.result]


def apply(node: Node, args: list[Any], arguments: Mapping[str, Any]) -> Any:
    """Compute one node from its operands' values."""
    if node.op in ("array", "scalar"):
        return arguments[node.value]
    if node.op == "const":
        return node.value
    if node.op == "size":
        name, axis = node.value
        return arguments[name].shape[axis]
    if node.op == "view":
        return viewed(args[0], node.value)
    if node.op == "astype":
        return np.asarray(args[0]).astype(node.dtype)[()]
    if node.op in PRODUCTS:
        return PRODUCTS[node.op](*args)
    row = lookup(node.op)
    if node.weak and row.scalar is not None:
        return row.scalar(*args)
    return row.call(*args)


def viewed(array: Any, how: str) -> Any:
    """Transpose ("T") or add unit axes (a string of "n" and ":")."""
    if how == "T":
        return array.T
    index = tuple(None if mark == "n" else slice(None) for mark in how)
    return array[index]


SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/",
    "floor_divide": "//", "remainder": "%", "power": "**", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "matmul": "@", "dot": "@",
}  # fmt: skip


def written(nodes: tuple[Node, ...], index: int) -> str:
    """Write a node as NumPy text; a node used twice is written twice if short."""
    texts: list[str] = []
    for node in nodes[: index + 1]:
        texts.append(text_of(node, [texts[i] for i in node.args]))
    text = texts[index]
    return text[1:-1] if text.startswith("(") and balanced(text[1:-1]) else text


def balanced(text: str) -> bool:
    """Say whether parentheses close within a text, never going below zero."""
    depth = 0
    for mark in text:
        depth += (mark == "(") - (mark == ")")
        if depth < 0:
            return False
    return depth == 0


def text_of(node: Node, args: list[str]) -> str:
    """Write one node from its operands' texts, long ones shortened."""
    args = [arg if len(arg) < 400 else arg[:180] + " ... " + arg[-20:] for arg in args]
    if node.op in ("array", "scalar", "product", "operand"):
        return str(node.value)
    if node.op == "const":
        return repr(node.value)
    if node.op == "size":
        return f"{node.value[0]}.shape[{node.value[1]}]"
    if node.op == "view":
        return f"{args[0]}{view_text(node.value)}"
    if node.op == "astype":
        return f"{args[0]}.astype({node.dtype})"
    if node.op in SIGNS:
        return f"({args[0]} {SIGNS[node.op]} {args[1]})"
    if node.op == "negative":
        return f"(-{args[0]})"
    return f"{node.op}({', '.join(args)})"


def view_text(how: str) -> str:
    """Write a view as it stands behind an array."""
    marks = ", ".join("None" if mark == "n" else ":" for mark in how)
    return ".T" if how == "T" else f"[{marks}]"
