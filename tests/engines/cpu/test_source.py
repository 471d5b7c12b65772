"""A kernel's parameters come from the places that the call has them at."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.engines.cpu.test_engine import dense, inputs, problem_of
from tilewise.device.native import Parameter
from tilewise.engines.cpu.micro import Block
from tilewise.engines.cpu.source import kernel_for

BLOCK = Block("float32", 16, 8)


def parameters(
    function: Any, args: Any, method: str = "blas_serial"
) -> dict[str, Parameter]:
    """Return a kernel's parameters by name."""
    kernel = kernel_for(problem_of(function, args), method, BLOCK)
    names = kernel.source.split("(")[1].split(")")[0].split(", ")
    return dict(zip(names, kernel.values, strict=True))


@pytest.mark.parametrize(
    ("shape", "row", "column"),
    [
        ((9,), Parameter("const"), Parameter("stride", 2, 0, 2)),
        ((6, 1), Parameter("stride", 2, 0, 2), Parameter("const")),
        ((6, 9), Parameter("stride", 2, 0, 2), Parameter("stride", 2, 1, 2)),
        ((), Parameter("const"), Parameter("const")),
    ],
    ids=str,
)
def test_an_operand_has_strides_where_it_varies(
    shape: tuple[int, ...], row: Parameter, column: Parameter
) -> None:
    """Elsewhere the stride is the constant zero."""
    x, w, _ = inputs(6, 9, 7)
    found = parameters(dense, (x, w, np.zeros(shape, "f4")))
    assert (row, column) == (found["o0_r"], found["o0_c"])


def test_a_transposed_factor_swaps_its_axes() -> None:
    """x.T is read by x's own strides, and its depth is x's first axis."""
    x, w, b = inputs(6, 9, 7)
    found = parameters(lambda x, w, b: x.T @ w + b, (x.T.copy(), w, b), "small")
    strides = (Parameter("stride", 0, 1, 2), Parameter("stride", 0, 0, 2))
    assert (*strides, Parameter("dim", 0, 0)) == (
        found["xr"],
        found["xc"],
        found["k"],
    )


def test_a_number_is_read_from_the_users_own_argument() -> None:
    """A computed one stands behind `out`."""
    args = (*inputs(6, 9, 7)[:2], 2.0)
    direct = parameters(lambda x, w, a: x @ w * a, args)
    behind = parameters(lambda x, w, a: x @ w * (a + 1), args)
    assert (2, 4) == (direct["s0"].arg, behind["s0"].arg)


def test_a_product_of_another_dtype_stands_behind_the_numbers() -> None:
    """`out` can't hold it."""
    args = (*inputs(6, 9, 7)[:2], 2.0)
    found = parameters(lambda x, w, a: x @ w * np.float64(1) * (a + 1), args)
    assert (4, 5) == (found["s0"].arg, found["product"].arg)


def test_loads_that_a_row_shares_stand_outside_its_loop() -> None:
    """A column's element is read once a row, a single one once a call."""
    x, w, _ = inputs(6, 9, 7)
    args = (x, w, np.zeros((6, 1), "f4"), np.zeros((), "f4"))
    function: Any = lambda x, w, c, s: x @ w * c + s  # noqa: E731
    lines = kernel_for(problem_of(function, args), "blas_serial", BLOCK).source
    found = (line for line in lines.splitlines() if re.match(r" *o\d =", line))
    depth = {line.split()[0]: len(line) - len(line.lstrip()) for line in found}
    assert {"o0": 8, "o1": 4} == depth
