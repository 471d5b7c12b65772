"""The same decorated function on arrays of the emulated device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, EngineError, tuned_kernel
from tilewise.device.arrays import EmulatedArray
from tilewise.device.chosen import chosen_device
from tilewise.engines.cuda_cpp.engine import CudaCppEngine
from tilewise.model.variant import Variant
from tilewise.runtime import resolve
from tilewise.runtime.dispatch import python_key
from tilewise.runtime.once import resolver
from tilewise.runtime.question import ask


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


def test_a_device_that_is_no_emulated_one_is_tuned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Variants race the reference on the device, and calls follow the decision."""
    monkeypatch.setattr(resolve, "on_emulated", lambda problem: False)
    variant = Variant("cuda_cpp", "naive")
    monkeypatch.setattr(CudaCppEngine, "variants", lambda *args: (variant,))
    only = tuned_kernel(engines=["cuda_cpp"], budget_s=2)
    dense, args = only(lambda x, w, b: np.maximum(x @ w + b, 0)), inputs()
    result = dense(*on_device(args))
    told = dense.explain(*on_device(args))
    assert (1, "measured") == (dense.stats.tunings, told.grade)
    status = {c.variant: (c.status, c.timing.protocol.clock) for c in told.candidates}
    assert ("measured", "cuda_event") == status[variant]
    np.testing.assert_allclose(result.get(), dense.reference(*args), rtol=1e-5)


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


class Foreign:
    """A device array of another library: nothing but the interface and a number."""

    def __init__(self, array: EmulatedArray, number: int = 0) -> None:
        self.array, self.device = array, SimpleNamespace(id=number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__


def test_any_library_s_arrays_are_fused() -> None:
    """An array with the interface alone, no dtype and no shape, is used in place."""
    dense, args = kernel(), inputs()
    dense.pin("cuda_cpp/naive")
    (out,) = on_device([np.zeros((17, 13), np.float32)])
    dense(*map(Foreign, on_device(args)), out=out)
    np.testing.assert_allclose(out.get(), dense.reference(*args), rtol=1e-5)
    assert ["cuda_cpp/naive"] == list(dense.stats.dispatches)


def test_batches_of_any_library_fill_a_strided_out() -> None:
    """Leading axes are folded by views; what can't be folded is filled by a copy."""
    dense, (x, w, b) = kernel(), inputs()
    dense.pin("cuda_cpp/naive")
    x = np.stack([x, -x])
    (whole,) = on_device([np.zeros((2, 17, 26), np.float32)])
    out = whole[:, :, ::2]
    assert out is dense(*map(Foreign, on_device([x, w, b])), out=out)
    np.testing.assert_allclose(out.get(), dense.reference(x, w, b), rtol=1e-5)
    assert not whole.get()[:, :, 1::2].any()


def test_two_gpus_share_neither_entries_nor_decisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The GPU's number is part of a call's key and chooses the decision's hardware."""
    args = on_device(inputs())
    placed = [[Foreign(arg, number) for arg in args] for number in (0, 1)]
    assert python_key(placed[0]) != python_key(placed[1])
    monkeypatch.setattr(resolver(), "fingerprint_of", lambda device: f"gpu {device}")
    problems = [ask(kernel()._subject, tuple(given)).problem for given in placed]
    found = [resolver().key(one).fingerprint for one in problems if one is not None]
    assert ["gpu 0", "gpu 1"] == found


def test_an_array_off_its_alignment_is_for_the_reference() -> None:
    """It has another key than an aligned one, and no kernel is launched on it."""
    dense, (x, w, b) = kernel(), inputs()
    (raw,) = on_device([np.zeros(4 * b.size + 1, np.uint8)])
    args = on_device([x, w, b])
    odd = EmulatedArray(args[2].device, raw.buffer, b.shape, b.dtype, offset=1)
    dense(*args)
    assert "b is not aligned" in dense.explain(*args[:2], odd).reason
    assert python_key(args) != python_key([*args[:2], odd])


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


def test_a_constant_on_the_device_is_copied_there() -> None:
    """Later writes to it are not seen; A, B, A is right."""
    args, dense = inputs(), kernel()
    x, w, b = on_device(args)
    bound = dense.bind(x, w, b, constant=("w", "b"))
    w.set(np.zeros_like(args[1]))
    (other,) = on_device([-args[0]])
    for given, host in ((x, args[0]), (other, -args[0]), (x, args[0])):
        right = dense.reference(host, *args[1:])
        np.testing.assert_allclose(bound(given).get(), right, rtol=1e-5)


def test_a_bound_device_form_names_both() -> None:
    """Another shape or dtype on the device is told as on the host."""
    args, dense = inputs(), kernel()
    bound = dense.bind(*on_device(args), constant=("w", "b"))
    with pytest.raises(ArgumentError, match=r"float32 \(17, 9\).*float32 \(16, 9\)"):
        bound(*on_device([args[0][:16]]))
    with pytest.raises(ArgumentError, match=r"float32 \(17, 9\).*float64 \(17, 9\)"):
        bound(*on_device([args[0].astype("f8")]))


@pytest.mark.parametrize("place", [lambda arrays: arrays, on_device])
def test_bound_calls_on_the_device(place: Any) -> None:
    """Constants stay there, and calls in turn have each their own result."""
    dense, (x, w, b) = kernel(), inputs()
    dense.pin("cuda_cpp/naive")
    with dense.bind(*place([x, w, b]), constant=("w", "b")) as bound:
        found = [bound(*place([one])) for one in (x, 2 * x, x)]
    for one, result in zip((x, 2 * x, x), found, strict=True):
        have = result.get() if isinstance(result, EmulatedArray) else result
        np.testing.assert_allclose(have, dense.reference(one, w, b), rtol=1e-5)


def lying(offset: int) -> list[Any]:
    """Return x, w, b and an out, which lies so many bytes behind x in its buffer."""
    device: Any = chosen_device()
    buffer = device.allocate(4096)
    kind = np.dtype(np.float32)
    x = device.array(buffer, (8, 8), kind, (64, 8))
    x.set(np.arange(64, dtype="f4").reshape(8, 8))
    w, b = on_device([np.eye(8, dtype="f4"), np.zeros(8, "f4")])
    return [x, w, b, device.array(buffer, (8, 8), kind, (64, 8), offset)]


@pytest.mark.parametrize("offset", [0, 8])
@pytest.mark.parametrize(
    ("serving", "wrap"),
    [
        ("cuda_cpp/naive", lambda a: a),
        ("cuda_cpp/naive", Foreign),
        ("reference", lambda a: a),
    ],
    ids=["emulated", "foreign", "reference"],
)
def test_out_over_an_input_on_the_device(serving: str, wrap: Any, offset: int) -> None:
    """It is refused by name as on the host, before anything is written."""
    dense = kernel()
    dense.pin(serving)
    *args, out = map(wrap, lying(offset))
    with pytest.raises(ArgumentError, match="out overlaps x in memory"):
        dense(*args, out=out)


def test_out_between_the_elements_of_an_input() -> None:
    """Arrays whose bytes interleave share none, and are taken as on the host."""
    dense = kernel()
    dense.pin("cuda_cpp/naive")
    *args, out = lying(4)
    dense(*args, out=out)

    assert np.arange(64).tolist() == out.get().ravel().tolist()
