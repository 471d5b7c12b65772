"""The same decorated function on arrays of the emulated device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import EngineError, tuned_kernel
from tilewise.device.arrays import EmulatedArray
from tilewise.device.chosen import chosen_device


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


def kernel() -> Any:
    """Return a fresh kernel."""
    return tuned_kernel(budget_s=0.05)(lambda x, w, b: np.maximum(x @ w + b, 0))


def inputs() -> list[Any]:
    """Return (x, w, b)."""
    rng = np.random.default_rng(4)
    return [rng.standard_normal(s).astype("f4") for s in ((17, 9), (9, 13), (13,))]


def on_device(arrays: list[Any]) -> list[Any]:
    """Copy arrays to the emulated device."""
    device: Any = chosen_device()
    made = []
    for array in arrays:
        buffer = device.allocate(array.nbytes)
        one = device.array(buffer, array.shape, array.dtype)
        one.set(array)
        made.append(one)
    return made


def test_device_arrays_give_a_device_array() -> None:
    """The result is of the caller's type and has the function's values."""
    args = inputs()
    dense = kernel()
    result = dense(*on_device(args))
    assert isinstance(result, EmulatedArray)
    np.testing.assert_allclose(result.get(), dense.reference(*args), rtol=1e-5)


def test_nothing_is_decided_on_the_emulated_device() -> None:
    """Its times mean nothing: the first variant that applies runs."""
    dense = kernel()
    args = on_device(inputs())
    dense(*args)
    told = dense.explain(*args)
    assert (0, "none") == (dense.stats.tunings, told.grade)
    assert "numba_cuda/global" == str(told.variant)


@pytest.mark.parametrize("pin", ["numba_cuda/shared tile=8 rows=1", "cuda_cpp/naive"])
def test_a_pin_chooses_on_the_device(pin: str) -> None:
    """The pinned variant is the one that is counted."""
    dense, args = kernel(), inputs()
    dense.pin(pin)
    result = dense(*on_device(args))
    np.testing.assert_allclose(result.get(), dense.reference(*args), rtol=1e-5)
    assert [pin] == list(dense.stats.dispatches)


def test_out_on_the_device_is_filled() -> None:
    """out= is the caller's device array."""
    dense, args = kernel(), inputs()
    (out,) = on_device([np.zeros((17, 13), np.float32)])
    assert out is dense(*on_device(args), out=out)
    np.testing.assert_allclose(out.get(), dense.reference(*args), rtol=1e-5)


def test_host_arrays_run_on_the_pinned_device_variant() -> None:
    """Arrays are staged there and back."""
    dense, args = kernel(), inputs()
    dense.pin("numba_cuda/global")
    np.testing.assert_allclose(dense(*args), dense.reference(*args), rtol=1e-5)


def test_mixed_residency_says_who_is_where() -> None:
    """One argument on the host and two on the device are refused by name."""
    x, w, b = inputs()
    with pytest.raises(TypeError, match="b on the host"):
        kernel()(*on_device([x, w]), b)


def test_the_reference_serves_on_the_device() -> None:
    """Pinned to the reference, the function runs on copies."""
    dense, args = kernel(), inputs()
    dense.pin("reference")
    result = dense(*on_device(args))
    assert np.array_equal(result.get(), dense.reference(*args))


def test_without_a_device_a_pin_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names what is missing."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    dense = kernel()
    dense.pin("numba_cuda/global")
    with pytest.raises(EngineError, match="no CUDA device"):
        dense(*inputs())
