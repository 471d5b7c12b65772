"""The GPU behind the seam says by name that there is none."""

from __future__ import annotations

import pytest

from tilewise.device.cuda import CudaBuffer, CudaDevice, CudaModule
from tilewise.device.driver import gpus
from tilewise.errors import EngineError


class _Memory:
    ptr = 4096


def test_a_machine_without_a_gpu_is_an_error():
    """Making the device fails before any CUDA package is imported."""
    if gpus():
        pytest.skip("this machine has a GPU")
    with pytest.raises(EngineError, match="no GPU"):
        CudaDevice()


def test_a_freed_buffer_has_no_address():
    """Free gives the memory back once; its address is gone."""
    buffer = CudaBuffer(_Memory(), 64)
    before = (buffer.address, buffer.nbytes)

    buffer.free()
    buffer.free()

    assert (4096, 64) == before
    with pytest.raises(EngineError, match="freed"):
        _ = buffer.address


def test_an_entry_that_is_not_there_is_named():
    """The driver's error becomes one that names the entry."""

    class Code:
        def get_kernel(self, name):
            raise RuntimeError("CUDA_ERROR_NOT_FOUND")

    with pytest.raises(EngineError, match=r"no entry 'k'.*NOT_FOUND"):
        CudaModule(Code()).kernel("k")
