"""
What is asked: one product and its epilogue, canonical and with a digest.

Matching takes a traced expression apart: numbers that no array takes part in are
hoisted (computed once per call with Python's and NumPy's own arithmetic), constants
are folded, and the rest becomes a list of elementwise steps over the product, the
operands and the scalars. Operands of commuting steps are put in one order; nothing
is reassociated or distributed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewise.errors import TraceError
from tilewise.model.expr import Builder, Expr, Node, apply, written
from tilewise.model.ops import lookup

__all__ = ["Operand", "Scalar", "Spec", "match", "short_hash"]


@dataclass(frozen=True, slots=True)
class Operand:
    """
    An array argument: a factor of the product or read by the epilogue.

    `position` counts the kernel's parameters; `view` is "", "T", or unit axes
    ("n" new, ":" kept); `ndim` and `dtype` are those of the view.
    """

    name: str
    position: int
    view: str
    ndim: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """
    A number computed once per call: `expr` over the arguments, of type `dtype`.

    `direct` is the position of the argument that the number simply is, or -1;
    `places` maps the arguments' names to their positions.
    """

    expr: Expr
    dtype: str
    direct: int
    places: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """
    One product and its epilogue.

    `nodes` are the epilogue's steps: leaves "product", "operand" and "scalar"
    (`value` is the index) and "const", then "astype" and rows of the table of
    ops; the last node is the result. `arity` counts the function's parameters,
    `flops` the epilogue's work for one element; `digest` identifies everything but
    names.
    """

    x: Operand
    w: Operand
    product_dtype: str
    operands: tuple[Operand, ...]
    scalars: tuple[Scalar, ...]
    nodes: tuple[Node, ...]
    expr: Expr = field(compare=False)
    arity: int = 0
    digest: str = ""

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.nodes[-1].dtype

    @property
    def flops(self) -> int:
        """The epilogue's work for one element, as the table of ops weighs it."""
        leaves = ("product", "operand", "scalar", "const", "astype")
        return sum(lookup(n.op).flops for n in self.nodes if n.op not in leaves)

    @property
    def is_identity(self) -> bool:
        """Whether the result is the product itself."""
        return len(self.nodes) == 1

    def __str__(self) -> str:
        """Write the traced expression."""
        return str(self.expr)


def match(expr: Expr, parameters: Sequence[str]) -> Spec:
    """
    Take a traced expression apart into a product and its epilogue.

    Raises TraceError when it has no product, two different ones, or a factor that
    is not an argument.
    """
    product = the_product(expr)
    x, w = (factor(expr, i, parameters) for i in expr.nodes[product].args)
    parts = Parts(expr, product, parameters)
    root = parts.step(expr.result)
    nodes, operands, scalars = canonical(parts, root)
    dtype, count = expr.nodes[product].dtype, len(parameters)
    bare = Spec(x, w, dtype, operands, scalars, nodes, expr, count)
    return replace(bare, digest=digest(bare))


def the_product(expr: Expr) -> int:
    """Return the index of the one product that the result is computed from."""
    used = sorted(expr.uses(expr.result))
    found = [i for i in used if expr.nodes[i].op in ("matmul", "dot")]
    if len(found) != 1:
        texts = ", ".join(written(expr.nodes, i) for i in found)
        raise TraceError(
            f"the function has {len(found)} different products: {texts}"
            if found
            else "the function has no matrix product",
            allowed="A kernel is one product, x @ w, and elementwise work after it.",
            instead="Split it into one kernel for each product."
            if found
            else "Decorate the part of the function that has the product.",
        )
    return found[0]


def factor(expr: Expr, index: int, parameters: Sequence[str]) -> Operand:
    """Return a factor of the product, which must be an argument or its transpose."""
    node = expr.nodes[index]
    inner = expr.nodes[node.args[0]] if node.op == "view" else node
    if inner.op != "array" or (node.op == "view" and node.value != "T"):
        raise TraceError(
            f"a factor of the product is {written(expr.nodes, index)}",
            allowed="The factors of a kernel's product are arguments or transposes.",
            instead="Compute the factor before the call and pass it.",
        )
    return operand(expr, index, parameters)


