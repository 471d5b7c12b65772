"""
The GLSL of a variant: buffers, sizes, what the epilogue calls, the epilogue, a method.

Arrays are dense on the device, factors and whole operands in the order in which their
unit stride runs: C, or F for a transposed one, so that no host array is transposed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from tilewise.engines.render import GLSL, render
from tilewise.model.problem import Form, Problem
from tilewise.model.variant import Variant

__all__ = [
    "SIDE",
    "TILES",
    "Tile",
    "arrays",
    "held",
    "shader_source",
    "tile_of",
    "uniforms",
]

SIDE = 16
"""A work group has 16 x 16 invocations; OpenGL 4.3 promises 1024."""
DEPTH = 16
"""Products of a tile that are held in shared memory at a time."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The results m x n of a work group; each invocation has every 16th."""

    rows: int
    columns: int


TILES: Mapping[str, Tile] = MappingProxyType(
    {"16x16": Tile(16, 16), "32x32": Tile(32, 32), "64x64": Tile(64, 64)}
)
"""At 64x64 8 KiB of shared memory; OpenGL 4.3 promises 32."""
FIXED = ("prelude", "angles", "powers")
"""The texts beside this file; a text may call those before it."""
STORED = {"float32": "float", "int32": "int", "bool": "int"}
"""What a buffer holds for a dtype: a bool has no size of its own there."""


def tile_of(variant: Variant) -> Tile:
    """Return the results that a work group of a variant computes."""
    return TILES[str(dict(variant.config).get("tile", "16x16"))]


def arrays(problem: Problem) -> tuple[tuple[str, Form], ...]:
    """Return the names of all arrays in the source, the result last, with forms."""
    operands = [f"os{i}" for i in range(len(problem.spec.operands))]
    out = Form(problem.spec.dtype, "mn", "C")
    return tuple(zip(("xs", "ws", *operands, "ys"), (*problem.forms, out), strict=True))


def uniforms(problem: Problem) -> tuple[tuple[str, int, str], ...]:
    """Return the numbers of a call that are read: name, which scalar, its dtype."""
    rendered = render(problem.spec, GLSL)
    text = " ".join((*rendered.lines, rendered.result))
    read = {(int(at), kind) for at, kind in re.findall(r"\bs(\d+)_(\w+)", text)}
    dtypes = {kind: dtype for dtype, kind in GLSL.types.items()}
    return tuple((f"s{at}_{kind}", at, dtypes[kind]) for at, kind in sorted(read))


@cache
def prelude() -> str:
    """Return the functions that epilogues call."""
    files = (resources.files(__package__).joinpath(f"{name}.glsl") for name in FIXED)
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def shader_source(problem: Problem, variant: Variant) -> str:
    """Write the whole source of a variant for a problem's forms."""
    method = PLAIN if variant.method == "plain" else shared(problem, tile_of(variant))
    return "\n".join(
        [
            "#version 430",
            f"layout(local_size_x = {SIDE}, local_size_y = {SIDE}) in;",
            *buffers(problem),
            "uniform int m, n, k;",
            *(f"uniform {GLSL.types[d]} {name};" for name, _, d in uniforms(problem)),
            prelude(),
            *(access(name, form) for name, form in arrays(problem)),
            epilogue(problem),
            method,
        ]
    )


def buffers(problem: Problem) -> list[str]:
    """Declare one buffer for each array, bound in their order."""
    last, declared = len(arrays(problem)) - 1, []
    for at, (name, form) in enumerate(arrays(problem)):
        access = "writeonly" if at == last else "readonly"
        kind = STORED[form.dtype]
        head = f"layout(std430, binding = {at}) restrict {access} buffer Buffer{at}"
        declared.append(f"{head} {{ {kind} {name}[]; }};")
    return declared


def access(name: str, form: Form) -> str:
    """Define an array's element at a row and a column: XS(i, j) for xs."""
    index = {"m": "i", "n": "j", "1": "0"}.get(form.kind, "")
    if len(form.kind) == 2:
        turned = form.layout == "F"
        index = (
            f"(j) * {form.kind[0]} + (i)" if turned else f"(i) * {form.kind[1]} + (j)"
        )
    return f"#define {name.upper()}(i, j) {name}[{index}]"


