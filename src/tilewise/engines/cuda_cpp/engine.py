"""The CUDA C++ engine: says what it can build, builds it, loads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from tilewise.device.nvrtc import compiled_both
from tilewise.engines.base import Run
from tilewise.engines.cuda_cpp.source import (
    ENTRY,
    PLAIN,
    TILES,
    Tile,
    kernel_source,
    tile_of,
)
from tilewise.engines.gpu.image import Compiled, checked
from tilewise.engines.gpu.launch import Plan, cuda_run
from tilewise.engines.gpu.params import Face, parameters
from tilewise.engines.gpu.reasons import general_reason, shared_reason
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant

__all__ = ["CudaCppEngine"]

FLAGS = ("-std=c++17", "--ptxas-options=-v")
STAGES = 2


class CudaCppEngine:
    """Builds CUBIN and PTX from one source with NVRTC, and runs without it."""

    name = "cuda_cpp"
    toolchain = ("cuda-bindings", "nvidia-cuda-nvrtc")
    methods = ("naive", "simt")

    def variants(self, problem: Problem, target: Target) -> tuple[Variant, ...]:
        """Return the methods with their configurations, the simplest first."""
        tiles = (Variant("cuda_cpp", "simt", (("tile", name),)) for name in TILES)
        return (Variant("cuda_cpp", "naive"), *tiles)

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        """Return why a variant cannot serve a problem, or None."""
        reason = general_reason(problem, target)
        if reason is not None or variant.method == "naive":
            return reason
        return shared_reason(shared_bytes(problem, tile_of(variant)), target)

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        """Return the spec that a run follows and the whole source with its types."""
        return (
            ("variant", str(variant)),
            ("spec", problem.spec.digest),
            ("source", kernel_source(problem, variant)),
            ("types", repr(parameters(problem))),
        )

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        """Compile with NVRTC; raises EngineError with the compiler's log."""
        source = kernel_source(problem, variant)
        name = f"{variant.method}.cu"
        started = time.perf_counter()
        image, ptx = compiled_both(source, target.arch, FLAGS, name=name)
        took_ms = 1e3 * (time.perf_counter() - started)
        made = plan(variant, problem)
        entries = tuple(dict.fromkeys((made.entry, made.plain)))
        compiled = Compiled(image.code, ptx, entries, image.log, made.shared_bytes)
        return checked(compiled, target.arch, str(variant), self.toolchain, took_ms)

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        """Load an artifact on the chosen device; EngineError where it refuses."""
        return cuda_run(artifact, problem, plan(variant, problem))


def plan(variant: Variant, problem: Problem) -> Plan:
    """Return how a variant's kernel is launched."""
    if variant.method == "naive":
        return Plan(16, 16, (16, 16, 1), ENTRY, ENTRY)
    tile = tile_of(variant)
    rows, columns, _ = tile.sides
    return Plan(
        rows,
        columns,
        (tile.threads, 1, 1),
        ENTRY,
        PLAIN,
        shared_bytes(problem, tile),
        alignment(problem),
    )


def shared_bytes(problem: Problem, tile: Tile) -> int:
    """Return the bytes of all stages of both tiles, as `Factor::SIZE` has them."""
    item = np.dtype(problem.spec.product_dtype).itemsize
    (bm, bn, bk), (x, w) = tile.sides, problem.forms[:2]
    pad = 16 // item
    x_size = bm * (bk + pad) if x.layout != "F" else bk * bm
    w_size = bn * (bk + pad) if w.layout == "F" else bk * bn
    return STAGES * (x_size + w_size) * item


def alignment(problem: Problem) -> Callable[[Sequence[Face]], bool]:
    """
    Return what says whether 16 bytes can be loaded and stored at once.

    They can where every line starts at a multiple of 16 bytes and has whole ones.
    """
    spec, (x, w) = problem.spec, problem.forms[:2]
    unit = 16 // np.dtype(spec.product_dtype).itemsize
    factors = [
        (at, 0 if form.layout == "F" else 1)
        for at, form in enumerate((x, w))
        if form.layout != "S"
    ]
    same = np.dtype(spec.dtype).itemsize == np.dtype(spec.product_dtype).itemsize
    packed_out = w.layout != "F" and same

    def aligned(faces: Sequence[Face]) -> bool:
        out = faces[-1]
        if packed_out and not (out.strides[1] == 1 and out.in_units(1, unit)):
            return False
        return all(faces[at].in_units(axis, unit) for at, axis in factors)

    return aligned