def operand(expr: Expr, index: int, parameters: Sequence[str]) -> Operand:
    """Return the operand that an argument's node, or a view of one, stands for."""
    node = expr.nodes[index]
    view = node.value if node.op == "view" else ""
    leaf = expr.nodes[node.args[0]] if view else node
    place = list(parameters).index(leaf.value)
    return Operand(leaf.value, place, view, node.ndim, node.dtype)


@dataclass(slots=True)
class Parts:
    """The steps of an epilogue while they are collected, equal ones once."""

    expr: Expr
    product: int
    parameters: Sequence[str]
    builder: Builder = field(default_factory=Builder)
    made: dict[int, int] = field(default_factory=dict)
    array: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in self.expr.nodes:
            below = any(self.array[i] for i in node.args)
            self.array.append(node.op == "array" or below)

    def step(self, index: int) -> int:
        """Return the step for a node, making those below it first."""
        for at in self.needed(index):
            self.made[at] = self.builder.add(self.translate(at))
        return self.made[index]

    def needed(self, index: int) -> list[int]:
        """List the nodes that are steps: those down to the leaves, in order."""
        found, waiting = set(), [index]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting.extend(() if self.is_leaf(at) else self.expr.nodes[at].args)
        return sorted(found)

    def is_leaf(self, index: int) -> bool:
        """Say whether a node is the product, an operand or a hoisted number."""
        node = self.expr.nodes[index]
        return index == self.product or node.op == "view" or not self.array[index]

    def translate(self, index: int) -> Node:
        """Make the step for one node of the traced expression."""
        node = self.expr.nodes[index]
        if index == self.product:
            return Node("product", (), node.dtype, node.ndim)
        if node.op in ("array", "view"):
            leaf = operand(self.expr, index, self.parameters)
            return Node("operand", (), node.dtype, node.ndim, leaf)
        if not self.array[index]:
            return self.number(index)
        args = tuple(self.made[i] for i in node.args)
        return simplified(Node(node.op, args, node.dtype, 0, node.value), self.builder)

    def number(self, index: int) -> Node:
        """Make a constant, or a scalar that each call computes."""
        node, used = self.expr.nodes[index], sorted(self.expr.uses(index))
        inside = [self.expr.nodes[i] for i in used]
        if not any(n.op in ("scalar", "size") for n in inside):
            value = folded(self.expr, index)
            return Node("const", (), node.dtype, 0, value)
        direct = -1
        if node.op == "scalar":
            direct = list(self.parameters).index(node.value)
        expr = restricted(self.expr, used)
        names = [
            n.value if n.op == "scalar" else n.value[0]
            for n in expr.nodes
            if n.op in ("scalar", "size")
        ]
        places = tuple((name, list(self.parameters).index(name)) for name in names)
        return Node(
            "scalar", (), node.dtype, 0, Scalar(expr, node.dtype, direct, places)
        )


def folded(expr: Expr, index: int) -> Any:
    """Compute a node that depends on no argument."""
    values: dict[int, Any] = {}
    for at in sorted(expr.uses(index)):
        node = expr.nodes[at]
        values[at] = apply(node, [values[i] for i in node.args], {})
    return values[index]


def restricted(expr: Expr, used: list[int]) -> Expr:
    """Return an expression of the used nodes alone; the last one is its result."""
    place = {old: new for new, old in enumerate(used)}
    nodes = []
    for old in used:
        node = expr.nodes[old]
        args = tuple(place[i] for i in node.args)
        nodes.append(Node(node.op, args, node.dtype, node.ndim, node.value))
    return Expr(tuple(nodes), len(nodes) - 1)


POWERS: Mapping[float, str] = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}


BOOLEAN: Mapping[str, str] = {"add": "logical_or", "multiply": "logical_and"}


def simplified(node: Node, builder: Builder) -> Node:
    """Write constant powers and sums of masks as NumPy itself computes them."""
    if node.dtype == "bool" and node.op in BOOLEAN:
        return replace(node, op=BOOLEAN[node.op])
    if node.op != "power":
        return node
    base, exponent = (builder.nodes[i] for i in node.args)
    name = POWERS.get(exponent.value) if exponent.op == "const" else None
    if name and base.dtype == node.dtype and np.dtype(node.dtype).kind == "f":
        return Node(name, node.args[:1], node.dtype, node.ndim)
    return node


