"""Every library's device arrays are seen alike, and results are of their kind."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest

from tilewise.device.arrays import EmulatedArray
from tilewise.device.chosen import chosen_device
from tilewise.device.located import device_number, is_located, located
from tilewise.device.views import (
    DeviceView,
    StreamHandle,
    caller_stream,
    device_copy,
    device_empty,
    device_of,
    device_view,
    is_device_array,
)
from tilewise.errors import ArgumentError, EngineError


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


def on_device(values):
    """Return an emulated array with the values."""
    values = np.asarray(values)
    device = chosen_device()
    array = device.array(device.allocate(values.nbytes), values.shape, values.dtype)
    array.set(values)
    return array


class Foreign:
    """An array of a library that only has the interface."""

    def __init__(self, **face):
        self.__cuda_array_interface__ = {"version": 3, "stream": None, **face}


VIEWS = {
    "T": lambda a: a.T,
    "[None]": lambda a: a[None],
    "[:, None]": lambda a: a[:, None],
    "[None, :, None]": lambda a: a[None, :, None],
    "[..., None]": lambda a: a[..., None],
    "reshape(tuple)": lambda a: a.reshape((a.size,)),
    "reshape(sizes)": lambda a: a.reshape(1, a.size),
}


def steps(array):
    """Return the strides that lead anywhere."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_views_are_numpys(name, shape):
    """Shape and strides of a view are those that NumPy gives."""
    host = np.zeros(shape, np.float32)
    expected, found = VIEWS[name](host), VIEWS[name](device_view(on_device(host)))

    assert expected.shape == found.shape
    assert steps(expected) == steps(found)


def test_a_reshape_that_copies():
    """A view that would take a copy is refused."""
    with pytest.raises(ArgumentError, match="takes a copy"):
        device_view(on_device(np.zeros((2, 3)))).T.reshape(6)


@pytest.mark.parametrize(
    ("strides", "address", "flags"),
    [
        ((12, 4), 256, (True, True)),
        ((4, 12), 256, (False, True)),
        ((12, 4), 258, (True, False)),
        ((14, 4), 256, (False, False)),
    ],
)
def test_flags(strides, address, flags):
    """Order and alignment are told from strides and address."""
    view = DeviceView(address, (2, 3), strides, np.dtype(np.float32))

    assert flags == (view.flags.c_contiguous, view.flags.aligned)


def test_a_foreign_array():
    """An array without strides is in C order."""
    foreign = Foreign(shape=(2, 3), typestr="<f4", data=(512, False))

    assert DeviceView(512, (2, 3), (12, 4), np.dtype("f4")) == device_view(foreign)


def test_a_masked_array():
    """A mask is refused by name."""
    masked = Foreign(shape=(1,), typestr="<f4", data=(512, False), mask=object())
    with pytest.raises(ArgumentError, match="mask"):
        device_view(masked)


class Dlpack:
    """An array that only speaks DLPack."""

    def __init__(self, kind):
        self.kind = kind

    def __dlpack_device__(self):
        return (self.kind, 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(3), False),
        (np.float32(1), False),
        (3, False),
        (Dlpack(1), False),
        (Dlpack(2), True),
        (Foreign(shape=(), typestr="<f4", data=(0, False)), True),
    ],
    ids=["numpy", "scalar", "number", "dlpack-cpu", "dlpack-cuda", "interface"],
)
def test_what_is_a_device_array(value, expected):
    """An interface or CUDA memory in DLPack makes a device array."""
    assert expected is is_device_array(value)


def test_dlpack_goes_through_cupy(monkeypatch):
    """An array with DLPack alone is taken by CuPy, without a copy."""
    foreign = Foreign(shape=(3,), typestr="<f8", data=(1024, False))
    cupy = types.SimpleNamespace(from_dlpack=lambda array: foreign)
    monkeypatch.setitem(sys.modules, "cupy", cupy)

    assert 1024 == device_view(Dlpack(2)).address


def test_what_is_none():
    """A host array is refused by name."""
    with pytest.raises(ArgumentError, match="a ndarray is no device array"):
        device_view(np.zeros(3))


def test_where_an_array_lives():
    """An emulated array is on its own device, any other on the chosen one."""
    array = on_device(np.zeros(3))
    foreign = Foreign(shape=(3,), typestr="<f8", data=(1024, False))

    assert (array.device, chosen_device()) == (device_of(array), device_of(foreign))


