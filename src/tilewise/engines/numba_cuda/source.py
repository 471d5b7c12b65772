"""
The Python source of a numba.cuda kernel.

`global` computes one result a thread from global memory. `shared` computes `rows`
results a thread from square tiles in shared memory, each allocated on its own line:
numba's simulator takes two on one line for the same. Indices are 64-bit, and every
constant is written in its type, since a bare one makes float64 arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

from tilewise.engines.gpu.params import arrays, indexed, parameters
from tilewise.engines.render import Language, Rendered, render
from tilewise.model.problem import Problem
from tilewise.model.variant import Variant

__all__ = ["BLOCK", "kernel_source"]

BLOCK = 16
"""The sides of a block of the method `global`."""
TYPES = {
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "float32": "float32",
    "float64": "float64",
}


def number(dtype: str, value: Any) -> str:
    """Write a constant in its type with every bit."""
    if dtype == "bool":
        return str(bool(value))
    if dtype.startswith("int"):
        return f"{dtype}({int(value)})"
    if math.isnan(value):
        return f"{dtype}(nan)"
    if math.isinf(value):
        return f"{dtype}({'-' if value < 0 else ''}inf)"
    return f"{dtype}({float(value)!r})"


PYTHON = Language("python", TYPES, "{name} = {type}({value})", number)


def kernel_source(problem: Problem, variant: Variant) -> str:
    """Write the kernel of a variant for a problem's forms."""
    config = dict(variant.config)
    names = ", ".join(param.name for param in parameters(problem))
    if variant.method == "global":
        body = from_global(problem)
    else:
        body = from_shared(problem, int(config["tile"]), int(config["rows"]))
    return f"def kernel({names}):\n" + "".join(f"    {line}\n" for line in body)


def place(rows: int, columns: int) -> list[str]:
    """Write where a thread's block of rows x columns results starts."""
    return [
        "tx = int64(cuda.threadIdx.x)",
        "ty = int64(cuda.threadIdx.y)",
        "block = int64(cuda.blockIdx.x)",
        f"across = (n + int64({columns - 1})) // int64({columns})",
        "row = block // across",
        f"first = row * int64({rows})",
        f"column = (block - row * across) * int64({columns})",
    ]


def from_global(problem: Problem) -> list[str]:
    """Write one result a thread."""
    (_, x), (_, w) = arrays(problem)[:2]
    dtype, rendered = problem.spec.product_dtype, render(problem.spec, PYTHON)
    return [
        *place(BLOCK, BLOCK),
        "i = first + ty",
        "j = column + tx",
        "if i < m and j < n:",
        f"    p = {dtype}(0)",
        "    l = int64(0)",
        "    while l < k:",
        f"        p += {indexed('x', x, 'i', 'l')} * {indexed('w', w, 'l', 'j')}",
        "        l += int64(1)",
        *[f"    {line}" for line in epilogue(problem, rendered)],
    ]


def epilogue(problem: Problem, rendered: Rendered) -> list[str]:
    """Write what follows on `p`, the product's element at (i, j)."""
    named = arrays(problem)
    loads = [
        f"o{number} = {TYPES[form.dtype]}({indexed(name, form, 'i', 'j')})"
        for number, (name, form) in enumerate(named[2:-1])
    ]
    flags = [
        f"s{i} = bool(s{i})"
        for i, dtype in enumerate(rendered.scalar_types)
        if dtype == "bool"
    ]
    name, form = named[-1]
    target = indexed(name, form, "i", "j")
    return [*loads, *flags, *rendered.lines, f"{target} = {rendered.result}"]


def from_shared(problem: Problem, tile: int, rows: int) -> list[str]:
    """Write `rows` results a thread, tile rows apart, from tiles of x and w."""
    dtype, rendered = problem.spec.product_dtype, render(problem.spec, PYTHON)
    sums = range(rows)
    return [
        *place(tile * rows, tile),
        f"xs = cuda.shared.array(({tile * rows}, {tile + 1}), {dtype})",
        f"ws = cuda.shared.array(({tile}, {tile + 1}), {dtype})",
        *[f"p{r} = {dtype}(0)" for r in sums],
        "start = int64(0)",
        "while start < k:",
        *[f"    {line}" for line in fetch(problem, tile, rows)],
        "    cuda.syncthreads()",
        f"    for l in range({tile}):",
        "        b = ws[l, tx]",
        *[f"        p{r} += xs[ty + {tile * r}, l] * b" for r in sums],
        "    cuda.syncthreads()",
        f"    start += int64({tile})",
        "j = column + tx",
        f"for r in range({rows}):",
        *[f"    {line}" for line in one_of(tile, rows)],
        "    if i < m and j < n:",
        *[f"        {line}" for line in epilogue(problem, rendered)],
    ]


def one_of(tile: int, rows: int) -> list[str]:
    """Write the choice of the r-th sum, so that the epilogue is written once."""
    chosen = [f"p = p{r} if r == {r} else p" for r in range(1, rows)]
    return [f"i = first + ty + int64({tile}) * int64(r)", "p = p0", *chosen]


def fetch(problem: Problem, tile: int, rows: int) -> list[str]:
    """Write the loads of one tile of x and of w, along their unit strides."""
    (_, x), (_, w) = arrays(problem)[:2]
    dtype, lines = problem.spec.product_dtype, []
    along, across = ("ty", "tx") if x.layout == "F" else ("tx", "ty")
    lines.append(f"l = start + {along}")
    for r in range(rows):
        at = f"{across} + {tile * r}"
        lines += [
            f"i = first + {at}",
            f"xs[{at}, {along}] = {dtype}(0)",
            "if i < m and l < k:",
            f"    xs[{at}, {along}] = {indexed('x', x, 'i', 'l')}",
        ]
    along, across = ("ty", "tx") if w.layout == "F" else ("tx", "ty")
    return [
        *lines,
        f"j = column + {along}",
        f"l = start + {across}",
        f"ws[{across}, {along}] = {dtype}(0)",
        "if l < k and j < n:",
        f"    ws[{across}, {along}] = {indexed('w', w, 'l', 'j')}",
    ]
