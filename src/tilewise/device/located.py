"""Where a device array lies, by attributes alone: no library is imported for it."""

from __future__ import annotations

from typing import Any

__all__ = ["device_number", "is_located", "located"]


def is_located(array: Any) -> bool:
    """Say whether `located` takes a value: it is CuPy's, or has the interface."""
    of_cupy = type(array).__module__ == "cupy"  # whose interface is slow to ask for
    return of_cupy or hasattr(array, "__cuda_array_interface__")


def located(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, Any]:
    """
    Return address, shape, strides in bytes (None is C order) and dtype of an array.

    CuPy's interface makes a dictionary and asks for a stream; its attributes tell the
    same in a quarter of the time.
    """
    if type(array).__module__ == "cupy":
        return array.data.ptr, array.shape, array.strides, array.dtype
    face = array.__cuda_array_interface__
    return face["data"][0] or 0, face["shape"], face.get("strides"), face["typestr"]


def device_number(array: Any) -> int:
    """Return the number of an array's GPU, as CuPy (`id`) and torch (`index`) say."""
    device = getattr(array, "device", None)
    number = getattr(device, "id", None)
    number = getattr(device, "index", None) if number is None else number
    return number if isinstance(number, int) else 0