def canonical(
    parts: Parts, root: int
) -> tuple[tuple[Node, ...], tuple[Operand, ...], tuple[Scalar, ...]]:
    """Order commuting operands, drop dead steps, number operands and scalars."""
    names = structure(parts.builder.nodes)
    order = Order(parts.builder.nodes, names)
    order.visit(root)
    operands = sorted(order.operands, key=lambda o: (o.position, o.view))
    nodes = [numbered(node, operands, order.scalars) for node in order.nodes]
    return tuple(nodes), tuple(operands), tuple(order.scalars)


def numbered(node: Node, operands: list[Operand], scalars: list[Scalar]) -> Node:
    """Replace a leaf's operand or scalar by its index."""
    if node.op == "operand":
        return Node(node.op, (), node.dtype, node.ndim, operands.index(node.value))
    if node.op == "scalar":
        return Node(node.op, (), node.dtype, node.ndim, scalars.index(node.value))
    return node


def structure(nodes: list[Node]) -> list[str]:
    """Return a hash per node that says what it computes, whatever its place."""
    names: list[str] = []
    for node in nodes:
        below = [names[i] for i in node.args]
        if commutes(node):
            below.sort()
        names.append(short_hash((node.op, node.dtype, repr(node.value), *below)))
    return names


def commutes(node: Node) -> bool:
    """Say whether the order of a node's operands does not matter."""
    if node.op in ("product", "operand", "scalar", "const", "astype"):
        return False
    return lookup(node.op).commutes


@dataclass(slots=True)
class Order:
    """Lists the steps from the leaves up, in the order that the hashes give."""

    source: list[Node]
    names: list[str]
    nodes: list[Node] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)
    operands: list[Operand] = field(default_factory=list)
    scalars: list[Scalar] = field(default_factory=list)

    def visit(self, root: int) -> None:
        """Append a node after those that it is computed from, without recursion."""
        waiting = [root]
        while waiting:
            at = waiting[-1]
            args = self.ordered(at)
            missing = [i for i in reversed(args) if i not in self.place]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if at not in self.place:
                self.append(at, args)

    def ordered(self, index: int) -> tuple[int, ...]:
        """Return a node's operands, sorted by hash where they commute."""
        node = self.source[index]
        if not commutes(node):
            return node.args
        return tuple(sorted(node.args, key=lambda i: self.names[i]))

    def append(self, at: int, args: tuple[int, ...]) -> None:
        """Append one node and note its operand or scalar."""
        node = self.source[at]
        self.place[at] = len(self.nodes)
        places = tuple(self.place[i] for i in args)
        self.nodes.append(Node(node.op, places, node.dtype, 0, node.value))
        if node.op == "operand" and node.value not in self.operands:
            self.operands.append(node.value)
        if node.op == "scalar" and node.value not in self.scalars:
            self.scalars.append(node.value)


def digest(spec: Spec) -> str:
    """Return the SHA-256 of what a spec computes; the names take no part."""
    arrays = [(o.position, o.view, o.ndim, o.dtype) for o in spec.operands]
    factors = [(f.position, f.view, f.ndim, f.dtype) for f in (spec.x, spec.w)]
    scalars = [(s.dtype, s.direct, anonymous(s)) for s in spec.scalars]
    steps = [(n.op, n.args, n.dtype, constant_text(n.value)) for n in spec.nodes]
    return short_hash(
        ("spec 1", spec.arity, factors, spec.product_dtype, arrays, scalars, steps), 64
    )


def anonymous(scalar: Scalar) -> list[tuple[object, ...]]:
    """List the steps of a hoisted number, arguments by position."""
    place = dict(scalar.places)
    steps: list[tuple[object, ...]] = []
    for node in scalar.expr.nodes:
        value: Any = constant_text(node.value)
        if node.op == "scalar":
            value = place[node.value]
        elif node.op == "size":
            value = (place[node.value[0]], node.value[1])
        steps.append((node.op, node.args, node.dtype, value))
    return steps


def constant_text(value: Any) -> str:
    """Write a constant with its type and every bit of a float."""
    if isinstance(value, (float, np.floating)):
        return f"{type(value).__name__} {float(value).hex()}"
    return f"{type(value).__name__} {value!r}"


def short_hash(parts: object, length: int = 24) -> str:
    """Return the start of the SHA-256 of a value's text."""
    text = repr(parts).encode()
    return hashlib.sha256(text, usedforsecurity=False).hexdigest()[:length]
