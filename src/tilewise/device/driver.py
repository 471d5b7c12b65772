"""
Ask the CUDA driver what GPUs there are, without any CUDA package.

The answer is a text that can be recorded on one machine and read on another: one
block of `word: value` lines for each device, in the driver's order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from tilewise.device.cpu_text import lines_of, slug

__all__ = ["Gpu", "driver_version", "gpu_text", "gpus", "parse_gpus"]

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
# Source: CUdevice_attribute in cuda.h, CUDA 13.
ATTRIBUTES: Mapping[str, int] = MappingProxyType(
    {
        "compute_major": 75,
        "compute_minor": 76,
        "multiprocessors": 16,
        "l2_bytes": 38,
        "shared_bytes_optin": 97,
    }
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """
    One CUDA device, or one MIG slice of it, as programs see it.

    `compute` is the compute capability (major, minor); sizes are in bytes.
    """

    name: str
    compute: tuple[int, int]
    multiprocessors: int
    memory_bytes: int = 0
    l2_bytes: int = 0
    shared_bytes_optin: int = 0

    @property
    def slug(self) -> str:
        """The device for a fingerprint: `nvidia-h200_cc9.0_132sm`."""
        major, minor = self.compute
        name = slug(self.name) or "unknown"
        return f"{name}_cc{major}.{minor}_{self.multiprocessors}sm"

    def __str__(self) -> str:
        """Write a summary: `NVIDIA H200, cc 9.0, 132 SM, 140 GiB`."""
        major, minor = self.compute
        size = f"{self.memory_bytes / (1 << 30):.0f} GiB"
        return f"{self.name}, cc {major}.{minor}, {self.multiprocessors} SM, {size}"


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """
    Return the devices of a text as `gpu_text` writes it, in its order.

    Raises ValueError for a block that lacks a word.
    """
    return tuple(gpu_of(block) for block in text.split("\n\n") if block.strip())


def gpu_of(block: str) -> Gpu:
    """Return the device of one block."""
    lines = lines_of(block)
    missing = [word for word in ("name", *ATTRIBUTES) if word not in lines]
    if missing:
        raise ValueError(f"a device's text has no {missing[0]}")
    return Gpu(
        name=lines["name"],
        compute=(int(lines["compute_major"]), int(lines["compute_minor"])),
        multiprocessors=int(lines["multiprocessors"]),
        memory_bytes=int(lines.get("memory_bytes", 0)),
        l2_bytes=int(lines["l2_bytes"]),
        shared_bytes_optin=int(lines["shared_bytes_optin"]),
    )


@cache
def gpus() -> tuple[Gpu, ...]:
    """
    Return the devices that this process sees; 0.2 ms where there is no driver.

    The driver reads CUDA_VISIBLE_DEVICES once, when a process first asks, so the
    answer holds for the process and is never kept on disk. Asking initialises CUDA:
    a process that forks afterwards can't use a GPU in its children, as with any
    CUDA call.
    """
    return parse_gpus(gpu_text())


def gpu_text() -> str:
    """Return the text of all devices, "" where there is no driver or no GPU."""
    cuda = library()
    count = ctypes.c_int()
    if cuda is None or cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return ""
    return "\n".join(block_of(cuda, index) for index in range(count.value))


def library() -> ctypes.CDLL | None:
    """Return the driver's library, or None."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def block_of(cuda: ctypes.CDLL, index: int) -> str:
    """Return the text of one device."""
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    lines = [f"name: {name.value.decode(errors='replace')}"]
    for word, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        lines.append(f"{word}: {value.value}")
    return "\n".join([*lines, f"memory_bytes: {memory.value}", ""])


@cache
def driver_version() -> str:
    """Return the CUDA version that the driver supports, such as "13.0", or ""."""
    cuda, version = library(), ctypes.c_int()
    if cuda is None or cuda.cuDriverGetVersion(ctypes.byref(version)):
        return ""
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
