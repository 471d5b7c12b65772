"""The CPU engine: native objects made with numba and run without it."""

from __future__ import annotations

import hashlib
import pkgutil
import time
from functools import cache

import numpy as np

from tilewise.device import native
from tilewise.engines.base import Run
from tilewise.engines.cpu.micro import Block, block_of, micro_ir
from tilewise.engines.cpu.runs import BoundLater, after_blas, over_panels, with_scalars
from tilewise.engines.cpu.source import Kernel, kernel_for
from tilewise.engines.render import unrendered
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant

__all__ = ["CpuEngine"]

PACKAGE = "tilewise.engines.cpu"
FUSED = ("float32", "float64")
SMALL_WORK = 1 << 24
"""Multiply-adds above which the small kernel is not worth a measurement."""
SMALL_DEPTH = 1 << 15
"""
The k above which nothing is tried. The rule is older than sums in parts of 256: with
equal numbers in float32 these are off by 9e-7 here and by 2e-5 at 1 << 20, as NumPy's.
"""
STACK_BYTES = 1 << 18
"""The largest w, padded by a panel's columns, that the small kernel packs there."""
PADDING = 32
PANEL_BYTES = 1 << 22
"""The largest panel of w that a thread packs: k is too deep for more."""
THREADED_ELEMENTS = 1 << 16
THREADED_WORK = 1 << 22
"""Elements and multiply-adds below which a second thread is not woken in time."""
ALONE_WORK = 1 << 27
"""Multiply-adds above which one thread is not tried where there are more."""


class CpuEngine:
    """Builds native objects with numba and runs them without it."""

    name = "cpu"
    toolchain = ("numba", "llvmlite")
    methods = ("blas_serial", "blas_parallel", "small", "packed")

    def variants(self, problem: Problem, target: Target) -> tuple[Variant, ...]:
        """Return the methods, the simplest first; threaded ones where threads are."""
        found = [Variant("cpu", "blas_serial"), Variant("cpu", "small")]
        counts = dict.fromkeys((1, target.units))
        found += [Variant("cpu", "packed", (("threads", n),)) for n in counts]
        if target.units > 1:
            parallel = Variant("cpu", "blas_parallel", (("threads", target.units),))
            found.insert(1, parallel)
        return tuple(found)

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        """Return why a method cannot serve a problem, or None."""
        return general_reason(problem) or REASONS[variant.method](variant, problem)

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        """Return the source, its types and where the parameters come from."""
        kernel = kernel_of(variant, problem, target)
        return (
            ("variant", str(variant)),
            ("micro", "" if kernel.block is None else micro_ir(kernel.block)),
            ("source", kernel.source),
            ("types", " ".join(kernel.types)),
            ("values", repr(kernel.values)),
            ("math", mathlib_digest()),
        )

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        """Compile with numba; raises EngineError with the compiler's words."""
        from tilewise.engines.cpu.compile import object_code, versions

        kernel = kernel_of(variant, problem, target)
        started = time.perf_counter()
        try:
            code = object_code(kernel, target.triple, target.arch, target.features)
        except Exception as error:
            raise EngineError(f"{variant} does not compile: {error}") from error
        return Artifact(
            "object",
            native.ENTRY,
            code,
            arch=target.arch,
            variant=str(variant),
            resources=resources_of(kernel),
            toolchain=versions(),
            build_ms=1e3 * (time.perf_counter() - started),
        )

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        """Load the object and put around it what Python does at each call."""
        call, threads = native.load(artifact.code), threads_of(variant)
        if variant.method == "small":
            return with_scalars(call, problem.spec)
        if variant.method == "packed":
            figures = dict(artifact.resources)
            dtype = problem.spec.product_dtype
            block = Block(dtype, figures["lanes"], figures["rows"])
            made = BoundLater if is_bound(variant, problem) else over_panels
            return made(call, problem, threads, block)
        return after_blas(call, problem, threads)


