"""Host arrays reach the device in the order asked for and come back whole."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.device import EmulatedDevice
from tilewise.device.staging import Staging


@pytest.fixture
def staging():
    """Return a staging to a small emulated device."""
    return Staging(EmulatedDevice(memory_bytes=1 << 20))


@pytest.mark.parametrize(("order", "strides"), [("C", (12, 4)), ("F", (4, 8))])
def test_the_order(staging, order, strides):
    """A strided array arrives in C or in F order, with its values."""
    host = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    view = staging.copied_in(host, order)

    assert strides == view.strides
    packed = view if order == "C" else view.T
    back = np.empty(packed.shape, np.float32)
    staging.device.copy_out(back, packed)
    assert host.tolist() == (back if order == "C" else back.T).tolist()


def test_the_way_back(staging):
    """A result is copied into an array of any layout."""
    view = staging.copied_in(np.arange(6.0).reshape(2, 3), "C")
    out = np.zeros((3, 2)).T
    staging.copy_out(out, view)

    assert [[0, 1, 2], [3, 4, 5]] == out.tolist()


def test_transfers_are_counted(staging):
    """Bytes in and out are counted apart."""
    view = staging.copied_in(np.zeros((2, 3)), "C")
    staging.copied_in(np.zeros(5, np.float32), "C")
    staging.copy_out(np.zeros((2, 3)), view)

    assert (68, 48) == (staging.bytes_in, staging.bytes_out)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), ()])
def test_small_arrays(staging, shape):
    """Arrays without elements and without axes pass."""
    assert shape == staging.copied_in(np.zeros(shape), "C").shape
