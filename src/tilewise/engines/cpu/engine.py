"""The CPU engine: NumPy's product and one compiled pass, or a small kernel."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.device import native
from tilewise.engines.base import Run
from tilewise.engines.cpu.source import in_place, kernel_for
from tilewise.engines.render import unrendered
from tilewise.errors import EngineError
from tilewise.model.problem import Problem, scalar_values, viewed_array
from tilewise.model.spec import Spec
from tilewise.model.variant import Artifact, Target, Variant

__all__ = ["CpuEngine"]

FUSED = ("float32", "float64")
SMALL_WORK = 1 << 21
"""Multiply-adds above which the small kernel is not worth a measurement."""
ROW_BYTES = 1 << 16
"""The longest scratch row that is taken from the stack."""


class CpuEngine:
    """Builds native objects with numba and runs them without it."""

    name = "cpu"
    toolchain = ("numba", "llvmlite")

    def variants(self, problem: Problem, target: Target) -> tuple[Variant, ...]:
        """Return the methods, the simplest first."""
        return (Variant("cpu", "blas_serial"), Variant("cpu", "small"))

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        """Return why a method cannot serve a problem, or None."""
        reason = general_reason(problem)
        if reason is not None:
            return reason
        if variant.method == "blas_serial":
            return "there is no epilogue to fuse" if problem.spec.is_identity else None
        work = problem.m * problem.n * problem.k
        if work > SMALL_WORK:
            return f"m*n*k={work} is over {SMALL_WORK}"
        size = np.dtype(problem.spec.product_dtype).itemsize * problem.n
        return f"n={problem.n} is too long for one row" if size > ROW_BYTES else None

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        """Return the source, its types and where the parameters come from."""
        kernel = kernel_for(problem, variant.method, arity(problem))
        return (
            ("variant", str(variant)),
            ("source", kernel.source),
            ("types", " ".join(kernel.types)),
            ("values", repr(kernel.values)),
            ("math", mathlib_digest()),
        )

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        """Compile with numba; raises EngineError with the compiler's words."""
        from tilewise.engines.cpu.compile import object_code

        kernel = kernel_for(problem, variant.method, arity(problem))
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
            build_ms=1e3 * (time.perf_counter() - started),
        )

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        """Load the object and put NumPy's product before it where it is wanted."""
        call = native.load(artifact.code)
        prelude = computed(problem.spec)
        if variant.method == "small":
            return call if prelude is None else with_scalars(call, prelude)
        return with_product(call, prelude, problem)


def general_reason(problem: Problem) -> str | None:
    """Return why generated CPU code cannot serve a problem, whatever the method."""
    if problem.residency != "host":
        return "the arguments live on a device"
    if not native.is_gil_build():
        return "this Python has no GIL, which the call wrappers assume"
    for operand, form in zip(
        (problem.spec.x, problem.spec.w), problem.forms[:2], strict=True
    ):
        if form.dtype not in FUSED:
            return f"{operand.name} is {form.dtype}; float32 and float64 are fused"
    x, w = problem.forms[:2]
    if x.dtype != w.dtype:
        return f"the factors are {x.dtype} and {w.dtype}, not of one dtype"
    return unrendered(problem.spec)


def arity(problem: Problem) -> int:
    """Return the number of the kernel's arguments that precede `out`."""
    return problem.spec.arity


def mathlib_digest() -> str:
    """Return a digest of the functions that kernels call."""
    import inspect

    from tilewise.engines.cpu import mathlib

    text = inspect.getsource(mathlib).encode()
    return hashlib.sha256(text, usedforsecurity=False).hexdigest()


def computed(spec: Spec) -> Callable[[Any], list[Any]] | None:
    """Return what computes a call's scalars, or None where all are arguments."""
    if all(scalar.direct >= 0 for scalar in spec.scalars):
        return None
    wanted = [i for i, scalar in enumerate(spec.scalars) if scalar.direct < 0]

    def values(args: Any) -> list[Any]:
        found = scalar_values(spec, args)
        return [found[i] for i in wanted]

    return values


def with_scalars(call: Run, prelude: Callable[[Any], list[Any]]) -> Run:
    """Append the computed scalars to a call."""
    return lambda *args: call(*args, *prelude(args))


def with_product(
    call: Run, prelude: Callable[[Any], list[Any]] | None, problem: Problem
) -> Run:
    """Put NumPy's product before the compiled pass."""
    spec, matmul, empty = problem.spec, np.matmul, np.empty
    x_at, w_at, dtype = spec.x.position, spec.w.position, spec.product_dtype
    plain = not (spec.x.view or spec.w.view) and prelude is None
    if in_place(problem) and plain:

        def fast(*args: Any) -> Any:
            matmul(args[x_at], args[w_at], out=args[-1])
            return call(*args)

        return fast

    inside = in_place(problem)

    def general(*args: Any) -> Any:
        x, w = viewed_array(spec.x, args[x_at]), viewed_array(spec.w, args[w_at])
        extra = prelude(args) if prelude is not None else []
        if inside:
            matmul(x, w, out=args[-1])
            return call(*args, *extra)
        product = empty((x.shape[0], w.shape[1]), dtype)
        matmul(x, w, out=product)
        return call(*args, *extra, product)

    return general
