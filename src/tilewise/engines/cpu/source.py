"""
The Python source of a CPU kernel, and where its parameters come from.

Kernels: an epilogue pass over a finished product ("blas"), a small product that
reads w in place or from the stack ("small"), and one over packed panels ("packed").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.device.native import Parameter
from tilewise.engines.cpu.loops import (
    CHUNK,
    direct,
    packed,
    packing,
    whole,
)
from tilewise.engines.cpu.micro import Block
from tilewise.engines.render import PYTHON, Rendered, render
from tilewise.model.problem import Problem, varied
from tilewise.model.spec import Operand

__all__ = ["Kernel", "in_place", "kernel_for"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """
    A kernel's source, its parameters' numba types and values, and the work.

    `result` is the place of the argument that a call returns; over `release` units of
    work other threads may run; `block` is that of the micro-kernels that the source
    calls, if it does.
    """

    source: str
    types: tuple[str, ...]
    values: tuple[Parameter, ...]
    work: tuple[int, ...]
    result: int
    release: int
    block: Block | None = None


RELEASE_ELEMENTS = 1 << 15
"""Elements of an epilogue that take about 20 us, so that giving the GIL away pays."""
RELEASE_STEPS = 1 << 19
"""Multiply-adds that take about 10 us."""


class Signature:
    """Collects the parameters of a kernel with their types and values."""

    def __init__(self, extra: int) -> None:
        self.names: list[str] = []
        self.types: list[str] = []
        self.values: list[Parameter] = []
        self.extra = extra

    def place(self) -> int:
        """Return the place of the next argument behind the user's and `out`."""
        self.extra += 1
        return self.extra - 1

    def add(self, name: str, kind: str, value: Parameter) -> None:
        """Append one parameter."""
        self.names.append(name)
        self.types.append(kind)
        self.values.append(value)

    def array(self, name: str, dtype: str, arg: int, axes: tuple[int, int]) -> None:
        """Append an array's pointer and two strides; axis -1 is not varied along."""
        shift = int(np.dtype(dtype).itemsize).bit_length() - 1
        self.add(name, f"*{dtype}", Parameter("data", arg))
        for suffix, axis in zip("rc", axes, strict=True):
            value = Parameter("stride", arg, axis, shift)
            self.add(name + suffix, "int64", Parameter("const") if axis < 0 else value)

    def whole_numbers(self, *names: str) -> None:
        """Append integers that the caller passes as arguments of their own."""
        for name in names:
            self.add(name, "int64", Parameter("int", self.place()))


SCALARS = {
    "float64": "double", "float32": "float", "int64": "int", "int32": "int32",
    "bool": "bool",
}  # fmt: skip


def kernel_for(problem: Problem, method: str, block: Block) -> Kernel:
    """
    Write the kernel of a method for a problem.

    A call passes the user's arguments, `out`, the computed scalars, and then: the
    product of the rows at hand where it is not in `out` ("blas_serial",
    "blas_parallel"); the first and the one past the last row (the same, but for
    "blas_serial" in `out`); room for panels, rows, columns, columns of a chunk and
    whether to pack it ("packed"), or the packed w for the room ("bound").
    """
    out = problem.spec.arity
    signature = Signature(out + 1)
    rendered = render(problem.spec, PYTHON)
    scalars(problem, rendered.scalar_types, signature, out)
    signature.add("m", "int64", Parameter("dim", out, 0))
    signature.add("n", "int64", Parameter("dim", out, 1))
    signature.array("out", problem.spec.dtype, out, (0, 1))
    operands(problem, signature)
    uses_blas = method.startswith("blas")
    if uses_blas:
        product = product_of(problem, signature)
        rows(signature, method == "blas_parallel" or not in_place(problem), out)
        body = whole(problem, rendered, product)
    else:
        factors(problem, signature)
        if method == "small":
            body = small(problem, rendered, block, signature)
        else:
            body = panels(problem, rendered, block, signature, method == "bound")
    names = ("m", "n") if uses_blas else ("m", "n", "k")
    head = f"def kernel({', '.join(signature.names)}):\n    "
    return Kernel(
        head + "\n    ".join(body) + "\n",
        tuple(signature.types),
        tuple(signature.values),
        tuple(signature.names.index(name) for name in names),
        out,
        RELEASE_ELEMENTS if uses_blas else RELEASE_STEPS,
        None if uses_blas else block,
    )


