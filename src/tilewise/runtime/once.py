"""What a process makes once: its engines, and the resolver at the first miss."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from tilewise.build.build import Workshop
from tilewise.device.arch import device_target
from tilewise.device.fingerprint import hw_fingerprint
from tilewise.device.gl import gl_aside, gl_target
from tilewise.device.provenance import provenance
from tilewise.device.target import cpu_target
from tilewise.device.views import device_at
from tilewise.engines.base import Engine
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Target
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.tables import Tables
from tilewise.store.stack import open_store
from tilewise.store.warn import warn_once

__all__ = ["engines", "resolver"]

LOCK = threading.RLock()


ENGINES = {
    "cpu": "tilewise.engines.cpu.engine:CpuEngine",
    "numba_cuda": "tilewise.engines.numba_cuda.engine:NumbaCudaEngine",
    "cuda_cpp": "tilewise.engines.cuda_cpp.engine:CudaCppEngine",
    "glsl": "tilewise.engines.glsl.engine:GlslEngine",
}
"""Every engine and where it is; an engine is one row."""


class Engines(Mapping[str, Engine]):
    """The engines by name, as candidates are listed; imported when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Engine] = {}

    def __getitem__(self, name: str) -> Engine:
        if name not in self._made:
            module, _, kind = ENGINES[name].partition(":")
            self._made[name] = getattr(import_module(module), kind)()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(ENGINES)

    def __len__(self) -> int:
        return len(ENGINES)

    def __contains__(self, name: object) -> bool:
        return name in ENGINES


@functools.cache
def engines() -> Engines:
    """Return the process's engines."""
    return Engines()


def target_of(engine: str, device: int) -> Target:
    """Return what an engine builds for on this machine, or on its GPU of a number."""
    if engine == "cpu":
        return host_target()
    if engine == "glsl":
        return gl_target()
    try:
        return device_target(device_at(device))
    except EngineError as error:  # The CPU serves on: one warning says why.
        warn_once("CUDA", str(error))
        return replace(device_target(None), reason=str(error))


host_target = functools.cache(cpu_target)


def aside_of(engine: str, problem: Problem) -> str:
    """Return why an engine takes no part in a problem unless it is named, or ""."""
    return gl_aside(problem.residency) if engine == "glsl" else ""


def resolver() -> Resolver:
    """Return the process's resolver; a forked child renews its locks."""
    with LOCK:
        return made()


@functools.cache
def made() -> Resolver:
    """Make the resolver once."""
    return Resolver(
        Workshop(engines(), target_of, open_store, aside_of),
        open_store,
        functools.cache(lambda device: hw_fingerprint(device or None)),
        functools.cache(provenance),
        Tables(open_store),
    )


def fresh_lock() -> None:
    """Replace the locks, which another thread may hold in the parent."""
    global LOCK  # noqa: PLW0603 - a forked child has no other way
    LOCK = threading.RLock()
    if made.cache_info().currsize:
        made().renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fresh_lock)