def kernel_of(variant: Variant, problem: Problem, target: Target) -> Kernel:
    """Write a variant's kernel."""
    block = block_of(target, problem.spec.product_dtype)
    method = "bound" if is_bound(variant, problem) else variant.method
    return kernel_for(problem, method, block)


def is_bound(variant: Variant, problem: Problem) -> bool:
    """Say whether w is a constant that is packed once, when a kernel is bound."""
    return variant.method == "packed" and problem.spec.w.position in problem.constants


def resources_of(kernel: Kernel) -> tuple[tuple[str, int], ...]:
    """Return the figures that loading needs again."""
    block = kernel.block
    return () if block is None else (("lanes", block.lanes), ("rows", block.rows))


def threads_of(variant: Variant) -> int:
    """Return the threads that a variant uses."""
    return int(dict(variant.config).get("threads", 1))


def general_reason(problem: Problem) -> str | None:
    """Return why generated CPU code cannot serve a problem, whatever the method."""
    if problem.residency != "host":
        return "the arguments live on a device"
    if not native.is_gil_build():
        return "this Python has no GIL, which the call wrappers assume"
    factors = (problem.spec.x, problem.spec.w)
    for operand, form in zip(factors, problem.forms[:2], strict=True):
        if form.dtype not in FUSED:
            return f"{operand.name} is {form.dtype}; float32 and float64 are fused"
    x, w = problem.forms[:2]
    if x.dtype != w.dtype:
        return f"the factors are {x.dtype} and {w.dtype}, not of one dtype"
    return unrendered(problem.spec)


def serial_reason(variant: Variant, problem: Problem) -> str | None:
    """Return why a compiled pass after NumPy's product is of no use."""
    return "there is no epilogue to fuse" if problem.spec.is_identity else None


def parallel_reason(variant: Variant, problem: Problem) -> str | None:
    """Return why that pass is not for several threads."""
    elements = problem.m * problem.n
    if elements < THREADED_ELEMENTS:
        return f"m*n={elements} is under {THREADED_ELEMENTS}, too little for threads"
    return serial_reason(variant, problem)


def small_reason(variant: Variant, problem: Problem) -> str | None:
    """Return why a problem is too large for the small kernel."""
    work = problem.m * problem.n * problem.k
    if work > SMALL_WORK:
        return f"m*n*k={work} is over {SMALL_WORK}"
    if problem.k > SMALL_DEPTH:
        return f"k={problem.k} is over {SMALL_DEPTH}, too deep for a single sum"
    size = np.dtype(problem.spec.product_dtype).itemsize
    size *= (problem.k + PADDING) * (problem.n + PADDING)
    if problem.forms[1].layout != "C" and size > STACK_BYTES:
        return f"w takes {size} bytes to pack, over the {STACK_BYTES} of the stack"
    return None


def packed_reason(variant: Variant, problem: Problem) -> str | None:
    """Return why a product over packed panels is of no use."""
    work, threads = problem.m * problem.n * problem.k, threads_of(variant)
    if threads > 1 and max(work, 16 * problem.m * problem.n) < THREADED_WORK:
        return f"m*n*k={work} is under {THREADED_WORK}, too little for threads"
    if threads == 1 and work > ALONE_WORK:
        return f"m*n*k={work} is over {ALONE_WORK}, too much for one thread"
    size = np.dtype(problem.spec.product_dtype).itemsize * problem.k * 32
    if size > PANEL_BYTES:
        return f"k={problem.k} is too deep for a panel of {PANEL_BYTES} bytes"
    return None


REASONS = {
    "blas_serial": serial_reason, "blas_parallel": parallel_reason,
    "small": small_reason, "packed": packed_reason,
}  # fmt: skip


@cache
def mathlib_digest() -> str:
    """Return a digest of the functions that kernels call, and of how they compile."""
    names = ("mathlib", "angles", "exponentials", "logarithms", "compile")
    files = (pkgutil.get_data(PACKAGE, f"{name}.py") for name in names)
    text = b"".join(file or b"" for file in files)
    return hashlib.sha256(text, usedforsecurity=False).hexdigest()
