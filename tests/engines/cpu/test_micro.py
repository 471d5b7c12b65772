"""Each micro-kernel equals NumPy's product for every number of rows and columns."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

from tilewise.device.native import execution_engine
from tilewise.engines.cpu.micro import (
    PARAMETERS,
    POINTERS,
    Block,
    block_of,
    micro_ir,
)
from tilewise.model.variant import Target

BLOCKS = [
    Block("float32", 16, 8), Block("float64", 8, 8), Block("float32", 8, 6),
    Block("float64", 2, 6),
]  # fmt: skip
EACH = pytest.mark.parametrize(
    "block", BLOCKS, ids=lambda b: f"{b.dtype} {b.rows}x{b.lanes}"
)


@cache
def engine(block: Block) -> Any:
    """Compile a block's micro-kernels."""
    made = execution_engine(micro_ir(block))
    made.finalize_object()
    return made


def call(block: Block, name: str, values: dict[str, Any]) -> None:
    """Call a micro-kernel with arrays and numbers by parameter."""
    names = PARAMETERS[name]
    types = [ctypes.c_void_p if n in POINTERS else ctypes.c_int64 for n in names]
    address = engine(block).get_function_address(f"tilewise_{name}")
    given = [values[n] for n in names]
    raw = [v.ctypes.data if isinstance(v, np.ndarray) else v for v in given]
    ctypes.CFUNCTYPE(None, *types)(address)(*raw)


def product(
    block: Block, name: str, rows: int, depth: int, width: int, again: int = 0
) -> tuple[Any, Any]:
    """Return what a micro-kernel stores, and what NumPy says it should."""
    rng = np.random.default_rng(depth)
    x = rng.integers(-4, 5, (rows, depth + 2)).astype(block.dtype)
    w = rng.integers(-4, 5, (depth, block.columns + 3)).astype(block.dtype)
    c = np.full((block.rows, block.columns), 77, block.dtype)
    numbers = {
        "at": 1, "row": x.shape[1], "column": 1, "rows": rows, "from": 2,
        "step": w.shape[1], "depth": depth, "width": width,
        "again": again,
    }  # fmt: skip
    call(block, name, {"x": x, "w": w, "c": c, **numbers})
    return c[:rows, :width], x[:, 1 : depth + 1] @ w[:, 2 : 2 + width] + 77 * again


@EACH
@pytest.mark.parametrize("depth", [0, 1, 7])
def test_the_wide_kernel_multiplies(block: Block, depth: int) -> None:
    """Any number of rows up to the block's."""
    for rows in range(1, block.rows + 1):
        actual, expected = product(block, "wide", rows, depth, block.columns)
        assert np.array_equal(expected, actual)


@EACH
@pytest.mark.parametrize("name", ["wide", "half", "narrow"])
def test_a_product_is_added_to_what_is_there(block: Block, name: str) -> None:
    """The next steps of a deep product."""
    width = block.lanes if name == "narrow" else block.columns
    actual, expected = product(block, name, block.half, 5, width, 1)
    assert np.array_equal(expected, actual)


@EACH
def test_the_half_kernel_multiplies(block: Block) -> None:
    """Half of the rows or fewer."""
    for rows in range(1, block.half + 1):
        actual, expected = product(block, "half", rows, 5, block.columns)
        assert np.array_equal(expected, actual)


@EACH
def test_the_narrow_kernel_reads_no_column_too_many(block: Block) -> None:
    """Columns beyond the width count as zero."""
    for width in range(1, block.lanes + 1):
        actual, expected = product(block, "narrow", block.rows, 5, width)
        assert np.array_equal(expected, actual)


@EACH
@pytest.mark.parametrize("depth", [0, 1, 9])
def test_a_panel_is_copied(block: Block, depth: int) -> None:
    """Row behind row, at the place that was asked for."""
    shape = (depth, block.columns + 5)
    w = np.arange(depth * shape[1], dtype=block.dtype).reshape(shape)
    panels = np.full((depth + 2, block.columns), 77, block.dtype)
    numbers = {"from": 3, "step": block.columns + 5, "at": block.columns}
    call(block, "copy", {"w": w, "panels": panels, "depth": depth, **numbers})
    assert np.array_equal(w[:, 3 : 3 + block.columns], panels[1 : depth + 1])
    assert [77, 77] == panels[[0, depth + 1], 0].tolist()


@EACH
def test_asking_for_a_block_changes_nothing(block: Block) -> None:
    """Whole lines are asked for, of rows at an array's end too."""
    array = np.arange(8.0 * block.columns).astype(block.dtype)
    numbers = {"at": 0, "row": block.columns, "rows": 8}
    call(block, "prefetch", {"array": array, **numbers})
    assert np.array_equal(np.arange(8.0 * block.columns), array)


@pytest.mark.parametrize(
    ("features", "triple", "lanes", "rows"),
    [
        ("+avx2,+fma,+avx512f", "x86_64-linux", 16, 8),
        ("+avx2,+fma", "x86_64-linux", 8, 6),
        ("+sse4.2", "x86_64-linux", 4, 6),
        ("+neon", "aarch64-linux", 4, 8),
        ("+neon", "arm64-apple-darwin", 4, 8),
    ],
)
def test_a_block_fits_the_targets_registers(
    features: str, triple: str, lanes: int, rows: int
) -> None:
    """Vectors are as wide as the target has them, rows as many as registers allow."""
    block = block_of(Target("cpu", "x", triple, features), "float32")
    assert (lanes, rows) == (block.lanes, block.rows)
