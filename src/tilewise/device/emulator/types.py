"""
Name the PTX scalar types and the NumPy dtypes that hold them.

Source: PTX ISA, "Fundamental Types" and "Packed Floating Point Data Types". NumPy
has no bfloat16: `bf16` is held as its 16 bits, and so are packed pairs as 32.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["DTYPES", "is_float", "is_signed", "size_of", "widened"]

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "pred": np.dtype(np.bool_),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "tf32": np.dtype(np.uint32),
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16)},
    **{
        f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (32, 64)
    },
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
}


def size_of(name: str) -> int:
    """Return the size of a type in bytes; predicates count as one."""
    return DTYPES[name].itemsize


def is_float(name: str) -> bool:
    """Tell floating-point types, packed ones included, from integers and bits."""
    return "f" in name


def is_signed(name: str) -> bool:
    """Tell the signed integer types."""
    return name[0] == "s"


def widened(name: str) -> str:
    """Return the integer type of the same kind and twice the size."""
    return f"{name[0]}{16 * size_of(name)}"
