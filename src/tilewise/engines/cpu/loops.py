"""
The loops of a CPU kernel as lines of Python source.

Element loops compute the epilogue along rows of the result, from a product in `out`,
in an array of its own or in a block. Tile loops feed the micro-kernels and hand each
finished block to the element loops while it is in the first-level cache, so that the
result is written while the next block is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import indent

from tilewise.engines.cpu.micro import Block
from tilewise.engines.render import Rendered
from tilewise.model.problem import Form, Problem

__all__ = ["CHUNK", "TILE_ROWS", "direct", "packed", "packing", "whole"]

DEPTH = 256
"""Products that are added up in registers."""
CHUNK = 256
"""Columns of w, read where it is, that all rows of x pass before the next ones."""
TILE_ROWS = 16
"""Rows of x that share a panel of w in the first-level cache: blocks of 6 or 8."""


def nested(head: str, *body: Iterable[str]) -> list[str]:
    """Put lines under a head, four spaces in."""
    return [head, *(indent(line, "    ") for part in body for line in part)]


def load(number: int, form: Form) -> str:
    """Write the load of an operand's element at (i, j); a bool is a byte."""
    name = f"o{number}_"
    column = "j" if form.layout == "C" else f"j * {name}c"
    parts = {"mn": f"i * {name}r + {column}", "m": f"i * {name}r", "n": column}
    found = f"o{number} = {name}[{parts.get(form.kind, '0')}]"
    return f"{found} != 0" if form.dtype == "bool" else found


def loads(problem: Problem, kinds: tuple[str, ...]) -> list[str]:
    """Write the loads of all operands that vary in one of some ways."""
    forms = enumerate(problem.forms[2:])
    return [load(n, form) for n, form in forms if form.kind in kinds]


def element(
    problem: Problem, rendered: Rendered, product: str, column: str
) -> list[str]:
    """Write what is done for the element at (i, j)."""
    result = rendered.result
    return [
        f"p = {product}",
        *loads(problem, ("n", "mn")),
        *rendered.lines,
        f"out[i * outr + {column}] = "
        + (f"u1({result})" if problem.spec.dtype == "bool" else result),
    ]


def along_row(
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
    body = along_row(problem, rendered, product, ("0", "n"))
    return [*loads(problem, ("1",)), *nested("for i in range(lo, hi):", body)]


def finished(problem: Problem, rendered: Rendered, wide: int) -> list[str]:
    """Write the epilogue of the block in `c`: `rows` by `columns` from (i0, jr)."""
    product = f"c[r * {wide} + j - jr]"
    row = along_row(problem, rendered, product, ("jr", "jr + columns"))
    return nested("for r in range(rows):", ["i = i0 + r", *row])


def product(block: Block, array: str, at: str, step: str) -> list[str]:
    """
    Write the product of `rows` rows of x, from i0, with a panel of w, into `c`.

    The panel's rows start at `array[at]`, `step` apart. A sum of DEPTH products is
    added up in registers, then to the sum of those before it, so that errors do not
    grow with all of k (blocked summation: Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., 2002, section 4.2). The micro-kernel is one that has as many
    rows and columns as there are.
    """
    x, w = "x, i0 * xr + l0 * xc, xr, xc, rows", f"{array}, {at} + l0 * {step}, {step}"
    call = f"({x}, {w}, c, min({DEPTH}, k - l0), l0, columns)"
    one = [
        *nested(f"if columns <= {block.lanes}:", ["narrow" + call]),
        *nested(f"elif rows > {block.half}:", ["wide" + call]),
        *nested("else:", ["half" + call]),
    ]
    return nested(f"for l0 in range(0, max(k, 1), {DEPTH}):", one)


def prefetches(problem: Problem, block: Block) -> list[str]:
    """
    Prefetch what a block's epilogue will read of a matrix, before the product.

    Rows of some dozen elements, far apart, are no pattern that a processor foresees.
    """
    forms = enumerate(problem.forms[2:])
    return [
        f"prefetch(o{n}_, i0 * o{n}_r + jr, o{n}_r, rows)"
        for n, form in forms
        if (form.kind, form.layout, form.dtype) == ("mn", "C", block.dtype)
    ]


def direct(problem: Problem, rendered: Rendered, block: Block) -> list[str]:
    """
    Write a small product that reads w where it is, a block of rows at a time.

    Needs w's columns side by side. Where fewer columns than a panel's are left they
    are taken by the vector, the last of them under a mask.
    """
    wide = block.columns
    panel = [
        f"columns = {wide} if jr + {wide} <= j1 else min({block.lanes}, j1 - jr)",
        *product(block, "w", "jr", "wr"),
        *finished(problem, rendered, wide),
        "jr += columns",
    ]
    blocks = [
        f"rows = min({block.rows}, hi - i0)",
        "jr = j0",
        *nested("while jr < j1:", panel),
    ]
    chunk = [
        f"j1 = min(j0 + {CHUNK}, n)",
        *nested(f"for i0 in range(lo, hi, {block.rows}):", blocks),
    ]
    return [
        *loads(problem, ("1",)),
        *nested(f"for j0 in range(0, n, {CHUNK}):", chunk),
    ]


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

    `pack` are the lines that pack a chunk of `chunk` columns, if `fresh` says that the
    panels do not hold it yet; there are none where w was packed before.
    """
    wide = block.columns
    blocks = [
        f"rows = min({block.rows}, i1 - i0)",
        *prefetches(problem, block),
        *product(block, "panels", "base + (jr - j0) * k", str(wide)),
        *finished(problem, rendered, wide),
    ]
    tile = [
        f"i1 = min(tile + {TILE_ROWS}, hi)",
        *nested(
            f"for jr in range(j0, j1, {wide}):",
            [f"columns = min({wide}, j1 - jr)"],
            nested(f"for i0 in range(tile, i1, {block.rows}):", blocks),
        ),
    ]
    body = [
        "j1 = min(j0 + chunk, jhi)",
        "base = 0" if pack else "base = j0 * k",
        *(nested("if fresh:", pack) if pack else ()),
        *nested(f"for tile in range(lo, hi, {TILE_ROWS}):", tile),
    ]
    return [*loads(problem, ("1",)), *nested("for j0 in range(jlo, jhi, chunk):", body)]
