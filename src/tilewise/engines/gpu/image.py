"""
Artifacts of CUDA engines, checked before anyone keeps them.

An empty image, one of another architecture or one without its entry is an error
here: two compilers give zero bytes without a word when an option is missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata

from tilewise.device.arch import arch_of
from tilewise.device.elf import read_cubin
from tilewise.errors import EngineError
from tilewise.model.variant import Artifact

__all__ = ["Compiled", "checked", "spilled_bytes", "versions"]

RESERVED_SHARED = 1024
"""Bytes that `.nv.shared` has on top of the kernel's own from sm_90."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a compiler gave: CUBIN, PTX, the entries, its log and dynamic shared."""

    cubin: bytes
    ptx: bytes
    entries: tuple[str, ...]
    log: str = field(default="", repr=False)
    dynamic_shared: int = 0


def checked(
    made: Compiled, arch: str, variant: str, toolchain: Sequence[str], build_ms: float
) -> Artifact:
    """
    Return the artifact of a compilation, its figures those of the first entry.

    Raises EngineError naming what is wrong with the image.
    """
    number = arch_of(arch).number
    try:
        cubin = read_cubin(made.cubin)
    except ValueError as error:
        raise EngineError(f"{variant} for {arch}: {error}") from error
    if cubin.arch != number:
        raise EngineError(f"{variant}: the image is for sm_{cubin.arch}, not {arch}")
    found = [cubin.entry(name) for name in made.entries]
    if None in found or not made.entries:
        names = ", ".join(entry.name for entry in cubin.entries) or "none"
        raise EngineError(f"{variant}: the image has not {made.entries}, but {names}")
    if b".entry" not in made.ptx:
        raise EngineError(f"{variant} for {arch}: the PTX has no entry")
    first = found[0]
    assert first is not None
    own = first.shared - (RESERVED_SHARED if number >= 90 and first.shared else 0)
    figures = (
        ("registers", first.registers),
        ("shared_bytes", own + made.dynamic_shared),
        ("spill_bytes", spilled_bytes(made.log, made.entries[0])),
        ("stack_bytes", first.stack),
        ("code_bytes", first.code),
        ("cubin_bytes", len(made.cubin)),
    )
    return Artifact(
        "cubin", made.entries[0], made.cubin, made.ptx, arch, variant, figures,
        versions(toolchain), build_ms,
    )  # fmt: skip


def spilled_bytes(log: str, entry: str) -> int:
    """Return the spill stores and loads that ptxas -v tells of an entry (bytes)."""
    start = log.find(f"'{entry}'")
    if start < 0:
        return 0
    found = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log[start:])
    return int(found[1]) + int(found[2]) if found else 0


def versions(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the exact versions of those distributions that are installed."""
    found = []
    for name in names:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)
