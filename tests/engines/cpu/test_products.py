"""A product that stands apart from the result is held some rows at a time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from tests.engines.cpu.test_engine import ENGINE, inputs, problem_of
from tilewise.device.target import cpu_target
from tilewise.engines.cpu import runs
from tilewise.model.variant import Variant

SERIAL = Variant("cpu", "blas_serial")
PARALLEL = Variant("cpu", "blas_parallel", (("threads", 3),))


def wide(x: Any, w: Any, b: Any) -> Any:
    """Give a result that is wider than the product."""
    return x @ w + b * np.float64(0.5)


def loaded(variant: Variant, args: Any) -> Any:
    """Build and load a variant of `wide`."""
    problem = problem_of(wide, args)
    artifact = ENGINE.build(variant, problem, cpu_target())
    return ENGINE.load(artifact, variant, problem)


@pytest.mark.parametrize("variant", [SERIAL, PARALLEL], ids=str)
def test_rows_in_several_pieces_equal_the_function(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three pieces of a hundred rows, the last not whole."""
    monkeypatch.setattr(runs, "PRODUCT_BYTES", 1)
    args = inputs(270, 90, 20)
    out = np.full((270, 90), 77, "f8")
    assert np.array_equal(wide(*args), loaded(variant, args)(*args, out))


@pytest.mark.parametrize("variant", [SERIAL, PARALLEL], ids=str)
def test_a_widening_call_allocates_under_8_mib(variant: Variant) -> None:
    """NumPy's own expression takes 16 MiB for the product alone."""
    args, out = inputs(4096, 1024, 8), np.empty((4096, 1024))
    run = loaded(variant, args)
    tracemalloc.start()
    run(*args, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 8 << 20 >= peak


@pytest.mark.parametrize("depth", [1 << 15, 1 << 18])
def test_long_sums_of_equal_numbers_are_right_to_a_thousandth(depth: int) -> None:
    """Each addition is rounded alike: what would be off by more is not tried."""
    args = np.full((4, depth), 0.3, "f4"), np.full((depth, 4), 0.3, "f4"), np.zeros(4)
    problem, target = problem_of(wide, args), cpu_target()
    for variant in ENGINE.variants(problem, target):
        if ENGINE.rejects(variant, problem, target) is None:
            right = np.full((4, 4), np.float64(np.float32(0.3)) ** 2 * depth)
            actual = loaded(variant, args)(*args, np.empty((4, 4)))
            np.testing.assert_allclose(actual, right, rtol=1e-3)
