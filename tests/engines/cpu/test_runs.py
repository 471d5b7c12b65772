"""Tiles cover the result, workspaces stay small, bound weights are packed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engines.cpu.test_engine import ENGINE, dense, inputs, problem_of
from tilewise.device.target import cpu_target
from tilewise.engines.cpu import runs
from tilewise.engines.cpu.micro import Block
from tilewise.engines.cpu.runs import packed_by_numpy, tiles_of
from tilewise.model.variant import Variant

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
    """The panels of one thread stay under 2 MiB."""
    assert 2 << 20 >= tiles_of(sizes, 2, BLOCK).panel_bytes


def test_an_empty_result_has_no_tiles() -> None:
    """Nothing is run where there is nothing to fill."""
    assert ((), ()) == (
        tiles_of((0, 5, 3), 2, BLOCK).tiles,
        tiles_of((5, 0, 3), 2, BLOCK).tiles,
    )


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
def test_any_depth_is_added_up(k: int) -> None:
    """One block takes all steps; each thread has its tiles."""
    run = RUNS.setdefault("run", loaded(inputs(130, 70, 40)))
    args = inputs(530, 70, k)
    assert np.array_equal(dense(*args), run(*args, np.full((530, 70), 77, "f4")))


def test_a_thread_packs_once_for_all_its_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns and many rows: each tile after a thread's first finds w packed."""
    told: list[bool] = []
    monkeypatch.setattr(runs, "WORKSPACE", runs.Workspace())
    problem = problem_of(dense, inputs(8, 64, 16))
    args = (*inputs(4096, 64, 16), np.empty((4096, 64), "f4"))
    run = runs.over_panels(lambda *a: told.append(a[-1]), problem, 1, BLOCK)
    monkeypatch.setattr(runs, "tiles_of", lambda *_: tiles_of((4096, 64, 16), 2, BLOCK))
    for _ in range(2):
        run(*args)
    count = len(tiles_of((4096, 64, 16), 2, BLOCK).tiles)
    assert count > 2
    assert 2 * [True, *[False] * (count - 1)] == told


RUNS: dict[str, Any] = {}
"""One compiled run for all depths."""


def wide(x: Any, w: Any, b: Any) -> Any:
    """Give a result that is wider than the product."""
    return x @ w + b * np.float64(0.5)


@pytest.mark.parametrize("function", [dense, wide])
def test_a_pass_in_threads_equals_the_function(function: Any) -> None:
    """Rows are shared out, with the product in `out` and in an array of its own."""
    args = inputs(300, 90, 20)
    problem = problem_of(function, args)
    variant = Variant("cpu", "blas_parallel", (("threads", 3),))
    artifact = ENGINE.build(variant, problem, cpu_target())
    out = np.full((300, 90), 77, problem.spec.dtype)
    run = ENGINE.load(artifact, variant, problem)
    assert np.array_equal(function(*args), run(*args, out))


def test_a_wide_flat_w_is_not_packed_on_the_stack() -> None:
    """Its padding alone would take megabytes of a thread's stack."""
    x, w = np.ones((4, 1), "f4"), np.ones((30_000, 1), "f4").T
    problem = problem_of(dense, (x, w, np.zeros(30_000, "f4")))
    problem = replace(
        problem,
        forms=(
            problem.forms[0],
            replace(problem.forms[1], layout="F"),
            problem.forms[2],
        ),
    )
    reason = ENGINE.rejects(Variant("cpu", "small"), problem, cpu_target())
    assert "w takes 3964224 bytes to pack, over the 262144 of the stack" == reason


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 1e-45])
@pytest.mark.parametrize("method", ["small", "packed"])
def test_special_values_stay_in_their_rows_and_columns(
    method: str, value: float
) -> None:
    """Padding and repeated rows leak nothing into the result."""
    x, w, b = inputs(13, 21, 9)
    x[5, 3] = w[2, 20] = b[7] = value
    variant = Variant("cpu", method, (("threads", 2),) if method == "packed" else ())
    if method not in RUNS:
        problem = problem_of(dense, (x, w, b))
        artifact = ENGINE.build(variant, problem, cpu_target())
        RUNS[method] = ENGINE.load(artifact, variant, problem)
    with np.errstate(invalid="ignore"):
        expected = dense(x, w, b)
    actual = RUNS[method](x, w, b, np.full((13, 21), 77, "f4"))
    assert np.array_equal(expected, actual, equal_nan=True)
