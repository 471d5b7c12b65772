"""From MODULE:NAME on the command line to kernels, and from MxNxK to sizes."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from tilewise.api.kernel import TunedKernel
from tilewise.errors import ArgumentError

__all__ = ["kernels_of", "one_kernel", "sizes_of"]

Kernel = TunedKernel[Any, Any]


def kernels_of(text: str) -> list[Kernel]:
    """
    Return the kernel that MODULE:NAME names, or all of a MODULE.

    MODULE is a dotted name or a path that ends in .py. Raises ArgumentError naming
    what there is none of, and what there is.
    """
    place, _, name = text.partition(":")
    module = imported(place)
    found = {k: v for k, v in vars(module).items() if isinstance(v, TunedKernel)}
    if not name:
        if not found:
            raise ArgumentError(f"{place} has no tuned kernels")
        return list(found.values())
    if name not in found:
        known = ", ".join(found) or "none"
        raise ArgumentError(f"{place} has no kernel {name!r}; it has {known}")
    return [found[name]]


def one_kernel(text: str) -> Kernel:
    """Return the kernel that MODULE:NAME names; raises ArgumentError without NAME."""
    if ":" not in text:
        raise ArgumentError(f"{text!r}: name one kernel as MODULE:NAME")
    return kernels_of(text)[0]


def imported(place: str) -> Any:
    """Import a module by dotted name or by path."""
    path = Path(place)
    if path.suffix == ".py":
        if not path.is_file():
            raise ArgumentError(f"there is no file {place}")
        sys.path.insert(0, str(path.resolve().parent))
        place = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise ArgumentError(f"can't import {place}: {error}") from error


def sizes_of(text: str) -> list[tuple[int, int, int]]:
    """
    Read MxNxK[,MxNxK...] into (m, n, k).

    Raises ArgumentError showing the part that is not three sizes.
    """
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)x(\d+)x(\d+)\s*", part)
        if match is None:
            raise ArgumentError(f"{part!r} is not MxNxK, such as 128x64x32")
        m, n, k = map(int, match.groups())
        found.append((m, n, k))
    return found
