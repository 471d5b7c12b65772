"""The GPU behind the seam says by name that there is none."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tilewise import tuned_kernel
from tilewise.device import chosen, cuda
from tilewise.device.cuda import CudaBuffer, CudaDevice, CudaKernel, CudaModule
from tilewise.device.driver import gpus
from tilewise.device.seam import launch_shape
from tilewise.device.staging import Staging
from tilewise.errors import EngineError, StoreWarning


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


class OutOfMemoryError(Exception):
    """Stands for CuPy's."""


class Libraries:
    """Stand-ins for cuda.core and CuPy; `told` is what was asked of them, in order."""

    def __init__(self):
        self.told, self.fault = [], None

    def step(self, *words):
        self.told.append(words)
        if self.fault is not None:
            raise self.fault

    @contextmanager
    def device(self, number):
        self.told.append(("enter", number))
        yield
        self.told.append(("leave", number))


@pytest.fixture
def libraries(monkeypatch):
    """Put stand-ins for both libraries and one GPU in place."""
    made = Libraries()
    device = SimpleNamespace(set_current=lambda: None, default_stream="stream")
    core, cupy = ModuleType("cuda.core"), ModuleType("cupy")
    core.Device = lambda index: made.step("device", index) or device
    core.LaunchConfig = lambda **sizes: made.step("config") or sizes
    core.launch = lambda *args: made.step("launch", *args[3:])
    memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cupy.cuda = SimpleNamespace(
        Device=made.device,
        alloc=lambda nbytes: made.step("alloc", nbytes),
        alloc_pinned_memory=lambda nbytes: made.step("pinned", nbytes),
        memory=memory,
    )
    package = ModuleType("cuda")
    package.core = core
    for name, module in (("cuda", package), ("cuda.core", core), ("cupy", cupy)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(cuda, "gpus", lambda: ("one", "two"))
    monkeypatch.setattr(cuda, "driver_version", lambda: "11.4")
    return made


def test_a_driver_that_is_too_old(libraries):
    """What the libraries raise is told with the version that the driver supports."""
    libraries.fault = RuntimeError("cudaErrorInsufficientDriver")
    with pytest.raises(EngineError, match=r"GPU 1 can't.*Insufficient.*CUDA 11\.4"):
        CudaDevice(1)


def test_a_gpu_that_cannot_be_used_leaves_the_cpu(libraries, monkeypatch):
    """Calls are served without it; one warning says why, and it is asked once."""
    libraries.fault = RuntimeError("cudaErrorInsufficientDriver")
    monkeypatch.setattr(chosen, "gpus", lambda: ("one",))
    chosen._gpu.cache_clear()
    kernel = tuned_kernel(lambda x, w: np.maximum(x @ w, 0), budget_s=0.05)
    x = np.ones((3, 4))
    with pytest.warns(StoreWarning, match="GPU 0 can't be used") as told:
        found = [kernel(x, x.T), kernel(x[:2], x.T)]
    chosen._gpu.cache_clear()

    assert [(3, 3), (2, 3)] == [result.shape for result in found]
    assert (1, 1) == (len(told), libraries.told.count(("device", 0)))


def test_out_of_memory(libraries):
    """Too little memory of the device, or to be pinned, is a named error."""
    device = CudaDevice()
    libraries.fault = OutOfMemoryError("40 GB")
    with pytest.raises(EngineError, match="out of device memory: 40 GB"):
        device.allocate(40 << 30)
    device.properties = SimpleNamespace(emulated=False)
    with pytest.raises(EngineError, match="out of pinned memory: 40 GB"):
        Staging(device).host_memory((1 << 33,), np.dtype(np.float32))


def test_a_launch_is_on_its_own_gpu(libraries):
    """The caller's current GPU comes back, and a configuration is made once."""
    device = CudaDevice(1)
    kernel = CudaKernel("raw", "k", 1)
    libraries.told.clear()
    for _ in range(2):
        device.launch(kernel, launch_shape(2, 32), [np.int64(7)])

    once = [("enter", 1), ("launch", np.int64(7)), ("leave", 1)]
    assert [("config",), *once, *once] == libraries.told


def test_a_launch_that_fails(libraries):
    """The driver's word becomes an error for which the variant gives way."""
    device = CudaDevice()
    kernel = CudaKernel("raw", "k", 0)
    device._config(launch_shape(2, 32))
    libraries.fault = RuntimeError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    with pytest.raises(EngineError, match=r"k can't be launched: .*OUT_OF_RESOURCES"):
        device.launch(kernel, launch_shape(2, 32), [])
