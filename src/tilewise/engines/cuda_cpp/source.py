"""
The CUDA C++ of a variant: two fixed texts, the epilogue, and the entries.

An artifact has two entries of `simt`: one that loads 16 bytes at a time where every
array's alignment allows it, and one that loads single elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

import numpy as np

from tilewise.engines.gpu.params import arrays, indexed, parameters
from tilewise.engines.render import C, Language, render
from tilewise.model.problem import Problem
from tilewise.model.variant import Variant

__all__ = ["ENTRY", "PLAIN", "TILES", "Tile", "kernel_source", "tile_of"]

ENTRY, PLAIN = "tilewise_kernel", "tilewise_kernel_any"
UNROLLED_FLOPS = 12
"""The longest epilogue that is written once for each of a thread's results."""
TYPES = {**C.types, "int64": "i64"}
CUDA = Language("c", TYPES, "const {type} {name} = {value};", C.number)


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's tile m x n x k, a thread's results m x n, and blocks for an SM."""

    sides: tuple[int, int, int]
    thread: tuple[int, int]
    blocks: int = 1

    @property
    def threads(self) -> int:
        """The threads of one block."""
        (bm, bn, _), (tm, tn) = self.sides, self.thread
        return bm // tm * (bn // tn)


TILES: Mapping[str, Tile] = MappingProxyType(
    {
        "64x64x16": Tile((64, 64, 16), (8, 4), 4),
        "128x128x16": Tile((128, 128, 16), (8, 8), 2),
        "128x64x16": Tile((128, 64, 16), (8, 4), 2),
        "64x128x16": Tile((64, 128, 16), (4, 8), 2),
        "32x32x32": Tile((32, 32, 32), (4, 4), 8),
    }
)


def tile_of(variant: Variant) -> Tile:
    """Return the tile that a variant's configuration names."""
    return TILES[str(dict(variant.config)["tile"])]


@cache
def fixed(name: str) -> str:
    """Return one of the texts beside this file."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def kernel_source(problem: Problem, variant: Variant) -> str:
    """Write the whole source of a variant for a problem's forms."""
    parts = [fixed("prelude.cuh"), fixed("matmul.cuh"), epilogue(problem)]
    if variant.method == "naive":
        parts.append(entry(problem, ENTRY, 256, 1, naive_call(problem)))
    else:
        tile = tile_of(variant)
        for name, packed in ((ENTRY, True), (PLAIN, False)):
            call = simt_call(problem, tile, packed)
            parts.append(
                entry(problem, name, tile.threads, blocks(problem, tile), call)
            )
    return "\n".join(parts)


def blocks(problem: Problem, tile: Tile) -> int:
    """Return the blocks that an SM should hold: float64 takes twice the registers."""
    return tile.blocks if problem.spec.product_dtype == "float32" else 1


def epilogue(problem: Problem) -> str:
    """Write the function of one element, with the operands and scalars it reads."""
    rendered = render(problem.spec, CUDA)
    named = arrays(problem)[2:-1]
    fields = [f"    const {TYPES[form.dtype]}* {name};" for name, form in named]
    fields += [f"    i64 {name}{axis};" for name, _ in named for axis in "rc"]
    scalars = [f"s{i}" for i in range(len(rendered.scalar_types))]
    fields += [
        f"    {TYPES[dtype]} {name};"
        for name, dtype in zip(scalars, rendered.scalar_types, strict=True)
    ]
    loads = [
        f"const {TYPES[form.dtype]} o{number} = {indexed(name, form, 'i', 'j')};"
        for number, (name, form) in enumerate(named)
    ]
    lines = [*loads, *rendered.lines, f"return {rendered.result};"]
    result, product = TYPES[problem.spec.dtype], TYPES[problem.spec.product_dtype]
    return "\n".join(
        [
            "namespace tw {",
            "struct Epilogue {",
            *fields,
            f"    TW_INLINE {result} operator()({product} p, i64 i, i64 j) const {{",
            *[f"        {line}" for line in lines],
            "    }",
            "};",
            "}  // namespace tw",
        ]
    )


def entry(problem: Problem, name: str, threads: int, minimum: int, call: str) -> str:
    """Write a kernel that gathers the epilogue's fields and calls a method."""
    declared = []
    for param in parameters(problem):
        kind = TYPES[param.dtype]
        constant = "" if param.name == "out" else "const "
        star = f"{constant}{kind}* __restrict__" if param.pointer else kind
        declared.append(f"{star} {param.name}")
    named = arrays(problem)[2:-1]
    values = [array for array, _ in named]
    values += [f"{array}{axis}" for array, _ in named for axis in "rc"]
    values += [f"s{i}" for i in range(len(problem.spec.scalars))]
    return (
        f'extern "C" __global__ void __launch_bounds__({threads}, {minimum})\n'
        f"{name}({', '.join(declared)}) {{\n"
        f"    tw::Epilogue epilogue{{{', '.join(values)}}};\n"
        f"    {call}\n}}"
    )


def strides(problem: Problem) -> str:
    """Write the strides of x and w, those of unit stride as 1, and out's."""
    steps = []
    for name, form in arrays(problem)[:2]:
        steps.append("1" if form.layout == "F" else f"{name}r")
        steps.append("1" if form.layout == "C" else f"{name}c")
    return ", ".join([*steps, "outr", "outc"])


def naive_call(problem: Problem) -> str:
    """Write the call of the method `naive`."""
    return f"tw::naive(x, w, out, m, n, k, {strides(problem)}, epilogue);"


def simt_call(problem: Problem, tile: Tile, packed: bool) -> str:
    """Write the call of the method `simt`, packed or by single elements."""
    spec, (x, w) = problem.spec, problem.forms[:2]
    item = np.dtype(spec.product_dtype).itemsize
    width = [16 // item if packed and f.layout != "S" else 1 for f in (x, w)]
    words = [TYPES[spec.product_dtype], TYPES[spec.dtype], *tile.sides, *tile.thread]
    words += [x.layout != "F", w.layout == "F", *width, packed]
    words += [spec.flops > UNROLLED_FLOPS, "tw::Epilogue"]
    given = ", ".join(str(word).replace("True", "true").replace("False", "false")
                      for word in words)  # fmt: skip
    return f"tw::simt<{given}>(x, w, out, m, n, k, {strides(problem)}, epilogue);"
