"""
A spec's epilogue as lines of text for one element, in any language.

Each step casts its operands to the dtypes in which NumPy computes it, so that a
float64 constant widens where NumPy widens and nowhere else. A language is a small
frozen value: how it casts, writes constants and declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.model.expr import Node
from tilewise.model.ops import WEAK, lookup, loop_dtypes
from tilewise.model.spec import Spec

__all__ = [
    "GLSL",
    "PYTHON",
    "C",
    "Language",
    "Rendered",
    "render",
    "strong",
    "unrendered",
]

FLOAT_ONLY = ("floor_divide", "remainder", "power", "reciprocal")
"""Operations that generated code has for floating-point numbers alone."""
POWER_LIMIT = 8
"""Powers with a constant integer up to this are products: z**3 is z*z*z."""


@dataclass(frozen=True, slots=True)
class Language:
    """
    How a language writes what differs.

    `name` picks the column of the table of ops; `types` maps dtypes to type names;
    `declare` is the template of a step with {type}, {name} and {value}; `number`
    writes a constant of a dtype; `prefix` stands before the table's functions and
    `masks` has the operations that are written differently on bools.
    """

    name: str
    types: Mapping[str, str]
    declare: str
    number: Callable[[str, Any], str]
    prefix: str = ""
    masks: Mapping[str, str] = field(default_factory=dict)

    def operation(self, name: str, dtype: str) -> str:
        """Return the template of an operation whose first operand has a dtype."""
        if dtype == "bool" and name in self.masks:
            return self.masks[name]
        text = lookup(name).written(self.name)
        return self.prefix + text if text.startswith(f"{name}(") else text

    def scalar(self, text: str, have: str, want: str) -> str:
        """Write a number of the call, which is handed over in its own dtype."""
        return self.cast(text, have, want)

    def cast(self, text: str, have: str, want: str) -> str:
        """Write a conversion where one is needed."""
        return text if have == want else f"{self.types[want]}({text})"


def python_number(dtype: str, value: Any) -> str:
    """Write a constant so that numba gives it its dtype and every bit."""
    if dtype == "bool":
        return str(bool(value))
    name = PYTHON.types[dtype]
    if dtype.startswith("int"):
        return f"{name}({int(value)})"
    number = float(value)
    if math.isnan(number):
        return f"{name}(nan)"
    if math.isinf(number):
        return f"{name}({'-' if number < 0 else ''}inf)"
    return f"{name}({number!r})"


def c_number(dtype: str, value: Any) -> str:
    """Write a constant in C with its type and every bit (hexadecimal floats)."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype.startswith("int"):
        return f"{int(value)}" + ("LL" if dtype == "int64" else "")
    number, single = float(value), dtype == "float32"
    if math.isnan(number):
        return "nan_f()" if single else "nan_d()"
    if math.isinf(number):
        return ("-" if number < 0 else "") + ("inf_f()" if single else "inf_d()")
    return number.hex() + ("f" if single else "")


