"""A shader's run: sizes, layouts, operands, threads, and buffers bound for long."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.opengl import PLAIN, VARIANTS, applied, difference, quarters, run_of
from tilewise.engines.glsl.source import tile_of
from tilewise.errors import EngineError
from tilewise.model.variant import Variant

SIDES = {variant: tile_of(Variant.parse(variant)).rows for variant in VARIANTS}


def bias(x, w, b, c, r, i, on, a):  # noqa: PLR0917
    """Use operands of every kind, integers, bools and a number."""
    return np.where(on & (i > 0), np.maximum(x @ w * a + b, 0) * c + r, c)


def operands(m: int, n: int) -> list[Any]:
    """Return a row, a column, a whole operand, a row of integers, bools, a number."""
    i, on = np.arange(n, dtype=np.int32), quarters((m, n), 5) > -1
    return [quarters((n,)), quarters((m, 1), 2), quarters((m, n), 3), i, on, 0.75]


def sizes_around(variant: str) -> list[tuple[int, int, int]]:
    """Return sizes around a variant's tile, primes, none of k, and single lines."""
    side = SIDES[variant]
    return [
        (1, 1, 1), (side - 1, side - 1, 15), (side, side, 16),
        (side + 1, side + 1, 17), (37, 53, 41), (5, 7, 0), (19, 19, 19),
        (1, 3 * side, 33), (3 * side, 1, 33),
    ]  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_sizes_around_the_tile(variant: str):
    """Partial tiles, primes, k = 0 and m = n, with operands of every kind."""
    wrong = {}
    for m, n, k in sizes_around(variant):
        args = quarters((m, k), m), quarters((k, n), n), *operands(m, n)
        wrong[m, n, k] = difference(bias, *args, variant=variant)

    assert {""} == set(wrong.values()), wrong


