"""Tiles cover the result, workspaces stay small, bound weights are packed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engines.cpu.test_engine import ENGINE, dense, inputs, problem_of
from tilewise.device.target import cpu_target
from tilewise.engines.cpu.micro import Block, block_of
from tilewise.engines.cpu.runs import packed_by_numpy, tiles_of
from tilewise.model.variant import Target, Variant

SIZES = [
    (1, 1, 1), (7, 33, 5), (64, 64, 64), (1000, 16, 3), (3, 5000, 9), (4096, 64, 4096),
    (65536, 64, 16), (128, 4096, 1024), (513, 511, 0), (5, 40, 100_000),
]  # fmt: skip
BLOCK = Block("float32", 16, 8)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_tiles_cover_each_element_once(
    sizes: tuple[int, int, int], threads: int
) -> None:
    """Rows and columns, whatever the cut, add up to the result."""
    m, n, _ = sizes
    count = sum(
        (hi - lo) * (jhi - jlo)
        for lo, hi, jlo, jhi, _ in tiles_of(sizes, threads, BLOCK).tiles
    )
    assert m * n == count


@pytest.mark.parametrize("sizes", SIZES[:-1], ids=str)
def test_a_threads_workspace_is_small(sizes: tuple[int, int, int]) -> None:
    """Scratch and panels of one thread stay under 2 MiB."""
    plan = tiles_of(sizes, 2, BLOCK)
    assert 2 << 20 >= plan.scratch_bytes + plan.panel_bytes


def test_an_empty_result_has_no_tiles() -> None:
    """Nothing is run where there is nothing to fill."""
    assert ((), ()) == (
        tiles_of((0, 5, 3), 2, BLOCK).tiles,
        tiles_of((5, 0, 3), 2, BLOCK).tiles,
    )


@pytest.mark.parametrize(
    ("features", "lanes", "rows"),
    [("+avx2,+fma,+avx512f", 16, 8), ("+avx2,+fma", 8, 6), ("+sse4.2", 4, 6)],
)
def test_a_block_fits_the_targets_registers(
    features: str, lanes: int, rows: int
) -> None:
    """Vectors are as wide as the target has them."""
    block = block_of(Target("cpu", "x", "x86_64-linux", features), "float32")
    assert (lanes, rows) == (block.lanes, block.rows)


def test_panels_are_padded_with_zeros() -> None:
    """Panel by panel, row by row."""
    block = Block("float32", 2, 8)
    panels = packed_by_numpy(np.arange(1, 11, dtype="f4").reshape(2, 5), block)
    first, second = panels
    assert [[1, 2, 3, 4], [6, 7, 8, 9]] == first.tolist()
    assert [[5, 0, 0, 0], [10, 0, 0, 0]] == second.tolist()


def loaded(args: Any, threads: int = 2, constants: tuple[int, ...] = ()) -> Any:
    """Build and load the packed method."""
    problem = replace(problem_of(dense, args), constants=constants)
    variant = Variant("cpu", "packed", (("threads", threads),))
    artifact = ENGINE.build(variant, problem, cpu_target())
    return ENGINE.load(artifact, variant, problem)


def test_bound_weights_are_packed_once() -> None:
    """A later write to w is not seen by the bound run."""
    x, w, b = inputs(130, 70, 40)
    expected, bound = dense(x, w, b), loaded((x, w, b), constants=(1,)).bind((x, w, b))
    w[:] = 0
    assert np.array_equal(expected, bound(x, w, b, np.full((130, 70), 77, "f4")))


def test_a_run_for_constants_serves_unbound_calls() -> None:
    """Measuring calls it with all arguments."""
    args = inputs(130, 70, 40)
    run = loaded(args, constants=(1,))
    assert np.array_equal(dense(*args), run(*args, np.full((130, 70), 77, "f4")))


@pytest.mark.parametrize("k", [0, 1, 255, 256, 257, 700])
def test_deep_products_are_added_up_in_scratch(k: int) -> None:
    """Depths around the 256 steps between two writes, each thread on its tiles."""
    run = RUNS.setdefault("run", loaded(inputs(130, 70, 40)))
    args = inputs(530, 70, k)
    assert np.array_equal(dense(*args), run(*args, np.full((530, 70), 77, "f4")))


RUNS: dict[str, Any] = {}
"""One compiled run for all depths."""
