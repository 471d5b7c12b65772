"""Pack a launch's arguments into the kernel's parameter block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewise.device.emulator.program import Program
from tilewise.errors import ArgumentError

__all__ = ["parameter_block"]


def parameter_block(
    program: Program,
    args: Sequence[Any],
    address_of: Callable[[Any], int | None],
) -> bytes:
    """
    Return the bytes of all parameters at their offsets.

    Arrays and buffers become 8-byte addresses, NumPy scalars and bytes go in as they
    are. Raises ArgumentError for another number or size of arguments.
    """
    params = program.params
    if len(args) != len(params):
        raise ArgumentError(
            f"{program.name} takes {len(params)} arguments, {len(args)} were given"
        )
    block = bytearray(program.param_bytes)
    for at, (param, value) in enumerate(zip(params, args, strict=True)):
        raw = _packed(value, address_of, at)
        if len(raw) != param.nbytes:
            raise ArgumentError(
                f"argument {at} of {program.name} has {len(raw)} bytes, the parameter "
                f"{param.nbytes}: give a NumPy scalar of the kernel's type"
            )
        offset = program.offsets[param.name]
        block[offset : offset + len(raw)] = raw
    return bytes(block)


def _packed(value: Any, address_of: Callable[[Any], int | None], at: int) -> bytes:
    address = address_of(value)
    if address is not None:
        return address.to_bytes(8, "little")
    if isinstance(value, (np.generic, bytes)):
        return bytes(value) if isinstance(value, bytes) else value.tobytes()
    kind = type(value).__name__
    raise ArgumentError(
        f"argument {at} is {kind}: give a device array, a buffer or a NumPy scalar, "
        "for example np.int64(n)"
    )