def glsl_number(dtype: str, value: Any) -> str:
    """Write a constant in GLSL by its bits, but whole numbers as they are."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype == "int32":
        return str(int(value)) if value > -(2**31) else "(-2147483647 - 1)"
    number, bits = float(value), int(np.float32(value).view(np.uint32))
    if bits != 1 << 31 and number.is_integer() and abs(number) < 1 << 24:
        return f"{number:.1f}"
    return f"uintBitsToFloat({bits:#010x}u)"


@dataclass(frozen=True, slots=True)
class Shader(Language):
    """A language that is handed the numbers of a call in each dtype that it wants."""

    def scalar(self, text: str, have: str, want: str) -> str:
        """Write the form of a number that the host has converted."""
        return f"{text}_{self.types[want]}"


PYTHON = Language(
    "python",
    {"bool": "b1", "int32": "i4", "int64": "i8", "float32": "f4", "float64": "f8"},
    "{name} = {type}({value})",
    python_number,
)
C = Language(
    "c",
    {"bool": "bool", "int32": "int", "int64": "long long", "float32": "float",
     "float64": "double"},
    "{type} {name} = {value};",
    c_number,
)  # fmt: skip
GLSL = Shader(
    "glsl",
    {"bool": "bool", "int32": "int", "float32": "float"},
    "precise {type} {name} = {value};",
    glsl_number,
    "tw_",
    {
        "add": "({0} || {1})", "multiply": "({0} && {1})",
        "less": "(!{0} && {1})", "less_equal": "(!{0} || {1})",
        "greater": "({0} && !{1})", "greater_equal": "({0} || !{1})",
        "bitwise_and": "({0} && {1})", "bitwise_or": "({0} || {1})",
        "bitwise_xor": "({0} != {1})", "invert": "(!{0})",
        "logical_and": "({0} && {1})", "logical_or": "({0} || {1})",
        "logical_not": "(!{0})", "absolute": "{0}", "floor": "{0}",
        "maximum": "({0} || {1})", "minimum": "({0} && {1})",
        "isnan": "false", "isfinite": "true",
    },
)  # fmt: skip
"""`precise` forbids a compiler to reorder, or to take `!(x < y)` for `x >= y`."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """
    The lines of one element and the name that holds the result.

    The lines read `p` (the product's element), `o0`, `o1`, ... (the operands') and
    `s0`, ... (the scalars, converted to `scalar_types`).
    """

    lines: tuple[str, ...]
    result: str
    scalar_types: tuple[str, ...]


def unrendered(spec: Spec, language: Language = C) -> str | None:
    """Return why a language can't compute a spec's epilogue, or None."""
    for node in spec.nodes:
        if node.weak and node.op in ("const", "scalar") and node.dtype != "complex":
            continue
        for dtype in (node.dtype, *operand_dtypes(spec, node)):
            if dtype not in language.types:
                return f"the epilogue computes in {dtype}"
        if node.op in FLOAT_ONLY and not node.dtype.startswith("float"):
            return f"the epilogue's {node.op} is in {node.dtype}"
    return None


def operand_dtypes(spec: Spec, node: Node) -> tuple[str, ...]:
    """Return the dtypes in which a step takes its operands; () for a leaf."""
    if not node.args or node.op == "astype":
        return ()
    return loop_dtypes(node.op, tuple(spec.nodes[i].dtype for i in node.args))[:-1]


def render(spec: Spec, language: Language) -> Rendered:
    """Write a spec's epilogue; see `Rendered` for the names that it reads."""
    writer = Writer(spec, language)
    for index in range(len(spec.nodes)):
        writer.step(index)
    result = writer.cast(len(spec.nodes) - 1, spec.dtype)
    scalars = tuple(strong(s.dtype) for s in spec.scalars)
    return Rendered(tuple(writer.lines), result, scalars)


def strong(dtype: str) -> str:
    """Return the dtype in which a Python scalar is handed to a kernel."""
    kind = WEAK.get(dtype)
    return dtype if kind is None else str(np.dtype(kind))


class Writer:
    """Writes step after step; names of leaves stand for themselves."""

    def __init__(self, spec: Spec, language: Language) -> None:
        self.spec, self.language = spec, language
        self.lines: list[str] = []
        self.names: list[str] = []

    def step(self, index: int) -> None:
        """Write one step, or note the name of a leaf."""
        node = self.spec.nodes[index]
        if node.op == "product":
            self.names.append("p")
        elif node.op in ("operand", "scalar"):
            self.names.append(f"{'o' if node.op == 'operand' else 's'}{node.value}")
        elif node.op == "const":
            self.names.append("")
        else:
            self.declare(node, f"t{index}", self.value(node))

    def declare(self, node: Node, name: str, value: str) -> None:
        """Write a declaration."""
        kind = self.language.types[node.dtype]
        text = self.language.declare.format(type=kind, name=name, value=value)
        self.lines.append(text)
        self.names.append(name)

    def value(self, node: Node) -> str:
        """Write a step's expression."""
        if node.op == "astype":
            return self.cast(node.args[0], node.dtype)
        dtypes = operand_dtypes(self.spec, node)
        if node.op == "power" and (text := self.small_power(node, dtypes[0])):
            return text
        args = [self.cast(i, d) for i, d in zip(node.args, dtypes, strict=True)]
        return self.language.operation(node.op, dtypes[0]).format(*args)

    def small_power(self, node: Node, dtype: str) -> str:
        """Write a power with a small constant whole exponent as products, or ""."""
        exponent = self.spec.nodes[node.args[1]]
        if exponent.op != "const" or not dtype.startswith("float"):
            return ""
        count = float(exponent.value)
        if not count.is_integer() or not 2 <= count <= POWER_LIMIT:
            return ""
        base = self.cast(node.args[0], dtype)
        return "(" + " * ".join([base] * int(count)) + ")"

    def cast(self, index: int, dtype: str) -> str:
        """Write a step's value in a dtype; constants are written in it at once."""
        node = self.spec.nodes[index]
        if node.op == "const":
            return self.language.number(dtype, np.asarray(node.value).astype(dtype)[()])
        write = self.language.scalar if node.op == "scalar" else self.language.cast
        return write(self.names[index], strong(node.dtype), dtype)
