"""Kernel source to PTX with numba-cuda, and PTX to CUBIN with nvJitLink."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tilewise.device.forking import held_over_forks
from tilewise.engines.gpu.image import Compiled
from tilewise.engines.gpu.params import Param
from tilewise.engines.numba_cuda.mathlib import namespace

__all__ = ["compiled", "linked"]

LOCK = held_over_forks()
"""numba compiles one kernel at a time anyway, and its registries are not locked."""


def compiled(source: str, params: Sequence[Param], arch: str, threads: int) -> Compiled:
    """
    Compile a kernel for an architecture; needs no GPU and no driver.

    `threads` of a block bound the registers of one.

    Raises what numba or nvJitLink raises.
    """
    with LOCK:
        ptx = to_ptx(source, params, arch, threads)
    entry = re.search(r"\.entry\s+([\w$]+)", ptx)
    if entry is None:
        raise ValueError("numba gave PTX without an entry")
    cubin, log = linked(ptx, arch)
    return Compiled(cubin, ptx.encode(), (entry[1],), log)


def to_ptx(source: str, params: Sequence[Param], arch: str, threads: int) -> str:
    """Compile to PTX: pointers and numbers, no arrays of numba's own."""
    from numba import cuda, types

    space = {**namespace(), "cuda": cuda, "inf": math.inf, "nan": math.nan}
    for name in ("int32", "int64", "float32", "float64"):
        space[name] = getattr(types, name)
    exec(compile(source, "<tilewise kernel>", "exec"), space)
    digits = re.sub(r"\D", "", arch)
    ptx, _ = cuda.compile(
        space["kernel"],
        types.void(*(numba_type(types, param) for param in params)),
        cc=(int(digits[:-1]), int(digits[-1])),
        device=False,
        abi="numba",
        output="ptx",
        launch_bounds=threads,
    )
    return str(ptx)


def numba_type(types: Any, param: Param) -> Any:
    """Return a parameter's numba type; truth values travel as bytes."""
    kind = types.uint8 if param.dtype == "bool" else getattr(types, param.dtype)
    return types.CPointer(kind) if param.pointer else kind


def linked(ptx: str, arch: str) -> tuple[bytes, str]:
    """
    Link PTX to a CUBIN; returns it and the log of ptxas -v.

    The object of cuda.core is left at once: without a driver its second `repr`
    deadlocks.
    """
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=arch, ptxas_options=["-v"])
    linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
    cubin = bytes(linker.link("cubin").code)
    return cubin, str(linker.get_info_log())