def epilogue(problem: Problem) -> str:
    """Write the function that stores one element of the result."""
    loads = []
    for number, (name, form) in enumerate(arrays(problem)[2:-1]):
        value = GLSL.cast(f"{name.upper()}(i, j)", held(form.dtype), form.dtype)
        loads.append(f"{GLSL.types[form.dtype]} o{number} = {value};")
    rendered = render(problem.spec, GLSL)
    dtype = problem.spec.dtype
    result = GLSL.cast(rendered.result, dtype, held(dtype))
    lines = [*loads, *rendered.lines, f"YS(i, j) = {result};"]
    return "\n".join(
        [
            "void store(float p, int i, int j) {",
            "    if (i >= m || j >= n) return;",
            *[f"    {line}" for line in lines],
            "}",
        ]
    )


def held(dtype: str) -> str:
    """Return the dtype in which a buffer holds another."""
    return "int32" if dtype == "bool" else dtype


PLAIN = """
void main() {
    int i = int(gl_GlobalInvocationID.y), j = int(gl_GlobalInvocationID.x);
    if (i >= m || j >= n) return;
    float p = 0.0;
    for (int l = 0; l < k; ++l) p += XS(i, l) * WS(l, j);
    store(p, i, j);
}
"""
SHARED = """
const int ROWS = {rows}, COLUMNS = {columns}, DEPTH = {depth}, SIDE = {side};
shared float x_tile[DEPTH][ROWS], w_tile[DEPTH][COLUMNS];

void main() {{
    int row = int(gl_WorkGroupID.y) * ROWS, column = int(gl_WorkGroupID.x) * COLUMNS;
    int ti = int(gl_LocalInvocationID.y), tj = int(gl_LocalInvocationID.x);
    int first = int(gl_LocalInvocationIndex);
    float p[ROWS / SIDE * (COLUMNS / SIDE)], x[ROWS / SIDE];
    for (int e = 0; e < p.length(); ++e) p[e] = 0.0;
    for (int base = 0; base < k; base += DEPTH) {{
        for (int e = first; e < ROWS * DEPTH; e += SIDE * SIDE) {{
            int i = {x_row}, l = {x_depth};
            bool inside = row + i < m && base + l < k;
            x_tile[l][i] = inside ? XS(row + i, base + l) : 0.0;
        }}
        for (int e = first; e < COLUMNS * DEPTH; e += SIDE * SIDE) {{
            int j = {w_column}, l = {w_depth};
            bool inside = column + j < n && base + l < k;
            w_tile[l][j] = inside ? WS(base + l, column + j) : 0.0;
        }}
        memoryBarrierShared();
        barrier();
        for (int l = 0; l < DEPTH; ++l) {{
            for (int r = 0; r < ROWS / SIDE; ++r) x[r] = x_tile[l][r * SIDE + ti];
            for (int c = 0; c < COLUMNS / SIDE; ++c) {{
                float w = w_tile[l][c * SIDE + tj];
                for (int r = 0; r < ROWS / SIDE; ++r)
                    p[r * (COLUMNS / SIDE) + c] += x[r] * w;
            }}
        }}
        memoryBarrierShared();
        barrier();
    }}
    for (int r = 0; r < ROWS / SIDE; ++r)
        for (int c = 0; c < COLUMNS / SIDE; ++c)
            store(p[r * (COLUMNS / SIDE) + c], row + r * SIDE + ti,
                  column + c * SIDE + tj);
}}
"""


def shared(problem: Problem, tile: Tile) -> str:
    """Write the tiled method; neighbours load neighbours in the arrays' order."""
    x, w = problem.forms[:2]
    along_i, along_j = ("e % ROWS", "e / ROWS"), ("e % COLUMNS", "e / COLUMNS")
    along_l = ("e / DEPTH", "e % DEPTH")
    x_row, x_depth = along_i if x.layout == "F" else along_l
    w_column, w_depth = along_l if w.layout == "F" else along_j
    return SHARED.format(
        rows=tile.rows,
        columns=tile.columns,
        depth=DEPTH,
        side=SIDE,
        x_row=x_row,
        x_depth=x_depth,
        w_column=w_column,
        w_depth=w_depth,
    )