@given(
    st.sampled_from(VARIANTS),
    st.tuples(*(st.integers(1, 70) for _ in range(3))),
    st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_any_sizes(variant: str, sizes: tuple[int, int, int], seed: int):
    """Rectangles of any shape give NumPy's exact sums."""
    m, n, k = sizes
    x, w = quarters((m, k), seed), quarters((k, n), seed + 1)

    assert np.array_equal(x @ w, applied(lambda x, w: x @ w, x, w, variant=variant))


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "padded": lambda a: np.pad(a, ((0, 0), (0, 4)))[:, : a.shape[1]],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("variant", [PLAIN, "glsl/shared tile=32x32"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_all_arrays(layout: str, variant: str):
    """Transposed, strided, padded and reversed arrays read as they are."""
    x, w, r = quarters((33, 20)), quarters((20, 35), 2), quarters((33, 35), 3)
    args = [LAYOUTS[layout](a) for a in (x, w, r)]

    assert "" == difference(lambda x, w, r: x @ w - r, *args, variant=variant)


def test_transposed_in_the_kernel():
    """`x.T @ w.T` reads the arguments where they lie."""
    x, w = quarters((20, 33)), quarters((35, 20), 2)

    assert "" == difference(lambda x, w: x.T @ w.T, x, w)


def test_broadcast_operands():
    """A stride of zero, a (1, n) row, a (m, 1) column and a 0-d array."""
    x, w, zero = quarters((6, 4)), quarters((4, 5), 2), np.float32([[2.5]])
    args = np.broadcast_to(zero, (6, 5)), quarters((1, 5)), zero.reshape(())

    assert "" == difference(lambda x, w, r, b, c: x @ w * r + b - c, x, w, *args)


@pytest.mark.parametrize("variant", VARIANTS)
def test_nan_and_infinity_stay_in_their_rows_and_columns(variant: str):
    """What pads a tile never meets an infinity: 0 * inf would be NaN."""
    x, w = quarters((21, 19)), quarters((19, 23), 2)
    x[9, 5], x[4, 0], w[7, 8] = np.nan, np.inf, -np.inf
    relu = lambda x, w: np.maximum(x @ w, 0)  # noqa: E731

    assert "" == difference(relu, x, w, variant=variant)


def test_random_sums_are_within_the_bound_of_their_length():
    """The error of a sum of k products is within k unit roundoffs of their size."""
    random = np.random.default_rng(0)
    x, w = (
        random.standard_normal(s).astype(np.float32) for s in ((50, 700), (700, 60))
    )
    exact = x.astype(np.float64) @ w
    bound = 700 * 2.0**-24 * (np.abs(x).astype(np.float64) @ np.abs(w))

    for variant in VARIANTS:
        actual = applied(lambda x, w: x @ w, x, w, variant=variant)
        assert 1 >= float(np.max(np.abs(actual - exact) / bound))


def test_an_output_that_is_not_contiguous():
    """The result goes to every second element of a larger array, and nowhere else."""
    x, w = quarters((6, 4)), quarters((4, 5), 2)
    whole = np.full((12, 10), 77, np.float32)
    run_of(lambda x, w: x @ w, x, w)(x, w, whole[::2, ::2])

    assert np.array_equal(x @ w, whole[::2, ::2])
    assert 77 * (120 - 30) == whole.sum() - (x @ w).sum()


def test_an_empty_result_touches_nothing():
    """No rows, or no columns: there is nothing to compute."""
    run = run_of(lambda x, w: x @ w, quarters((3, 4)), quarters((4, 5)))
    for m, n in ((0, 5), (3, 0)):
        out = np.empty((m, n), np.float32)
        assert run(quarters((m, 4)), quarters((4, n)), out) is out


def test_kernels_used_in_turn_read_their_own_buffers():
    """Bindings are the context's: sizes A, B, A again with other data are right."""
    run = run_of(lambda x, w: x @ w, quarters((4, 4)), quarters((4, 4)))
    for seed, side in enumerate((16, 64, 16)):
        x, w = quarters((side, side), seed), quarters((side, side), seed + 9)
        out = np.empty((side, side), np.float32)
        assert np.array_equal(x @ w, run(x, w, out))


def test_threads_get_their_own_results():
    """Eight threads with different data, sizes and kernels at once."""
    kernels = (lambda x, w: x @ w + 1, lambda x, w: np.maximum(x @ w, 0))
    found: list[bool] = []

    def work(number: int) -> None:
        kernel = kernels[number % 2]
        x, w = quarters((9 + number, 12), number), quarters((12, 30 + number), 50)
        run = run_of(kernel, x, w, variant=VARIANTS[number % 4])
        for turn in range(5):
            out = np.empty((x.shape[0], w.shape[1]), np.float32)
            found.append(np.array_equal(kernel(x + turn, w), run(x + turn, w, out)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [True] * 40 == found


def dense(x, w, b):
    """Do what a layer does."""
    return np.maximum(x @ w + b, 0)


@pytest.mark.parametrize("constants", [(), (1, 2), (0, 1, 2)])
def test_bound_buffers_hold_what_was_bound(constants: tuple[int, ...]):
    """Later writes to a constant aren't seen; data A, B, A are right each time."""
    x, w, b = quarters((17, 20)), quarters((20, 19), 2), quarters((19,), 3)
    was = [x.copy(), w.copy(), b.copy()]
    bound = run_of(dense, x, w, b, constants=constants).bind((x, w, b))
    for seed in (0, 7, 0):
        args = [quarters(a.shape, seed + i) for i, a in enumerate(was)]
        told = [was[i] if i in constants else a for i, a in enumerate(args)]
        x[:], w[:], b[:] = args
        out = np.empty((17, 19), np.float32)
        assert np.array_equal(dense(*told), bound(*args, out))


def test_bound_runs_in_turn_do_not_share_buffers():
    """Two bound kernels of other sizes, called in turn, keep their own constants."""
    pairs = []
    for side in (16, 64):
        x, w, b = (quarters(s, side) for s in ((side, side), (side, side), (side,)))
        run = run_of(dense, x, w, b, constants=(1, 2)).bind((x, w, b))
        pairs.append((run, w, b))
    for turn in (0, 1, 0, 1):
        run, w, b = pairs[turn]
        x = quarters(w.shape, turn + 3)
        assert np.array_equal(dense(x, w, b), run(x, w, b, np.empty(w.shape, "f4")))


def test_too_large_an_array_is_refused_when_it_is_met():
    """A run made for small arrays says why it can't take a large one."""
    run = run_of(lambda x, w: x @ w, quarters((4, 4)), quarters((4, 4)))
    wide = np.zeros((1, 4), np.float32), np.zeros((4, 16 * 65536), np.float32)
    with pytest.raises(EngineError, match="65536 tiles along one axis are over"):
        run(*wide, np.empty((1, 16 * 65536), np.float32))
