"""From MODULE:NAME on the command line to kernels, and from MxNxK to sizes."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any

from tilewise.api.kernel import TunedKernel
from tilewise.api.method import MethodCall, kernel_of_class
from tilewise.api.modules import imported
from tilewise.errors import ArgumentError

__all__ = ["kernels_of", "one_kernel", "sizes_of"]

Kernel = TunedKernel[Any, Any]


def kernels_of(text: str) -> list[Kernel]:
    """
    Return the kernel that MODULE:NAME names, or all of a MODULE.

    MODULE is a dotted name or a path that ends in .py; NAME may be Class.method.
    Raises ArgumentError naming what there is none of, and what there is.
    """
    place, _, name = text.partition(":")
    module = imported(place)
    found = {k: v for k, v in vars(module).items() if isinstance(v, TunedKernel)}
    if "." in name:
        return [method_of(module, place, name)]
    if not name:
        if not found:
            raise ArgumentError(f"{place} has no tuned kernels")
        return list(found.values())
    if name not in found:
        known = ", ".join(found) or "none"
        raise ArgumentError(f"{place} has no kernel {name!r}; it has {known}")
    return [found[name]]


def method_of(module: Any, place: str, name: str) -> Kernel:
    """Return the kernel of a method, named as Class.method."""
    path, _, last = name.rpartition(".")
    try:
        owner = attrgetter(path)(module)
        method = getattr(owner, last)
    except AttributeError as error:
        raise ArgumentError(f"{place} has no kernel {name!r}: {error}") from error
    if isinstance(method, MethodCall):
        raise ArgumentError(f"{name} is a method of an instance: name its class")
    if not isinstance(method, TunedKernel):
        raise ArgumentError(f"{place}:{name} is no tuned kernel")
    return kernel_of_class(method, owner) if isinstance(owner, type) else method


def one_kernel(text: str) -> Kernel:
    """Return the kernel that MODULE:NAME names; raises ArgumentError without NAME."""
    if ":" not in text:
        raise ArgumentError(f"{text!r}: name one kernel as MODULE:NAME")
    return kernels_of(text)[0]


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
