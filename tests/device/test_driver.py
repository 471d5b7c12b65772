"""GPUs are read from a text that one machine can record for another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilewise.device import driver
from tilewise.device.driver import Gpu, gpu_text, parse_gpus

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> tuple[Gpu, ...]:
    """Return the devices of a recorded machine."""
    return parse_gpus((RECORDED / f"gpus_{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h200", ["nvidia-h200_cc9.0_132sm"]),
        ("a100_mig", ["nvidia-a100-sxm4-40gb-mig-1g.5gb_cc8.0_14sm"]),
        ("rtx_4090", ["nvidia-geforce-rtx-4090_cc8.9_128sm"]),
        (
            "two",
            ["nvidia-rtx-a6000_cc8.6_84sm", "nvidia-geforce-gtx-1660-ti_cc7.5_24sm"],
        ),
    ],
)
def test_names_each_device(name: str, expected: list[str]):
    """Name, capability and multiprocessors identify a device or a slice of one."""
    assert expected == [gpu.slug for gpu in recorded(name)]


def test_summary_is_for_people():
    """A device's text has its name and its main numbers."""
    assert "NVIDIA H200, cc 9.0, 132 SM, 140 GiB" == str(recorded("h200")[0])


def test_block_without_a_word_is_refused():
    """A text that lacks a number is refused by the word."""
    with pytest.raises(ValueError, match="no multiprocessors"):
        parse_gpus("name: x\ncompute_major: 9\ncompute_minor: 0\n")


def test_no_driver_no_devices(monkeypatch: pytest.MonkeyPatch):
    """Without a driver's library there are no devices and no error."""
    monkeypatch.setattr(driver, "LIBRARIES", ("libnot-there.so.1",))

    assert "" == gpu_text()


class Driver:
    """A driver's library that knows two devices by handles, or fails to start."""

    def __init__(self, status: int) -> None:
        self.status = status

    def cuInit(self, flags: int) -> int:  # noqa: N802
        """Return the status that it was made with."""
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        """Find two devices."""
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:  # noqa: N802
        """Give a handle that is not the index."""
        device._obj.value = 40 + index
        return 0

    def cuDeviceGetName(self, name: Any, length: int, device: Any) -> int:  # noqa: N802
        """Write a name with the handle."""
        name.value = b"GPU %d" % device.value
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, device: Any) -> int:  # noqa: N802
        """Write a size by the handle."""
        memory._obj.value = device.value << 32
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, device: Any) -> int:  # noqa: N802
        """Write the attribute's own number."""
        value._obj.value = number
        return 0


def test_what_is_asked_can_be_read(monkeypatch: pytest.MonkeyPatch):
    """The text that the driver's answers make is read back as those devices."""
    monkeypatch.setattr(driver, "library", lambda: Driver(0))
    one, two = (Gpu(f"GPU {n}", (75, 76), 16, n << 32, 38, 97) for n in (40, 41))

    assert (one, two) == parse_gpus(gpu_text())


def test_driver_that_does_not_start_has_no_devices(monkeypatch: pytest.MonkeyPatch):
    """A driver whose start fails (no device, a fork) gives no devices."""
    monkeypatch.setattr(driver, "library", lambda: Driver(3))

    assert "" == gpu_text()