def test_no_device(monkeypatch):
    """A foreign array where there is no device is an error that says so."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    with pytest.raises(EngineError, match="there is no CUDA device"):
        device_of(Foreign(shape=(3,), typestr="<f8", data=(1024, False)))


@pytest.mark.parametrize(
    ("stream", "expected"),
    [(None, None), (0, None), (1, None), (77, StreamHandle(77))],
)
def test_the_stream_of_an_interface(stream, expected):
    """The default stream is None, another its handle."""
    foreign = Foreign(shape=(3,), typestr="<f8", data=(0, False))
    foreign.__cuda_array_interface__["stream"] = stream

    assert expected == caller_stream(foreign)


def fake_library(monkeypatch, name, **parts):
    """Put a stand-in for a library in place and return its array type."""
    module = types.ModuleType(name)
    vars(module).update(parts)
    monkeypatch.setitem(sys.modules, name, module)
    return type("Array", (), {"__module__": f"{name}.core", "device": "cuda:0"})


def test_cupys_current_stream(monkeypatch):
    """CuPy is asked for its current stream."""
    stream = types.SimpleNamespace(ptr=99)
    cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    kind = fake_library(monkeypatch, "cupy", cuda=cuda)

    assert StreamHandle(99) == caller_stream(kind())


def test_torchs_current_stream(monkeypatch):
    """Torch is asked for the current stream of the tensor's device."""
    cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream=len(device))
    )
    kind = fake_library(monkeypatch, "torch", cuda=cuda)

    assert StreamHandle(6) == caller_stream(kind())


def test_an_emulated_result():
    """A result beside an emulated array is one on the same device."""
    like = on_device(np.zeros(3))
    made = device_empty(like, (2, 5), "float32")

    assert (EmulatedArray, like.device, (2, 5), np.dtype("f4")) == (
        type(made),
        made.device,
        made.shape,
        made.dtype,
    )


@pytest.mark.parametrize(("library", "dtype"), [("torch", "bool"), ("cupy", "float64")])
def test_a_result_of_the_callers_library(monkeypatch, library, dtype):
    """Torch and CuPy make the result themselves."""
    made = {}

    def empty(shape, dtype=None, device=None):
        made.update(shape=shape, dtype=str(dtype), device=device)

    cuda = types.SimpleNamespace(Device=nullcontext)
    kind = fake_library(monkeypatch, library, empty=empty, bool="bool", cuda=cuda)
    device_empty(kind(), (2, 5), dtype)

    device = "cuda:0" if library == "torch" else None
    assert {"shape": (2, 5), "dtype": dtype, "device": device} == made


@pytest.mark.parametrize(
    ("device", "number"),
    [
        (types.SimpleNamespace(id=2), 2),
        (types.SimpleNamespace(index=3), 3),
        (types.SimpleNamespace(index=None), 0),
        ("cpu", 0),
        (None, 0),
    ],
    ids=["cupy", "torch", "torch-current", "numpy", "none"],
)
def test_the_number_of_a_gpu(device, number):
    """CuPy calls it id and torch index; who says nothing is on the first."""
    assert number == device_number(types.SimpleNamespace(device=device))


def test_a_copy_is_made_on_the_callers_stream(monkeypatch):
    """CuPy copies between any strides, on the stream of the target's library."""
    streams = []
    cuda = types.SimpleNamespace(
        get_current_stream=lambda: types.SimpleNamespace(ptr=99),
        ExternalStream=lambda handle: nullcontext(streams.append(handle)),
    )
    kind = fake_library(monkeypatch, "cupy", cuda=cuda, asarray=lambda a: a.host)
    target, source = kind(), kind()
    target.host, source.host = np.zeros((2, 6))[:, ::2], np.ones((2, 3))
    device_copy(target, source)

    assert ([99], 6) == (streams, target.host.sum())


def test_cupys_attributes_stand_for_its_interface():
    """CuPy's own interface, which makes a dictionary, is not asked."""
    kind = type("ndarray", (), {"__module__": "cupy"})
    array = kind()
    array.data, array.shape = types.SimpleNamespace(ptr=512), (2, 3)
    array.strides, array.dtype = (12, 4), np.dtype(np.float32)

    assert (512, (2, 3), (12, 4), array.dtype) == located(array)
    assert is_located(array)
