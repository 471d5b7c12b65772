"""The numba.cuda engine: says what it can build, builds it, loads it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import metadata
from types import MappingProxyType

import numpy as np

from tilewise.engines.base import Run
from tilewise.engines.gpu.image import checked
from tilewise.engines.gpu.launch import Plan, cuda_run
from tilewise.engines.gpu.params import parameters
from tilewise.engines.gpu.reasons import general_reason, shared_reason
from tilewise.engines.numba_cuda.mathlib import digest_text
from tilewise.engines.numba_cuda.source import BLOCK, kernel_source
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant

__all__ = ["NumbaCudaEngine"]

TILES = (8, 16, 32)
ROWS = (1, 2, 4)
STATIC_SHARED = 48 << 10
"""Bytes of shared memory that a kernel may declare without asking for more."""
NUMPY_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType({"0.30.": (2, 5)})
"""The first NumPy with which a release line of numba-cuda compiles nothing."""


class NumbaCudaEngine:
    """Builds PTX with numba, links it to a CUBIN, and runs it without either."""

    name = "numba_cuda"
    toolchain = ("numba-cuda", "numba", "llvmlite", "nvidia-nvvm", "nvidia-nvjitlink")
    methods = ("global", "shared")

    def variants(self, problem: Problem, target: Target) -> tuple[Variant, ...]:
        """Return the methods with their configurations, the simplest first."""
        shared = [
            Variant("numba_cuda", "shared", (("tile", tile), ("rows", rows)))
            for tile in TILES
            for rows in ROWS
        ]
        return (Variant("numba_cuda", "global"), *shared)

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        """Return why a variant cannot serve a problem, or None."""
        reason = general_reason(problem, target) or numpy_reason()
        if reason is not None or variant.method == "global":
            return reason
        config = dict(variant.config)
        needed = shared_bytes(problem, int(config["tile"]), int(config["rows"]))
        if needed > STATIC_SHARED:
            return f"{needed} bytes of shared memory are over {STATIC_SHARED}"
        return shared_reason(needed, target)

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        """Return the spec that a run follows, the source, and what it calls."""
        return (
            ("variant", str(variant)),
            ("spec", problem.spec.digest),
            ("source", kernel_source(problem, variant)),
            ("types", repr(parameters(problem))),
            ("math", digest_text()),
        )

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        """Compile with numba; raises EngineError with the compiler's words."""
        from tilewise.engines.numba_cuda.compile import compiled

        source, params = kernel_source(problem, variant), parameters(problem)
        started = time.perf_counter()
        try:
            made = compiled(source, params, target.arch, threads_of(variant))
        except Exception as error:
            raise EngineError(
                f"{variant} does not compile for {target.arch}: {error}"
            ) from error
        took_ms = 1e3 * (time.perf_counter() - started)
        return checked(made, target.arch, str(variant), self.toolchain, took_ms)

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        """Load an artifact on the chosen device; EngineError where it refuses."""
        return cuda_run(artifact, problem, plan(artifact, variant))


def threads_of(variant: Variant) -> int:
    """Return the threads of one block."""
    tile = dict(variant.config).get("tile", BLOCK)
    return int(tile) ** 2


def plan(artifact: Artifact, variant: Variant) -> Plan:
    """Return how a variant's kernel is launched."""
    entry, config = artifact.entry, dict(variant.config)
    if variant.method == "global":
        return Plan(BLOCK, BLOCK, (BLOCK, BLOCK, 1), entry, entry)
    tile, rows = int(config["tile"]), int(config["rows"])
    return Plan(tile * rows, tile, (tile, tile, 1), entry, entry)


def shared_bytes(problem: Problem, tile: int, rows: int) -> int:
    """Return the bytes of both tiles, their rows padded by one element."""
    item = np.dtype(problem.spec.product_dtype).itemsize
    return (tile * rows + tile) * (tile + 1) * item


def numpy_reason(
    numpy: str = np.__version__, installed: str | None = None
) -> str | None:
    """Return why numba-cuda can't compile with this NumPy, or None."""
    installed = numba_cuda_version() if installed is None else installed
    version = tuple(int(part) for part in numpy.split(".")[:2])
    for line, limit in NUMPY_LIMITS.items():
        if installed.startswith(line) and version >= limit:
            return (
                f"numba-cuda {installed} can't compile with NumPy {numpy}: install "
                f"numpy<{limit[0]}.{limit[1]}"
            )
    return None


def numba_cuda_version() -> str:
    """Return the installed version of numba-cuda, "" where there is none."""
    try:
        return metadata.version("numba-cuda")
    except metadata.PackageNotFoundError:
        return ""
