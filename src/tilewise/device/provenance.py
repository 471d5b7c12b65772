"""The versions that a measurement or an artifact was made with."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tilewise.device.driver import driver_version
from tilewise.device.fingerprint import visible_gpus
from tilewise.device.host import blas
from tilewise.device.installed import installed_version
from tilewise.model.measurement import Provenance

__all__ = ["provenance", "provenance_changed"]

DISTRIBUTIONS = (
    ("numpy", ("numpy",)),
    ("numba", ("numba",)),
    ("llvmlite", ("llvmlite",)),
    ("cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
    ("numba-cuda", ("numba-cuda",)),
    ("runtime", ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")),
)
CODE = (".py", ".cuh", ".glsl")
"""How files of code end: Python, and the texts that kernels are made of."""
MODULE_VERSION = Path("/sys/module/nvidia/version")


def provenance() -> Provenance:
    """
    Return (field, version) pairs, sorted by field; "" where there is none.

    The fields are blas, cupy, driver, gpu, llvmlite, numba, numba-cuda, numpy,
    python, runtime and tilewise (with a digest of its code). Versions come from the
    distributions' metadata: nothing is imported. 2 ms when warm, 30 ms at first.
    """
    fields = {name: installed(names) for name, names in DISTRIBUTIONS}
    fields["python"] = platform.python_version()
    fields["blas"] = str(blas())
    present = visible_gpus()
    fields["gpu"] = "; ".join(map(str, present))
    fields["driver"] = driver() if present else ""
    fields["tilewise"] = f"{installed(('tilewise',))}+{code_digest()}"
    return tuple(sorted(fields.items()))


def provenance_changed(
    old: Provenance | Mapping[str, str | None] | None,
    new: Provenance | Mapping[str, str | None] | None,
) -> dict[str, tuple[str | None, str | None]]:
    """
    Return the fields that differ, sorted, each with its old and its new value.

    A field that only one side has, or that is None there, has changed: not knowing
    what something was made with is no proof that it was made with the same.
    """
    before, after = dict(pairs(old)), dict(pairs(new))
    names = sorted({*before, *after})
    both = {name: (before.get(name), after.get(name)) for name in names}
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def pairs(
    given: Provenance | Mapping[str, str | None] | None,
) -> Iterable[tuple[str, str | None]]:
    """Return the pairs of a provenance in any of its forms."""
    if given is None:
        return ()
    return given.items() if isinstance(given, Mapping) else given


def installed(names: tuple[str, ...]) -> str:
    """Return the version of the first distribution that is installed, or ""."""
    return next(filter(None, map(installed_version, names)), "")


@cache
def driver() -> str:
    """Return the driver's CUDA version, with its own where the system tells it."""
    try:
        release = MODULE_VERSION.read_text(encoding="ascii").strip()
    except OSError:
        return driver_version()
    return f"{driver_version()} ({release})"


@cache
def code_digest() -> str:
    """Return 12 hexadecimal digits over all of tilewise's own source files."""
    root = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - 5 times faster
    hashed, names = hashlib.sha256(usedforsecurity=False), []
    for folder, _, files in os.walk(root):
        names += [f"{folder}/{name}" for name in files if name.endswith(CODE)]
    for name in sorted(names):
        with open(name, "rb") as file:  # noqa: PTH123
            code = file.read()
        hashed.update(f"{name[len(root) :]} {len(code)}\n".encode())
        hashed.update(code)
    return hashed.hexdigest()[:12]
