"""Choose the device that CUDA work goes to: a GPU, the emulated one, or none."""

from __future__ import annotations

from functools import cache

from tilewise.device.driver import gpus
from tilewise.device.seam import Device
from tilewise.errors import EngineError
from tilewise.settings import current_device

__all__ = ["chosen_device"]


def chosen_device() -> Device | None:
    """
    Return the device that TILEWISE_DEVICE names, the same one each time.

    "auto" is the first GPU or None, "none" is None, "emulated" is NumPy. Raises
    SettingError for another value and EngineError where a GPU can't be used.
    """
    setting = current_device()
    if setting == "emulated":
        return _emulated()
    if setting == "none" or not gpus():
        return None
    found = _gpu()
    if isinstance(found, EngineError):
        raise found
    return found


@cache
def _emulated() -> Device:
    from tilewise.device.emulator.device import EmulatedDevice

    return EmulatedDevice()


@cache
def _gpu() -> Device | EngineError:
    """Return the first GPU, or why it can't be used, which is not asked again."""
    from tilewise.device.cuda import CudaDevice

    try:
        return CudaDevice()
    except EngineError as error:
        return error
