"""
The run of NVIDIA's persistentProgramCache sample on the engine at hand.

It builds `C = epilogue(A @ B + bias)` or finds it in the store, runs it, checks it
against NumPy and prints what each step took.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.build.build import Counts, Prepared
from tilewise.errors import ArgumentError
from tilewise.model.problem import Problem
from tilewise.model.variant import Variant
from tilewise.runtime.process import resolver
from tilewise.runtime.question import Options, Subject, ask

__all__ = ["EPILOGUES", "DemoReport", "run_demo"]

SEED = 123
RTOL = ATOL = 1e-3


def identity(a: Any, b: Any, bias: Any) -> Any:
    """Add the bias."""
    return a @ b + bias


def relu(a: Any, b: Any, bias: Any) -> Any:
    """Add the bias and bound below by zero; NaN stays NaN."""
    return np.maximum(a @ b + bias, 0)


EPILOGUES: dict[str, Callable[..., Any]] = {"identity": identity, "relu": relu}


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The sample's fields; times in milliseconds, None where a step was skipped."""

    title: str
    device: str
    compute_capability: str
    cache_directory: str
    workload: str
    matrix_sizes: str
    tile_size: str
    timed_launches: int
    variant: str
    cache_status: str
    cache_key: str
    artifact_kib: float
    cache_lookup_ms: float
    compile_ms: float | None
    cache_store_ms: float | None
    module_load_ms: float
    host_preparation_ms: float
    kernel_ms: float
    max_error: float
    validation: str

    def lines(self) -> list[tuple[str, str]]:
        """Return the (label, text) lines that are printed."""
        rows = [
            ("Device", self.device),
            ("Compute Capability", self.compute_capability),
            ("Cache directory", self.cache_directory),
            ("Workload", self.workload),
            ("Matrix sizes", self.matrix_sizes),
            ("Tile size", self.tile_size),
            ("Timed launches", str(self.timed_launches)),
            ("Variant", self.variant),
            ("Cache status", self.cache_status),
            ("Cache key", f"{self.cache_key[:24]}..."),
            ("Artifact size", f"{self.artifact_kib:.1f} KiB"),
            ("Cache lookup", f"{self.cache_lookup_ms:.3f} ms"),
            ("Compile time", milliseconds(self.compile_ms)),
        ]
        if self.cache_store_ms is not None:
            rows.append(("Cache store", f"{self.cache_store_ms:.3f} ms"))
        return [
            *rows,
            ("Module load", f"{self.module_load_ms:.3f} ms"),
            ("Host prep time", f"{self.host_preparation_ms:.3f} ms"),
            ("Kernel time", f"{self.kernel_ms:.4f} ms (median)"),
            ("Max error", f"{self.max_error:.3e}"),
            ("Validation", self.validation),
        ]


def milliseconds(value: float | None) -> str:
    """Write a time, or that the step was skipped."""
    return "skipped" if value is None else f"{value:.1f} ms"


def run_demo(
    sizes: tuple[int, int, int],
    epilogue: str,
    engine: str,
    tile_size: int | None,
    launches: tuple[int, int],
) -> DemoReport:
    """
    Build or load one variant for sizes (m, n, k), time and check it.

    `launches` are the warm-up and the timed runs. Raises ArgumentError for an
    engine or a tile size that there is none of.
    """
    function = EPILOGUES[epilogue]
    subject = Subject(function, f"demo {epilogue}", ("a", "b", "bias"), Options())
    args = inputs(sizes)
    problem = ask(subject, args).problem
    if problem is None:
        raise ArgumentError(f"the demo has no problem at sizes {sizes}")
    variant = chosen(problem, engine, tile_size)
    made = resolver().workshop.prepare(variant, problem, Counts())
    out = np.full((problem.m, problem.n), np.nan, np.float32)
    kernel_ms = timed(lambda: made.run(*args, out), *launches)
    error, passed = check(function, args, out)
    return report(
        problem, epilogue, variant, made, (kernel_ms, error, passed, launches[1])
    )


def inputs(sizes: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """Make the sample's inputs: float32, seed 123, bias of one row."""
    m, n, k = sizes
    random = np.random.default_rng(SEED)
    shapes = ((m, k), (k, n), (n,))
    a, b, bias = (random.standard_normal(s, dtype=np.float32) for s in shapes)
    return a, b, bias


def chosen(problem: Problem, engine: str, tile_size: int | None) -> Variant:
    """Return the variant for an engine and a tile size, refusing both by name."""
    workshop = resolver().workshop
    if engine not in workshop.engines:
        known = ", ".join(workshop.engines)
        raise ArgumentError(f"--engine {engine}: the engines here are {known}")
    able, unable = workshop.survey(problem, (engine,))
    if not able:
        told = "; ".join(f"{c.variant}: {c.reason}" for c in unable)
        raise ArgumentError(f"--engine {engine} can't serve these sizes: {told}")
    if tile_size is None:
        return able[0]
    tiled = [v for v in able if ("tile", tile_size) in v.config]
    if not tiled:
        raise ArgumentError(f"--tile-size {tile_size}: {engine} has no such tile size")
    return tiled[0]


def timed(call: Callable[[], Any], warmup: int, iterations: int) -> float:
    """Return the median time of one call in milliseconds."""
    for _ in range(warmup):
        call()
    samples = []
    for _ in range(iterations):
        started = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - started)
    return statistics.median(samples) / 1e6


def check(function: Callable[..., Any], args: Any, out: Any) -> tuple[float, bool]:
    """Compare with the function in float64 and with a NaN that must survive."""
    expected = function(*(np.asarray(a, np.float64) for a in args))
    error = float(np.max(np.abs(out - expected), initial=0.0))
    return error, bool(np.allclose(out, expected, rtol=RTOL, atol=ATOL))


def report(
    problem: Problem,
    epilogue: str,
    variant: Variant,
    made: Prepared,
    result: tuple[float, float, bool, int],
) -> DemoReport:
    """Put the figures of a run together."""
    workshop, (kernel_ms, error, passed, launches) = resolver().workshop, result
    target = workshop.target_of(variant.engine)
    is_hit = made.origin == "store"
    steps = (made.lookup_ms, made.build_ms, made.store_ms, made.load_ms)
    tiles = [str(value) for name, value in variant.config if name == "tile"]
    return DemoReport(
        title="tilewise demo: a persistent cache of compiled kernels",
        device=resolver().fingerprint_of(),
        compute_capability=target.arch if target.kind == "cuda" else "none (CPU)",
        cache_directory=str(workshop.store_of().directory or "none"),
        workload=f"C = {epilogue}(A @ B + bias)",
        matrix_sizes=f"A {problem.m} x {problem.k}, B {problem.k} x {problem.n}",
        tile_size=tiles[0] if tiles else "none",
        timed_launches=launches,
        variant=str(variant),
        cache_status="HIT" if is_hit else "MISS",
        cache_key=made.key,
        artifact_kib=len(made.artifact.code) / 1024,
        cache_lookup_ms=made.lookup_ms,
        compile_ms=None if is_hit else made.build_ms,
        cache_store_ms=None if is_hit else made.store_ms,
        module_load_ms=made.load_ms,
        host_preparation_ms=sum(steps),
        kernel_ms=kernel_ms,
        max_error=error,
        validation="PASSED" if passed else "FAILED",
    )
