"""Architectures are known by name before their device is there."""

from __future__ import annotations

import pytest

from tilewise.device.arch import ARCHS, arch_of, cuda_target, device_target, occupancy
from tilewise.device.emulator.device import EmulatedDevice
from tilewise.errors import EngineError
from tilewise.model.variant import Target


def test_a_suffix_names_the_same_limits():
    """sm_90a has the limits of sm_90."""
    assert arch_of("sm_90") == arch_of("sm_90a")


@pytest.mark.parametrize("name", ["sm_70", "sm_9", "90", "sm_90b", "compute_90", ""])
def test_an_unknown_architecture(name):
    """The error lists what is known."""
    with pytest.raises(EngineError, match=r"is not known; known are sm_75, sm_80"):
        arch_of(name)


def test_a_target_keeps_its_suffix():
    """The suffix is part of the target, since it is part of the code."""
    assert Target("cuda", "sm_90a", shared_bytes=227 << 10) == cuda_target("sm_90a")


def test_a_devices_target():
    """The target of a device has its shared memory and multiprocessors."""
    expected = Target("cuda", "sm_86", units=4, shared_bytes=99 << 10)

    assert expected == device_target(EmulatedDevice((8, 6), memory_bytes=1 << 16))


def test_no_device_has_an_empty_target():
    """Without a device nothing is built for."""
    expected = Target("cuda", "", reason="there is no CUDA device here")
    assert expected == device_target(None)


@pytest.mark.parametrize(
    ("number", "threads", "registers", "shared", "expected"),
    [
        (90, 256, 63, 16384, 0.5),  # registers: 4 blocks
        (90, 256, 128, 36864, 0.25),  # registers: 2 blocks
        (75, 256, 63, 16384, 1.0),
        (86, 256, 32, 40000, 256 * 2 / 1536),  # shared memory: 2 blocks
        (90, 64, 16, 0, 1.0),
        (80, 32, 16, 0, 0.5),  # 32 blocks at most
        (90, 1024, 56, 21120, 0.5),
    ],
)
def test_occupancy(number, threads, registers, shared, expected):
    """The figures are those of NVIDIA's occupancy calculator."""
    assert expected == occupancy(ARCHS[number], threads, registers, shared)
