"""What this host is: its CPU, usable threads and BLAS; and where an array lives."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.device.cgroup import cpu_quota
from tilewise.device.cpu_text import Cpu, parse_cpu
from tilewise.settings import current

__all__ = [
    "Blas",
    "array_location",
    "blas",
    "cpu",
    "threads",
    "usable_threads",
]


def array_location(x: object) -> str:
    """
    Return "device" for anything with `__cuda_array_interface__`, else "host".

    Arrays, numbers and sequences of the host are all "host".
    """
    return "device" if hasattr(x, "__cuda_array_interface__") else "host"


@cache
def cpu() -> Cpu:
    """
    Return this host's CPU; reads one text, once a process (0.1 ms on Linux).

    Nothing is kept on disk: in a home that several machines share, one would find
    another's identity there.
    """
    found = parse_cpu(cpu_text())
    if found.name:
        return found
    import platform  # 3 ms, seldom needed

    return Cpu(platform.machine())


def cpu_text(root: Path = Path("/"), system: str = sys.platform) -> str:
    """Return the text that describes the CPU on this system, or ""."""
    try:
        if system == "darwin":
            import subprocess  # 7 ms, needed here only

            command = ["/usr/sbin/sysctl", "machdep.cpu"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.stdout
        if system == "win32":
            return os.environ.get("PROCESSOR_IDENTIFIER", "")
        return first_block(root / "proc/cpuinfo")
    except OSError:
        return ""


def first_block(path: Path) -> str:
    """Read a file up to its first empty line: 256 processors would take 10 ms."""
    lines = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.strip():
                break
            lines.append(line)
    return "".join(lines)


def usable_threads() -> int:
    """
    Return how many threads tilewise may run at a time, at least 1.

    That is the smallest of the CPUs of the process's affinity mask, the container's
    quota (rounded up) and TILEWISE_NUM_THREADS. Costs 0.1 ms; affinity and quota may
    change while a process runs, so nothing is remembered.
    """
    return threads(affinity(), cpu_quota(), current().num_threads)


def threads(affinity: int, quota: float | None, wanted: int) -> int:
    """Return the smallest of the three limits; 0 wanted threads are all."""
    limits = [affinity]
    if quota is not None:
        limits.append(math.ceil(quota))
    if wanted:
        limits.append(wanted)
    return max(1, min(limits))


def affinity() -> int:
    """Return the number of CPUs that the process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Blas:
    """
    NumPy's BLAS.

    `threads` is what it would use now, 0 where that isn't known; `core` names the
    kernels that it chose for this CPU, or is "".
    """

    name: str
    version: str
    threads: int = 0
    core: str = ""

    def __str__(self) -> str:
        """Write name, version and core: `scipy-openblas 0.3.31 Zen`."""
        return " ".join(filter(None, (self.name, self.version, self.core)))


def blas() -> Blas:
    """
    Return NumPy's BLAS with its present number of threads, in 10 us when warm.

    OpenBLAS is asked itself, so that a change at run time is seen; any other is
    believed to follow the environment.
    """
    name, version = built_with()
    library = openblas()
    core = called(library, "get_corename", ctypes.c_char_p)
    count = called(library, "get_num_threads", ctypes.c_int)
    if count is None:
        count = threads_by_environment(name, os.environ, affinity())
    return Blas(name, version, int(count), core.decode() if core else "")


@cache
def built_with() -> tuple[str, str]:
    """Return the name and version of the BLAS that NumPy was built with."""
    config: Any = np.show_config(mode="dicts")
    found = config.get("Build Dependencies", {}).get("blas", {})
    return str(found.get("name", "unknown")), str(found.get("version", ""))


@cache
def openblas() -> ctypes.CDLL | None:
    """Return the OpenBLAS that NumPy's wheel brings and has loaded, or None."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            try:
                return ctypes.CDLL(str(path))
            except OSError:
                continue
    return None


def called(library: ctypes.CDLL | None, name: str, result: Any) -> Any:
    """Call a function of OpenBLAS under any of its spellings, or return None."""
    for prefix in ("scipy_openblas_", "openblas_"):
        for suffix in ("64_", ""):
            function: Any = getattr(library, f"{prefix}{name}{suffix}", None)
            if function is not None:
                function.restype = result
                return function()
    return None


BLAS_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openblas": ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"),
    "mkl": ("MKL_NUM_THREADS", "OMP_NUM_THREADS"),
    "blis": ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
    "accelerate": ("VECLIB_MAXIMUM_THREADS",),
}


def threads_by_environment(
    name: str, environment: Mapping[str, str], affinity: int
) -> int:
    """
    Return the threads of a BLAS from its variables, in its own order of precedence.

    Without any it uses the CPUs of the affinity mask; 0 for an unknown BLAS.
    """
    for kind, variables in BLAS_VARIABLES.items():
        if kind in name.lower():
            values = (environment.get(variable, "") for variable in variables)
            wanted = [int(value) for value in values if value.isdecimal()]
            return min(next(filter(None, wanted), affinity), affinity)
    return 0
