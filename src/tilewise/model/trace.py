"""
Tracing: the user's function is called once with stand-ins for its arguments.

A stand-in answers NumPy's protocols (`__array_ufunc__`, `__array_function__` and
the operators) by recording the call. What cannot be recorded faithfully raises,
with the user's line and a caret.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.errors import TraceError, UnsupportedOp
from tilewise.model.expr import Builder, Expr, Node
from tilewise.model.freeze import check_captures
from tilewise.model.hints import instead_of
from tilewise.model.ops import OPS, WEAK, Op, loop_dtypes, weak_name
from tilewise.model.source import caret

__all__ = ["ArgForm", "Session", "trace", "unsupported"]


@dataclass(frozen=True, slots=True)
class ArgForm:
    """
    What tracing knows of one argument.

    `kind` is "array" (with `dtype` and `ndim`), "scalar" (a run-time number:
    `dtype` is NumPy's name or that of the Python type) or "static" (`value`).
    """

    kind: str
    dtype: str = ""
    ndim: int = 0
    value: Any = None


def trace(function: Callable[..., Any], forms: Mapping[str, ArgForm]) -> Expr:
    """
    Record what a function does with arguments of the given forms.

    Returns its expression. Raises TraceError or UnsupportedOp for a structure that
    cannot be recorded, and whatever NumPy raises for dtypes that it refuses.
    """
    from tilewise.model.standin import Standin  # It needs Session, made below.

    check_captures(function)
    session = Session(getattr(function, "__qualname__", "the function"))
    arguments = {name: session.argument(name, form) for name, form in forms.items()}
    result = function(*arguments.values())  # By position: some have no keyword.
    if not isinstance(result, Standin):
        raise TraceError(
            f"{session.name} returns {describe(result)}, not one array computed from "
            "its arguments",
            allowed="A kernel returns one array: one product and its epilogue.",
        )
    return Expr(tuple(session.builder.nodes), result._node)


def describe(result: object) -> str:
    """Say what kind of thing was returned."""
    if isinstance(result, (tuple, list)):
        return f"{len(result)} values"
    return "nothing" if result is None else f"a {type(result).__name__}"


def unsupported(name: str, why: str = "", instead: str = "") -> UnsupportedOp:
    """Make the error for an operation that has no place in an epilogue."""
    allowed = ", ".join([*sorted(OPS), "clip, astype."])
    return UnsupportedOp(
        f"{name} cannot be part of an epilogue" + (f": {why}" if why else ""),
        caret(),
        "An epilogue computes each output element from one element of the product.\n"
        + textwrap.fill(f"It may use: {allowed}", 79),
        instead or instead_of(name),
    )


@dataclass(slots=True)
class Session:
    """One tracing: the nodes so far and the rules by which calls become nodes."""

    name: str
    builder: Builder = field(default_factory=Builder)
    deep: list[bool] = field(default_factory=list)

    def argument(self, name: str, form: ArgForm) -> Any:
        """Make the stand-in for an argument; a static one is the value itself."""
        if form.kind == "static":
            return form.value
        return self.wrap(Node(form.kind, (), form.dtype, form.ndim, name))

    def wrap(self, node: Node) -> Any:
        """Record a node and return its stand-in."""
        from tilewise.model.standin import Standin

        return Standin(self, self.builder.add(node))

    def node(self, index: int) -> Node:
        """Return a recorded node."""
        return self.builder.nodes[index]

    def index(self, value: Any) -> int:
        """Return the node of a stand-in, or record a number as a constant."""
        from tilewise.model.standin import Standin

        if isinstance(value, Standin):
            return value._node
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return self.builder.add(Node("const", (), str(value.dtype), 0, value))
        weak = weak_name(value)
        if weak:
            return self.builder.add(Node("const", (), weak, 0, value))
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f"an operand is a {type(value).__name__}")
        raise TraceError(
            f"{self.name} uses a {type(value).__name__} that is not an argument",
            caret(),
            "Operands are arguments, numbers and NumPy scalars.",
            "Pass it as an argument instead.",
        )

    def operate(self, row: Op, *values: Any) -> Any:
        """Record an operator: Python's own arithmetic between Python numbers."""
        args = tuple(self.index(value) for value in values)
        nodes = [self.node(i) for i in args]
        if row.scalar is None or not all(node.weak for node in nodes):
            return self.call(row, *values)
        if row.name == "power" and not exact_power(nodes):
            raise unsupported(
                "an integer to the power of a run-time integer",
                "the type of the result depends on its sign",
                "Make the base a float.",
            )
        sample = row.scalar(*(sample_of(node) for node in nodes))
        return self.wrap(Node(row.name, args, weak_name(sample), 0))

    def call(self, row: Op, *values: Any, dtype: Any = None) -> Any:
        """Record a NumPy function; `dtype` is the computation's, as in `np.add`."""
        args = [self.index(value) for value in values]
        if dtype is not None:
            given = tuple(self.node(i).dtype for i in args)
            wanted = loop_dtypes(row.name, given, str(np.dtype(dtype)))
            args = [self.cast(i, d) for i, d in zip(args, wanted, strict=False)]
        nodes = [self.node(i) for i in args]
        loop = loop_dtypes(row.name, tuple(node.dtype for node in nodes))
        if row.name == "where" and nodes[0].dtype != "bool":
            args[0] = self.index(self.call(OPS["not_equal"], values[0], 0))
        ndim = max(node.ndim for node in nodes)
        return self.wrap(Node(row.name, tuple(args), loop[-1], ndim))

    def cast(self, index: int, dtype: str) -> int:
        """Record a conversion to a dtype unless the node has it already."""
        node = self.node(index)
        if node.dtype == dtype and not node.weak:
            return index
        return self.builder.add(Node("astype", (index,), dtype, node.ndim, dtype))

    def product(self, op: str, left: Any, right: Any) -> Any:
        """Record a matrix product of two arrays."""
        args = (self.index(left), self.index(right))
        x, w = (self.node(i) for i in args)
        if not (x.ndim and w.ndim):
            raise TypeError(f"a factor of np.{op} has no axes")
        loop = np.matmul.resolve_dtypes((np.dtype(x.dtype), np.dtype(w.dtype), None))
        return self.wrap(Node(op, args, str(loop[-1]), product_ndim(op, x, w)))

    def shape(self, index: int) -> tuple[Any, ...]:
        """Return a node's shape as symbolic sizes."""
        node = self.node(index)
        if node.op == "array":
            sizes = [(node.value, axis) for axis in range(node.ndim)]
            return tuple(self.wrap(Node("size", (), "int", 0, s)) for s in sizes)
        if node.op in ("matmul", "dot"):
            return self.product_shape(*node.args)
        if node.op == "view" and node.value == "T":
            return self.shape(node.args[0])[::-1]
        if node.op == "view":
            axes = iter(self.shape(node.args[0]))
            return tuple(1 if mark == "n" else next(axes) for mark in node.value)
        return self.common_shape(node)

    def product_shape(self, left: int, right: int) -> tuple[Any, ...]:
        """Return the shape of a product whose second factor has no batch."""
        x, w = self.shape(left), self.shape(right)
        if len(w) > 2:
            raise unsupported("the shape of a product with a batch in w")
        return x[:-1] + (w[1:] if len(w) == 2 else ())

    def common_shape(self, node: Node) -> tuple[Any, ...]:
        """Return the shape of an elementwise node: that of the product under it."""
        deep = [i for i in node.args if self.has_product(i)]
        wide = deep or [i for i in node.args if self.node(i).ndim == node.ndim]
        if node.ndim == 0:
            return ()
        if not deep and len(wide) != 1:
            raise unsupported("the shape of two operands that broadcast")
        return self.shape(wide[0])

    def has_product(self, index: int) -> bool:
        """Say whether a node is computed from a product."""
        for node in self.builder.nodes[len(self.deep) :]:
            below = any(self.deep[i] for i in node.args)
            self.deep.append(below or node.op in ("matmul", "dot"))
        return self.deep[index]


def product_ndim(op: str, x: Node, w: Node) -> int:
    """Return the number of axes of a product (NumPy's matmul and dot)."""
    if x.ndim == 1 or w.ndim == 1 or op == "dot":
        return x.ndim + w.ndim - 2
    return max(x.ndim, w.ndim)


def exact_power(nodes: list[Node]) -> bool:
    """Say whether the type of a power of Python numbers is known: a size is >= 0."""
    base, exponent = nodes
    return "float" in (base.dtype, exponent.dtype) or exponent.op in ("const", "size")


def sample_of(node: Node) -> Any:
    """Return a number of a node's type; a constant is itself, for its sign."""
    return node.value if node.op == "const" and node.value else WEAK[node.dtype](1)
