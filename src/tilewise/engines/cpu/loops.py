"""
The loops of a CPU kernel as lines of Python source.

Element loops compute the epilogue along rows of the result, from a product in `out`,
in an array of its own or in scratch. Tile loops feed the micro-kernels and hand each
finished block of rows to the element loops while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import indent

from tilewise.engines.cpu.micro import Block
from tilewise.engines.render import Rendered
from tilewise.model.problem import Problem

__all__ = ["CHUNK", "TILE_ROWS", "direct", "packed", "packing", "rows_of", "whole"]

CHUNK = 256
"""Columns of a scratch row, and steps of the product between two writes to it."""
TILE_ROWS = 48
"""Rows of x that share a panel of w in the first-level cache: blocks of 6 or 8."""


def nested(head: str, *body: Iterable[str]) -> list[str]:
    """Put lines under a head, four spaces in."""
    return [head, *(indent(line, "    ") for part in body for line in part)]


def load(number: int, kind: str, unit: bool) -> str:
    """Write the load of an operand's element at (i, j)."""
    name = f"o{number}_"
    column = "j" if unit else f"j * {name}c"
    parts = {"mn": f"i * {name}r + {column}", "m": f"i * {name}r", "n": column}
    return f"o{number} = {name}[{parts.get(kind, '0')}]"


def loads(problem: Problem, kinds: tuple[str, ...]) -> list[str]:
    """Write the loads of all operands that vary in one of some ways."""
    forms = enumerate(problem.forms[2:])
    return [load(n, f.kind, f.layout == "C") for n, f in forms if f.kind in kinds]


def element(
    problem: Problem, rendered: Rendered, product: str, column: str
) -> list[str]:
    """Write what is done for the element at (i, j)."""
    return [
        f"p = {product}",
        *loads(problem, ("n", "mn")),
        *rendered.lines,
        f"out[i * outr + {column}] = {rendered.result}",
    ]


def rows_of(
    problem: Problem, rendered: Rendered, product: str, columns: tuple[str, str]
) -> list[str]:
    """
    Write the loop along row i; `columns` are the first and the one past the last.

    `product` may name {column}, the place of j in a row of `out`.
    """
    head = f"for j in range({columns[0]}, {columns[1]}):"
    unit, wide = (
        nested(head, element(problem, rendered, product.format(column=c), c))
        for c in ("j", "j * outc")
    )
    choice = [*nested("if outc == 1:", unit), *nested("else:", wide)]
    return [*loads(problem, ("m",)), *choice]


def whole(problem: Problem, rendered: Rendered, product: str) -> list[str]:
    """Write the pass over the rows from `lo` to `hi` of a finished product."""
    body = rows_of(problem, rendered, product, ("0", "n"))
    return [*loads(problem, ("1",)), *nested("for i in range(lo, hi):", body)]


def micro(x_at: str, w_at: str, step: str, c_at: str, more: str) -> str:
    """Write a micro-kernel's arguments; `more` are depth, again and width."""
    return f"(x, {x_at}, xr, xc, rows, {w_at}, {step}, c, {c_at}, stride, {more})"


def wide_or_half(block: Block, arguments: str) -> list[str]:
    """Write a call of the micro-kernel that has as many rows as there are."""
    whole = nested(f"if rows > {block.half}:", ["wide" + arguments])
    return [*whole, *nested("else:", ["half" + arguments])]


def direct(problem: Problem, rendered: Rendered, block: Block) -> list[str]:
    """
    Write a small product that reads w where it is, a block of rows at a time.

    Needs w's columns side by side. `c` is scratch of a block's rows by CHUNK.
    """
    wide, narrow = block.columns, block.lanes
    places = ("i0 * xr", "w, jr", "wr", "jr - j0")
    one = wide_or_half(block, micro(*places, f"k, 0, {wide}"))
    two = "narrow" + micro(*places, "k, 0, j1 - jr")
    tile = [
        f"rows = min({block.rows}, hi - i0)",
        *nested(f"for jr in range(j0, full, {wide}):", one),
        *nested(f"for jr in range(full, j1, {narrow}):", [two]),
        *nested("for r in range(rows):", scratch_row(problem, rendered)),
    ]
    chunk = [
        f"j1 = min(j0 + {CHUNK}, n)",
        f"full = j1 - (j1 - j0) % {wide}",
        f"stride = (j1 - j0 + {wide - 1}) // {wide} * {wide}",
        *nested(f"for i0 in range(lo, hi, {block.rows}):", tile),
    ]
    return [
        *loads(problem, ("1",)),
        *nested(f"for j0 in range(0, n, {CHUNK}):", chunk),
    ]


