"""From MODULE:NAME on the command line to kernels, and from MxNxK to sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from tilewise.api.kernel import TunedKernel
from tilewise.api.method import MethodCall, kernel_of_class
from tilewise.api.modules import imported
from tilewise.errors import ArgumentError

__all__ = [
    "Kernel",
    "kernels_of",
    "one_kernel",
    "points_of",
    "ranges_of",
    "sizes_of",
]

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


def points_of(text: str, axes: Sequence[str]) -> list[dict[str, int]]:
    """
    Read sizes such as MxNxK[,MxNxK...] by axis.

    Raises ArgumentError showing the part that is not a size for each axis.
    """
    found = []
    for part in text.split(","):
        sizes = part.strip().split("x")
        if len(sizes) != len(axes) or not all(size.isdecimal() for size in sizes):
            form = "x".join(axis.upper() for axis in axes)
            example = "x".join(("128", "64", "32")[i % 3] for i in range(len(axes)))
            raise ArgumentError(f"{part!r} is not {form}, such as {example}")
        found.append(dict(zip(axes, map(int, sizes), strict=True)))
    return found


def sizes_of(text: str) -> list[tuple[int, int, int]]:
    """Read MxNxK[,MxNxK...] into (m, n, k); raises ArgumentError for what is none."""
    return [(p["m"], p["n"], p["k"]) for p in points_of(text, ("m", "n", "k"))]


def ranges_of(text: str) -> dict[str, int | tuple[int, int]]:
    """
    Read ranges such as m=1-4096,n=64 by axis.

    Raises ArgumentError showing the part that is no range.
    """
    found: dict[str, int | tuple[int, int]] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\w+)=(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise ArgumentError(f"{part!r} is no range, such as m=1-4096 or n=64")
        axis, low, high = match.groups()
        found[axis] = int(low) if high is None else (int(low), int(high))
    return found
