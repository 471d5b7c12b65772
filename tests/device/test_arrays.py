"""Emulated arrays hold data on the device and speak the CUDA array interface."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.device import EmulatedDevice
from tilewise.errors import ArgumentError


@pytest.fixture
def device():
    """Return a small device."""
    return EmulatedDevice(memory_bytes=1 << 20)


def make(device, values):
    """Return a device array of values."""
    buffer = device.allocate(values.nbytes)
    array = device.array(buffer, values.shape, values.dtype)
    array.set(values)
    return array


def test_values_go_in_and_come_back(device):
    """Get returns a copy of what set put there."""
    values = np.arange(12, dtype=np.int16).reshape(3, 4)
    array = make(device, values)

    copy = array.get()
    copy[0, 0] = 99

    assert values.tolist() == array.get().tolist()
    assert (2, 12, 24, 3) == (array.ndim, array.size, array.nbytes, len(array))


def test_the_interface_is_version_3(device):
    """Contiguous arrays have no strides there, empty ones no address."""
    array = make(device, np.zeros((2, 3), np.float32))
    empty = device.array(device.allocate(0), (0, 3), np.dtype(np.float32))

    assert {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (array.buffer.address, False),
        "strides": None,
        "version": 3,
        "stream": None,
    } == array.__cuda_array_interface__
    assert 0 == empty.__cuda_array_interface__["data"][0]
    assert (12, 4) == make(device, np.zeros((5, 3), "f4"))[::1].strides
    assert (4, 12) == array.T.__cuda_array_interface__["strides"]


@pytest.mark.parametrize(
    "index",
    [
        np.s_[1],
        np.s_[:, 2],
        np.s_[::2, ::-1],
        np.s_[1, 2],
        np.s_[..., None, 1],
        np.s_[:0],
    ],
    ids=str,
)
def test_views_are_numpys(device, index):
    """Basic indexing gives the same elements, in place."""
    values = np.arange(20, dtype=np.float64).reshape(4, 5)
    array = make(device, values)

    view = array[index]

    np.testing.assert_array_equal(values[index], view.get())
    assert np.shape(values[index]) == view.shape


def test_writing_through_a_view_changes_the_array(device):
    """Set of a strided view writes its elements and no others."""
    values = np.zeros((3, 4), np.float32)
    array = make(device, values)
    array.T[1::2].set(np.full((2, 3), 5, np.float32))

    values[:, 1::2] = 5

    assert values.tolist() == array.get().tolist()


def test_reshape_is_a_view_or_an_error(device):
    """Strided memory that needs a copy is refused."""
    array = make(device, np.arange(6, dtype=np.int32))

    assert [[0, 1, 2], [3, 4, 5]] == array.reshape(2, 3).get().tolist()
    assert (3, 2) == array.reshape((3, 2)).shape
    with pytest.raises(ArgumentError, match="copy"):
        array.reshape(2, 3).T.reshape(6)


def test_nothing_crosses_over_by_itself(device):
    """NumPy functions and iteration are errors that name get()."""
    array = make(device, np.zeros(3, np.float32))

    for use in (np.asarray, list, lambda a: a + np.ones(3)):
        with pytest.raises(TypeError):
            use(array)


def test_what_does_not_fit_is_refused(device):
    """Shapes beyond the buffer, wrong values, and fancy indices are errors."""
    array = make(device, np.zeros(4, np.float32))

    with pytest.raises(ArgumentError, match="does not fit"):
        device.array(array.buffer, (5,), np.dtype(np.float32))
    with pytest.raises(ArgumentError, match="do not fit"):
        array.set(np.zeros(3, np.float32))
    with pytest.raises(ArgumentError, match="basic indexing"):
        array[[0, 1]]


@pytest.mark.parametrize("index", [(), (slice(None, None, 2),), (slice(0, 1),)])
def test_flags(device, index):
    """The order is told as NumPy tells it."""
    values = np.zeros((4, 5), np.float32)
    array = make(device, values)[index]

    expected = values[index].flags.c_contiguous, values[index].T.flags.c_contiguous
    assert expected == (array.flags.c_contiguous, array.T.flags.c_contiguous)
    assert array.flags.aligned
