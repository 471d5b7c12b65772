"""
What is known of a CUDA architecture before its device is there.

Source: CUDA C++ Programming Guide 13, "Technical Specifications per Compute
Capability". A suffix (sm_90a, sm_100f) names other instructions, not other limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tilewise.device.seam import Device
from tilewise.errors import EngineError
from tilewise.model.variant import Target

__all__ = [
    "ARCHS",
    "Arch",
    "arch_of",
    "cuda_target",
    "device_target",
    "occupancy",
    "optin_bytes",
]

REGISTERS = 65536
"""32-bit registers of a multiprocessor, on every architecture below."""
WARP_REGISTERS = 256
"""Registers are given to a warp in units of this many."""
SYSTEM_SHARED = 1024
"""Shared bytes that the system takes of each block from sm_80."""


@dataclass(frozen=True, slots=True)
class Arch:
    """
    An architecture's limits.

    `block_shared` bytes are a block's (opt-in), `shared` a multiprocessor's, which
    holds `threads` and `blocks`.
    """

    number: int
    block_shared: int
    shared: int
    threads: int
    blocks: int


def rows() -> dict[int, Arch]:
    """Return the table by number: KiB of a block, of an SM, threads, blocks."""
    table = {
        75: (64, 64, 1024, 16),
        80: (163, 164, 2048, 32),
        86: (99, 100, 1536, 16),
        87: (163, 164, 1536, 16),
        88: (163, 164, 1536, 16),
        89: (99, 100, 1536, 24),
        90: (227, 228, 2048, 32),
        100: (227, 228, 2048, 32),
        103: (227, 228, 2048, 32),
        110: (227, 228, 1536, 24),
        120: (99, 100, 1536, 24),
        121: (99, 100, 1536, 24),
    }
    return {n: Arch(n, r[0] << 10, r[1] << 10, *r[2:]) for n, r in table.items()}


ARCHS: Mapping[int, Arch] = MappingProxyType(rows())


def optin_bytes(compute_capability: tuple[int, int]) -> int:
    """Return the shared bytes of a block on a device, the least for an unknown one."""
    major, minor = compute_capability
    known = ARCHS.get(10 * major + minor)
    return known.block_shared if known else 64 << 10


def arch_of(name: str) -> Arch:
    """Return an architecture by name; raises EngineError listing those known."""
    found = re.fullmatch(r"sm_(\d+)[af]?", name)
    arch = ARCHS.get(int(found[1])) if found else None
    if arch is None:
        known = ", ".join(f"sm_{number}" for number in ARCHS)
        raise EngineError(f"the architecture {name!r} is not known; known are {known}")
    return arch


def cuda_target(name: str) -> Target:
    """Return the target of an architecture that need not be here."""
    return Target("cuda", name, shared_bytes=arch_of(name).block_shared)


def device_target(device: Device | None) -> Target:
    """Return the target of a device; without one its `arch` is empty."""
    if device is None:
        return Target("cuda", "", reason="there is no CUDA device here")
    found = device.properties
    major, minor = found.compute_capability
    return Target(
        "cuda",
        f"sm_{major}{minor}",
        units=found.sm_count,
        shared_bytes=found.shared_bytes_optin,
    )


def occupancy(arch: Arch, threads: int, registers: int, shared: int) -> float:
    """
    Return the share of an SM's threads that blocks of this kind can fill.

    `threads` of one block, `registers` of one thread, `shared` bytes of one block.
    """
    warps = -(-threads // 32)
    unit = -(-registers * 32 // WARP_REGISTERS) * WARP_REGISTERS
    reserved = SYSTEM_SHARED if arch.number >= 80 else 0
    fits = (
        arch.threads // (warps * 32),
        arch.blocks,
        REGISTERS // unit // warps if registers else arch.blocks,
        arch.shared // (shared + reserved) if shared + reserved else arch.blocks,
    )
    return min(fits) * warps * 32 / arch.threads
