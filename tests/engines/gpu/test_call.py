"""The same decorated function runs on host arrays and on device arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewise import tuned_kernel
from tilewise.device.arrays import EmulatedArray
from tilewise.device.chosen import chosen_device
from tilewise.device.driver import gpus
from tilewise.errors import StoreWarning
from tilewise.store.stack import open_store

pytest.importorskip("numba.cuda")
pytest.importorskip("cuda.core")
PINS = (
    "numba_cuda/global",
    "numba_cuda/shared tile=8 rows=2",
    "cuda_cpp/naive",
    "cuda_cpp/simt tile=64x64x16",
)


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


def dense(x, w, b):
    """Return a dense layer."""
    return np.maximum(x @ w + b, 0)


def scaled(w, scale, x):
    """Have the factors in another order, and a number between them."""
    return (x.T @ w) * scale


def pinned(function, pin):
    """Return a function's kernel with a pinned variant."""
    kernel = tuned_kernel(function)
    kernel.pin(pin)
    return kernel


def integers(*shape):
    """Return small whole numbers, so that sums are exact."""
    random = np.random.default_rng(sum(shape))
    return random.integers(-4, 5, shape).astype(np.float32)


def on_device(host):
    """Return an emulated array with a host array's values."""
    device = chosen_device()
    array = device.array(device.allocate(host.nbytes), host.shape, host.dtype)
    array.set(host)
    return array


@pytest.mark.parametrize("pin", PINS)
def test_host_arrays(pin):
    """NumPy arrays in, a NumPy array out, through the device."""
    args = integers(33, 20), integers(20, 17), integers(17)

    assert dense(*args).tolist() == pinned(dense, pin)(*args).tolist()


@pytest.mark.parametrize("pin", PINS)
def test_device_arrays(pin):
    """The result lives where the arguments live, in their type."""
    args = integers(33, 20), integers(20, 17), integers(17)
    found = pinned(dense, pin)(*map(on_device, args))

    assert isinstance(found, EmulatedArray)
    assert dense(*args).tolist() == found.get().tolist()


@pytest.mark.parametrize("pin", PINS[1::2])
def test_an_array_to_fill(pin):
    """`out=` on the device is filled in place and returned."""
    args = integers(9, 4), integers(4, 5), integers(5)
    out = on_device(np.zeros((9, 5), np.float32))

    assert out is pinned(dense, pin)(*map(on_device, args), out=out)
    assert dense(*args).tolist() == out.get().tolist()


@pytest.mark.parametrize("pin", PINS[1::2])
def test_views_of_device_arrays(pin):
    """Transposes, slices and steps are read as they lie."""
    x, w, b = integers(12, 40), integers(30, 12), integers(60)
    host = x.T[::2], w[::2, ::-1].T[:, ::1], b[::4]
    args = [on_device(a) for a in (x, w, b)]
    device = args[0].T[::2], args[1][::2, ::-1].T, args[2][::4]
    host = host[0], host[1][: host[0].shape[1]], host[2]
    device = device[0], device[1][: device[0].shape[1]], device[2]
    kernel = pinned(dense, pin)

    assert dense(*host).tolist() == kernel(*device).get().tolist()


@pytest.mark.parametrize("pin", PINS[1::2])
def test_arguments_in_another_order(pin):
    """Roles are told by the trace, not by position."""
    w, x = integers(20, 17), integers(20, 33)
    kernel = pinned(scaled, pin)

    assert scaled(w, 0.5, x).tolist() == kernel(w, 0.5, x).tolist()
    found = kernel(on_device(w), 0.5, on_device(x)).get()
    assert scaled(w, 0.5, x).tolist() == found.tolist()


def test_the_first_that_applies():
    """Unpinned on the emulated device nothing is measured: the simplest one runs."""
    kernel = tuned_kernel(dense)
    args = integers(9, 4), integers(4, 5), integers(5)
    found = kernel(*map(on_device, args))

    assert dense(*args).tolist() == found.get().tolist()
    assert {"numba_cuda/global": 1} == dict(kernel.stats.dispatches)


@pytest.mark.parametrize("pin", PINS[::2])
def test_batches_on_the_device(pin):
    """Leading axes become rows, without a copy."""
    args = integers(3, 5, 4), integers(4, 6), integers(6)
    found = pinned(dense, pin)(*map(on_device, args))

    assert dense(*args).tolist() == found.get().tolist()


