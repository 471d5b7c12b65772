"""
The Python source of a CPU kernel, and where its parameters come from.

Two methods: an epilogue pass over a finished product, and a small kernel that
multiplies as well, one row at a time in a scratch row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.device.native import Parameter
from tilewise.engines.render import PYTHON, Rendered, render
from tilewise.model.problem import Form, Problem
from tilewise.model.spec import Operand

__all__ = ["Kernel", "kernel_for"]

UNROLL = 4
"""Rows of w that one pass over the scratch row adds."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's source, its parameters' numba types, their values, and the work."""

    source: str
    types: tuple[str, ...]
    values: tuple[Parameter, ...]
    work: tuple[int, ...]
    result: int


class Signature:
    """Collects the parameters of a kernel with their types and values."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.types: list[str] = []
        self.values: list[Parameter] = []

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


def kernel_for(problem: Problem, method: str, arguments: int) -> Kernel:
    """
    Write the kernel of a method for a problem.

    `arguments` is the number of the user's arguments; `out` follows them, then the
    computed scalars, then the product where it is not in `out`.
    """
    spec, signature = problem.spec, Signature()
    rendered = render(spec, PYTHON)
    out = arguments
    extra = out + 1
    for number, scalar in enumerate(spec.scalars):
        kind = rendered.scalar_types[number]
        place = scalar.direct
        if place < 0:
            place, extra = extra, extra + 1
        signature.add(f"s{number}", kind, Parameter(SCALARS[kind], place))
    signature.add("m", "int64", Parameter("dim", out, 0))
    signature.add("n", "int64", Parameter("dim", out, 1))
    signature.array("out", spec.dtype, out, (0, 1))
    for number, (operand, form) in enumerate(
        zip(spec.operands, problem.forms[2:], strict=True)
    ):
        axes = varied(operand, form, bool(problem.fold))
        signature.array(f"o{number}_", form.dtype, operand.position, axes)
    work = [signature.names.index("m"), signature.names.index("n")]
    if method == "small":
        body = small(problem, signature, rendered)
        work.append(signature.names.index("k"))
    else:
        body = epilogue(problem, signature, rendered, extra)
    text = f"def kernel({', '.join(signature.names)}):\n" + "\n".join(body) + "\n"
    return Kernel(
        text, tuple(signature.types), tuple(signature.values), tuple(work), out
    )


SCALARS = {"float64": "double", "float32": "float", "int64": "int", "bool": "bool"}


def varied(operand: Operand, form: Form, folded: bool) -> tuple[int, int]:
    """Return the argument's axes that run along rows and columns, -1 for none."""
    if operand.view == "T":
        axes = [1, 0]
    elif operand.view:
        kept = iter(range(operand.view.count(":")))
        axes = [-1 if mark == "n" else next(kept) for mark in operand.view]
    else:
        axes = list(range(2 if folded and operand.ndim else operand.ndim))
    axes = [-1] * (2 - len(axes)) + axes
    rows = axes[0] if "m" in form.kind else -1
    return rows, axes[1] if "n" in form.kind else -1


def factor_axes(operand: Operand) -> tuple[int, int]:
    """Return a factor's axes by row and column."""
    return (1, 0) if operand.view == "T" else (0, 1)


def in_place(problem: Problem) -> bool:
    """Say whether the product can stand where the result will."""
    return problem.spec.product_dtype == problem.spec.dtype


def loads(problem: Problem, rendered: Rendered) -> list[str]:
    """Write the loads of the operands' elements at (i, j)."""
    lines = []
    for number, form in enumerate(problem.forms[2:]):
        name = f"o{number}_"
        unit = "n" in form.kind and form.layout == "C"
        column = "j" if unit else f"j * {name}c"
        index = " + ".join(
            part
            for part, used in ((f"i * {name}r", "m" in form.kind),
                               (column, "n" in form.kind))
            if used
        )  # fmt: skip
        lines.append(f"o{number} = {name}[{index or '0'}]")
    return lines


def element(problem: Problem, rendered: Rendered, product: str, at: str) -> list[str]:
    """Write what is done for one element."""
    return [
        f"p = {product}",
        *loads(problem, rendered),
        *rendered.lines,
        f"out[{at}] = {rendered.result}",
    ]


def twice(indent: int, body: tuple[list[str], list[str]]) -> list[str]:
    """Write a loop over j for unit and for any stride of `out`."""
    pad = " " * indent
    lines = []
    for test, part in (("if outc == 1:", body[0]), ("else:", body[1])):
        lines += [pad + test, f"{pad}    for j in range(n):"]
        lines += [f"{pad}        {line}" for line in part]
    return lines


def epilogue(
    problem: Problem, signature: Signature, rendered: Rendered, extra: int
) -> list[str]:
    """Write the pass over a product in `out`, or in an array of its own."""
    unit, any_stride = "i * outr + j", "i * outr + j * outc"
    if in_place(problem):
        products = (f"out[{unit}]", f"out[{any_stride}]")
    else:
        signature.array("product", problem.spec.product_dtype, extra, (0, 1))
        products = ("product[i * productr + j]",) * 2
    bodies = (
        element(problem, rendered, products[0], unit),
        element(problem, rendered, products[1], any_stride),
    )
    return ["    for i in range(m):", *twice(8, bodies)]


def small(problem: Problem, signature: Signature, rendered: Rendered) -> list[str]:
    """Write the product by rows, adding some rows of w at a time, and the epilogue."""
    spec = problem.spec
    x, w = spec.x, spec.w
    dtype = spec.product_dtype
    signature.array("x", x.dtype, x.position, factor_axes(x))
    signature.array("w", w.dtype, w.position, factor_axes(w))
    signature.add("k", "int64", Parameter("dim", x.position, factor_axes(x)[1]))
    size = np.dtype(dtype).itemsize
    signature.add(
        "row", f"*{dtype}", Parameter("row", spec_result(signature), 1, 0, size)
    )
    zero = f"{PYTHON.types[dtype]}(0)"
    column = "j" if problem.forms[1].layout == "C" else "j * wc"
    factors = [f"a{u} = x[i * xr + (l + {u}) * xc]" for u in range(UNROLL)]
    sums = [f"a{u} * w[(l + {u}) * wr + {column}]" for u in range(UNROLL)]
    bodies = (
        element(problem, rendered, "row[j]", "i * outr + j"),
        element(problem, rendered, "row[j]", "i * outr + j * outc"),
    )
    return [
        f"    whole = k - k % {UNROLL}",
        "    for i in range(m):",
        "        for j in range(n):",
        f"            row[j] = {zero}",
        f"        for l in range(0, whole, {UNROLL}):",
        *[f"            {line}" for line in factors],
        "            for j in range(n):",
        f"                row[j] += {' + '.join(sums)}",
        "        for l in range(whole, k):",
        "            a = x[i * xr + l * xc]",
        "            for j in range(n):",
        f"                row[j] += a * w[l * wr + {column}]",
        *twice(8, bodies),
    ]


def spec_result(signature: Signature) -> int:
    """Return the place of `out` among the arguments."""
    return signature.values[signature.names.index("out")].arg