def scalars(
    problem: Problem, types: tuple[str, ...], signature: Signature, out: int
) -> None:
    """Append the scalars: direct ones from the user's arguments, the others behind."""
    for number, scalar in enumerate(problem.spec.scalars):
        kind = types[number]
        place = scalar.direct if scalar.direct >= 0 else signature.place()
        signature.add(f"s{number}", kind, Parameter(SCALARS[kind], place))


def operands(problem: Problem, signature: Signature) -> None:
    """Append the epilogue's operands."""
    pairs = zip(problem.spec.operands, problem.forms[2:], strict=True)
    for number, (operand, form) in enumerate(pairs):
        axes = varied(operand, form, bool(problem.fold))
        signature.array(f"o{number}_", form.dtype, operand.position, axes)


def factor_axes(operand: Operand) -> tuple[int, int]:
    """Return a factor's axes by row and column."""
    return (1, 0) if operand.view == "T" else (0, 1)


def factors(problem: Problem, signature: Signature) -> None:
    """Append both factors and the depth of the product."""
    x, w = problem.spec.x, problem.spec.w
    signature.array("x", x.dtype, x.position, factor_axes(x))
    signature.array("w", w.dtype, w.position, factor_axes(w))
    signature.add("k", "int64", Parameter("dim", x.position, factor_axes(x)[1]))


def in_place(problem: Problem) -> bool:
    """Say whether the product can stand where the result will."""
    return problem.spec.product_dtype == problem.spec.dtype


def product_of(problem: Problem, signature: Signature) -> str:
    """Return the text of the product's element; append its array where it has one."""
    if in_place(problem):
        return "out[i * outr + {column}]"
    dtype = problem.spec.product_dtype
    signature.array("product", dtype, signature.place(), (0, 1))
    return "product[(i - lo) * productr + j]"


def rows(signature: Signature, part: bool, out: int) -> None:
    """Append the rows to compute: a part of them, or all."""
    if part:
        signature.whole_numbers("lo", "hi")
        return
    signature.add("lo", "int64", Parameter("const"))
    signature.add("hi", "int64", Parameter("dim", out, 0))


def small(
    problem: Problem, rendered: Rendered, block: Block, signature: Signature
) -> list[str]:
    """Write a small product; a w whose columns lie apart is packed on the stack."""
    rows(signature, False, problem.spec.arity)
    size = np.dtype(block.dtype).itemsize
    straight = problem.forms[1].layout == "C"
    scratch(block, signature)
    if straight:
        return direct(problem, rendered, block)
    grid = Parameter("grid", problem.spec.w.position, value=size, shift=block.columns)
    signature.add("panels", f"*{block.dtype}", grid)
    pack = packing(block, across=False)
    ends = [f"jlo, jhi, chunk, fresh = 0, n, {CHUNK}, True", f"zero = {zero(block)}"]
    return [*ends, *packed(problem, rendered, block, pack)]


def scratch(block: Block, signature: Signature) -> None:
    """Append room for one block of the product."""
    size = block.rows * block.columns * np.dtype(block.dtype).itemsize
    signature.add("c", f"*{block.dtype}", Parameter("room", value=size))


def panels(
    problem: Problem,
    rendered: Rendered,
    block: Block,
    signature: Signature,
    bound: bool,
) -> list[str]:
    """Write a product over panels, packed here or before."""
    kind = f"*{block.dtype}"
    scratch(block, signature)
    signature.add("panels", kind, Parameter("data", signature.place()))
    signature.whole_numbers("lo", "hi", "jlo", "jhi", "chunk", "fresh")
    pack = [] if bound else packing(block, problem.forms[1].layout == "C")
    return [f"zero = {zero(block)}", *packed(problem, rendered, block, pack)]


def zero(block: Block) -> str:
    """Write zero in a block's dtype."""
    return f"{PYTHON.types[block.dtype]}(0)"