def test_an_artifact_that_does_not_load():
    """A damaged artifact is evicted and built anew, with one warning."""
    args = integers(9, 4), integers(4, 5), integers(5)
    first = pinned(dense, "cuda_cpp/naive")
    first._resolver().workshop.forget()  # What other tests of this process loaded.
    first(*args)
    store = open_store()
    (entry,) = store.entries()
    damaged = replace(store.artifact(entry.key), text=b"no PTX")
    store.keep_artifact(entry.key, damaged)
    kernel = pinned(dense, "cuda_cpp/naive")
    kernel._resolver().workshop.forget()
    with pytest.warns(StoreWarning, match="evicted"):
        found = kernel(*args)

    assert dense(*args).tolist() == found.tolist()
    assert 1 == kernel.stats.compiles


def test_a_wrong_artifact_in_the_store(monkeypatch):
    """It is evicted at its first use and built anew; what is right is marked so."""
    args = integers(9, 4), integers(4, 5), integers(5)
    first = pinned(dense, "cuda_cpp/naive")
    first._resolver().workshop.forget()
    first(*args)
    (entry,) = open_store().entries()
    made = open_store().artifact(entry.key)
    other = made.text.replace(b"add.f32", b"sub.f32")
    assert (made.verified, True) == (("emulated",), other != made.text)
    open_store().keep_artifact(entry.key, replace(made, text=other, verified=()))
    kernel = pinned(dense, "cuda_cpp/naive")
    kernel._resolver().workshop.forget()
    with pytest.warns(StoreWarning, match="gives wrong results"):
        found = kernel(*args)

    assert dense(*args).tolist() == found.tolist()
    kept = open_store().artifact(entry.key)
    assert (made.text, ("emulated",)) == (kept.text, kept.verified)
    assert 1 == kernel.stats.compiles


def test_devices_do_not_forget_each_other():
    """An artifact that was checked elsewhere is kept as checked there and here."""
    args = integers(9, 4), integers(4, 5), integers(5)
    first = pinned(dense, "cuda_cpp/naive")
    first._resolver().workshop.forget()
    first(*args)
    (entry,) = open_store().entries()
    made, h200 = open_store().artifact(entry.key), "nvidia-h200_cc9.0_132sm"
    open_store().keep_artifact(entry.key, replace(made, verified=(h200,)))
    kernel = pinned(dense, "cuda_cpp/naive")
    kernel._resolver().workshop.forget()
    kernel(*args)

    assert (h200, "emulated") == open_store().artifact(entry.key).verified


@pytest.mark.gpu
@pytest.mark.skipif(not gpus(), reason="there is no CUDA driver or no GPU here")
@pytest.mark.parametrize("pin", PINS)
def test_cupy_arrays(pin, monkeypatch):
    """CuPy's arrays are used in place, on its current stream, and come back as such."""
    cupy = pytest.importorskip("cupy")
    monkeypatch.setenv("TILEWISE_DEVICE", "auto")
    args = integers(33, 20), integers(20, 17), integers(17)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        found = pinned(dense, pin)(*map(cupy.asarray, args))
        stream.synchronize()

    assert isinstance(found, cupy.ndarray)
    assert dense(*args).tolist() == found.get().tolist()


@pytest.mark.gpu
@pytest.mark.skipif(not gpus(), reason="there is no CUDA driver or no GPU here")
def test_a_call_on_cupy_arrays_is_tuned(monkeypatch):
    """All variants race CuPy's expression on the GPU, timed by its events."""
    cupy = pytest.importorskip("cupy")
    monkeypatch.setenv("TILEWISE_DEVICE", "auto")
    args = integers(130, 64), integers(64, 132), integers(132)
    kernel, there = tuned_kernel(dense, budget_s=2.0), [cupy.asarray(a) for a in args]
    found, told = kernel(*there), kernel.explain(*there)

    assert dense(*args).tolist() == found.get().tolist()
    assert "measured" == told.grade
    timed = [c.timing.protocol.clock for c in told.candidates if c.timing]
    assert len(timed) > 1
    assert {"cuda_event"} == set(timed)