def scratch_row(problem: Problem, rendered: Rendered) -> list[str]:
    """Write the epilogue of row r of the scratch, which holds columns j0 to j1."""
    row = rows_of(problem, rendered, "c[r * stride + j - j0]", ("j0", "j1"))
    return ["i = i0 + r", *row]


def packing(block: Block, across: bool) -> list[str]:
    """
    Write the copy of w's columns from `j0` to `j1` into panels at `panels`.

    `across` walks w along its rows, else along its columns.
    """
    wide = block.columns
    column = "jr + j" if across else "(jr + j) * wc"
    copy = f"panels[at + l * {wide} + j] = w[l * wr + {column}]"
    zero = f"panels[at + l * {wide} + j] = zero"
    full = ["copy(w, jr, wr, panels, at, k)"]
    part = nested("for l in range(k):", nested("for j in range(columns):", [copy]))
    along = [*nested(f"if columns == {wide}:", full), *nested("else:", part)]
    down = nested(
        "for j8 in range(0, columns, 8):",
        nested(
            "for l16 in range(0, k, 16):",
            nested(
                "for j in range(j8, min(j8 + 8, columns)):",
                nested("for l in range(l16, min(l16 + 16, k)):", [copy]),
            ),
        ),
    )
    fill = nested(
        "for l in range(k):", nested(f"for j in range(columns, {wide}):", [zero])
    )
    panel = [
        f"columns = min({wide}, j1 - jr)",
        "at = (jr - j0) * k",
        *(along if across else down),
        *nested(f"if columns < {wide}:", fill),
    ]
    return nested(f"for jr in range(j0, j1, {wide}):", panel)


def packed(
    problem: Problem, rendered: Rendered, block: Block, pack: list[str]
) -> list[str]:
    """
    Write a product over packed panels for rows lo to hi and columns jlo to jhi.

    `pack` are the lines that pack a chunk of `chunk` columns, none where w was packed
    before. `c` is scratch of TILE_ROWS by the chunk.
    """
    wide = block.columns
    product = panel_product(block)
    tile = [
        f"height = min({TILE_ROWS}, hi - i0)",
        *product,
        *nested("for r in range(height):", scratch_row(problem, rendered)),
    ]
    body = [
        "j1 = min(j0 + chunk, jhi)",
        f"stride = (j1 - j0 + {wide - 1}) // {wide} * {wide}",
        "base = 0" if pack else "base = j0 * k",
        *pack,
        *nested(f"for i0 in range(lo, hi, {TILE_ROWS}):", tile),
    ]
    return [*loads(problem, ("1",)), *nested("for j0 in range(jlo, jhi, chunk):", body)]


def panel_product(block: Block) -> list[str]:
    """Write the product of up to TILE_ROWS rows with a chunk's panels, into scratch."""
    wide = block.columns
    more = f"min({CHUNK}, k - l0), l0, {wide}"
    call = micro(
        "(i0 + r0) * xr + l0 * xc",
        f"panels, base + (jr - j0) * k + l0 * {wide}",
        str(wide),
        "r0 * stride + jr - j0",
        more,
    )
    blocks = nested(
        f"for r0 in range(0, height, {block.rows}):",
        [f"rows = min({block.rows}, height - r0)", *wide_or_half(block, call)],
    )
    return nested(
        f"for l0 in range(0, max(k, 1), {CHUNK}):",
        nested(f"for jr in range(j0, j1, {wide}):", blocks),
    )
