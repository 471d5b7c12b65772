"""Arguments for verification: the caller's layouts, guarded, with telling values."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.tuner.inputs import MAKERS, guarded, makers

ARRAYS = {
    "rows": np.arange(12.0).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "every second": np.arange(24.0).reshape(3, 8)[:, ::2],
    "backwards": np.arange(12.0).reshape(3, 4)[::-1, ::-1],
    "broadcast": np.broadcast_to(np.arange(4.0), (3, 4)),
    "empty": np.zeros((0, 4)),
    "no axes": np.array(5.0),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_keeps_layout_and_values(name: str) -> None:
    """A copy has the strides, the alignment and the values of its model."""
    array = ARRAYS[name]
    copy = guarded(array, array).array
    assert array.tolist() == copy.tolist()
    if array.size:
        assert array.strides == copy.strides
        assert array.ctypes.data % 64 == copy.ctypes.data % 64


def test_notices_a_write_between_elements() -> None:
    """The gaps of a strided argument are guarded too."""
    kept = guarded(ARRAYS["every second"], ARRAYS["every second"]).sealed()
    assert not kept.changed
    np.lib.stride_tricks.as_strided(kept.array, (3, 7), (64, 8))[0, 1] = 1
    assert kept.changed


def test_what_surrounds_an_array_reads_as_nan() -> None:
    """Bytes before and after are 0xFF."""
    array = guarded(np.zeros(3), np.zeros(3)).array
    assert np.isnan(np.lib.stride_tricks.as_strided(array, (5,))[3:]).all()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (5,), (4, 7), (2, 3, 4)])
def test_makes_any_shape(name: str, shape: tuple[int, ...]) -> None:
    """Every kind of values is made for every shape."""
    made = MAKERS[name](np.random.default_rng(0), shape, 8)
    assert shape == made.shape


def test_special_values_hold_each_kind() -> None:
    """A large array holds NaN, both infinities, both zeros and subnormals."""
    flat = MAKERS["special values"](np.random.default_rng(0), (32, 32), 32).ravel()
    kinds = [
        np.isnan(flat), flat == np.inf, flat == -np.inf,
        (flat == 0) & np.signbit(flat), (flat == 0) & ~np.signbit(flat),
        np.abs(flat) == 1e-40,
    ]  # fmt: skip
    assert all(kind.any() for kind in kinds)


def test_sums_cancel() -> None:
    """Cancelling sums are below a hundredth of the sum of their sizes."""
    random = np.random.default_rng(0)
    x, w = (MAKERS["cancelling"](random, s, 64) for s in ((8, 64), (64, 8)))
    assert np.median(np.abs(x @ w) / (np.abs(x) @ np.abs(w))) < 0.01


def test_sparse_sums_stay_short() -> None:
    """About eight products in each sum are not zero, at any k."""
    random = np.random.default_rng(0)
    x, w = (MAKERS["sparse"](random, s, 4096) for s in ((8, 4096), (4096, 8)))
    count = ((x != 0).astype(int) @ (w != 0).astype(int)).mean()
    assert 4 < count < 16


def test_large_problems_get_fewer_trials() -> None:
    """The more multiplications, the fewer trials: 5, 3, 2, 1; without any k none."""
    sizes = ((1, 64), (256, 2**16), (512, 2**18), (1024, 2**20), (0, 64))
    assert [5, 3, 2, 1, 0] == [len(makers(*size)) for size in sizes]


def test_large_arguments_of_a_small_result_stop_early() -> None:
    """2048 x 2048 times a vector is worth one trial besides the caller's values."""
    assert 1 == len(makers(2048, 2048, 2048 * 2049))
