"""
The run of NVIDIA's persistentProgramCache sample on the engine at hand.

It builds `C = epilogue(A @ B + bias)` or finds it in the store, runs it, checks it
against NumPy and prints what each step took. For an arch that is not here it only
builds, and says so.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.api.build_ahead import fulfilled
from tilewise.build.order import Counts, Order
from tilewise.device.arch import cuda_target
from tilewise.errors import ArgumentError, EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant
from tilewise.runtime.once import resolver
from tilewise.runtime.question import Options, Subject, ask

__all__ = ["EPILOGUES", "DemoReport", "run_demo"]

FIGURES = (("Registers", "registers"), ("Shared bytes", "shared_bytes"),
           ("Spilled bytes", "spill_bytes"))  # fmt: skip

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
    """
    The sample's fields; times in milliseconds, None where a step was skipped.

    `validation` is "PASSED", "FAILED" or why nothing was run.
    """

    title: str
    device: str
    compute_capability: str
    cache_directory: str
    workload: str
    matrix_sizes: str
    tile_size: str
    timed_launches: int
    variant: str
    cache_status: str = ""
    cache_key: str = ""
    artifact_kib: float = 0.0
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    cache_lookup_ms: float | None = None
    compile_ms: float | None = None
    cache_store_ms: float | None = None
    module_load_ms: float | None = None
    host_preparation_ms: float = 0.0
    kernel_ms: float | None = None
    max_error: float | None = None
    validation: str = ""

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
            *((label, written(getattr(self, name), "d")) for label, name in FIGURES),
            ("Cache lookup", written(self.cache_lookup_ms, ".3f", " ms")),
            ("Compile time", written(self.compile_ms, ".1f", " ms") or "skipped"),
            ("Cache store", written(self.cache_store_ms, ".3f", " ms")),
            ("Module load", written(self.module_load_ms, ".3f", " ms")),
            ("Host prep time", f"{self.host_preparation_ms:.3f} ms"),
            ("Kernel time", written(self.kernel_ms, ".4f", " ms (median)")),
            ("Max error", written(self.max_error, ".3e")),
            ("Validation", self.validation),
        ]
        return [(label, text) for label, text in rows if text]


def written(value: float | None, form: str, unit: str = "") -> str:
    """Write a number; nothing where there is none."""
    return "" if value is None else f"{value:{form}}{unit}"


def run_demo(
    sizes: tuple[int, int, int],
    epilogue: str,
    engine: str,
    tile_size: int | None,
    launches: tuple[int, int],
    arch: str = "",
) -> DemoReport:
    """
    Build or load one variant for sizes (m, n, k), time and check it.

    `launches` are the warm-up and the timed runs; `arch` is that of the device unless
    given. Raises ArgumentError for an engine or a tile size that there is none of.
    """
    subject = Subject(
        EPILOGUES[epilogue], f"demo {epilogue}", ("a", "b", "bias"), Options()
    )
    args = inputs(sizes)
    problem = ask(subject, args).fused
    if problem is None:
        raise ArgumentError(f"the demo has no problem at sizes {sizes}")
    order = ordered(problem, engine, tile_size, arch)
    report = described(order, epilogue, launches[1])
    here = resolver().workshop.target_of(engine, 0)
    if order.target.arch == here.arch:
        return run(order, report, subject.function, args, launches)
    found = f"the device here is {here.arch}" if here.arch else ""
    absent = found or "there is no CUDA device here"
    return built(order, report, f"nothing was run: {absent}")


def run(
    order: Order,
    report: DemoReport,
    function: Callable[..., Any],
    args: Sequence[Any],
    launches: tuple[int, int],
) -> DemoReport:
    """Build or load an order, time it and check it; what is wrong is not kept."""
    made = resolver().workshop.prepare(order.variant, order.problem, Counts())
    out = np.full((order.problem.m, order.problem.n), np.nan, np.float32)
    kernel_ms = timed(lambda: made.run(*args, out), *launches)
    error, passed = check(made.run, function, args, out)
    if not passed:
        resolver().store_of().evict_artifact(made.key, "its results are wrong")
    is_hit = made.origin == "store"
    steps = (made.lookup_ms, made.build_ms, made.store_ms, made.load_ms)
    return replace(
        stored(report, made.artifact, made.key, is_hit),
        cache_lookup_ms=made.lookup_ms,
        compile_ms=None if is_hit else made.build_ms,
        cache_store_ms=None if is_hit else made.store_ms,
        module_load_ms=made.load_ms,
        host_preparation_ms=sum(steps),
        kernel_ms=kernel_ms,
        max_error=error,
        validation="PASSED" if passed else "FAILED",
    )


def built(order: Order, report: DemoReport, why_not_run: str) -> DemoReport:
    """Build an order or find it, for a device that is not here."""
    made = fulfilled("demo", order)
    if made.artifact is None:
        raise EngineError(made.reason)
    is_hit = made.origin == "store"
    return replace(
        stored(report, made.artifact, made.key, is_hit),
        timed_launches=0,
        cache_lookup_ms=made.ms if is_hit else None,
        compile_ms=None if is_hit else made.artifact.build_ms,
        host_preparation_ms=made.ms,
        validation=why_not_run,
    )


def stored(
    report: DemoReport, artifact: Artifact, key: str, is_hit: bool
) -> DemoReport:
    """Add what the store and the compiler tell of an artifact."""
    figures = dict(artifact.resources)
    return replace(
        report,
        cache_status="HIT" if is_hit else "MISS",
        cache_key=key,
        artifact_kib=len(artifact.code) / 1024,
        registers=figures.get("registers"),
        shared_bytes=figures.get("shared_bytes"),
        spill_bytes=figures.get("spill_bytes"),
    )


def inputs(sizes: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """Make the sample's inputs: float32, seed 123, bias of one row."""
    m, n, k = sizes
    random = np.random.default_rng(SEED)
    shapes = ((m, k), (k, n), (n,))
    a, b, bias = (random.standard_normal(s, dtype=np.float32) for s in shapes)
    return a, b, bias


def ordered(problem: Problem, engine: str, tile_size: int | None, arch: str) -> Order:
    """Return what is to be built, refusing engine, arch and tile size by name."""
    workshop = resolver().workshop
    if engine not in workshop.engines:
        known = ", ".join(workshop.engines)
        raise ArgumentError(f"--engine {engine}: the engines here are {known}")
    target = cuda_target(arch) if arch else workshop.target_of(engine, 0)
    variant = chosen(problem, engine, target, tile_size)
    return Order(workshop.engines[engine], variant, problem, target)


def chosen(
    problem: Problem, engine: str, target: Target, tile_size: int | None
) -> Variant:
    """Return the first variant that serves, or the first of a tile size."""
    made = resolver().workshop.engines[engine]
    if not target.arch:
        more = "; --arch builds for one" if target.kind == "cuda" else ""
        raise ArgumentError(f"--engine {engine}: {target.reason}{more}")
    every = [
        (v, made.rejects(v, problem, target)) for v in made.variants(problem, target)
    ]
    able = [variant for variant, reason in every if reason is None]
    if not able:
        told = "; ".join(f"{variant}: {reason}" for variant, reason in every)
        raise ArgumentError(f"--engine {engine} can't serve these sizes: {told}")
    if tile_size is None:
        return able[0]
    for variant in able:
        tile = str(dict(variant.config).get("tile", ""))
        if tile.partition("x")[0] == str(tile_size):
            return variant
    raise ArgumentError(f"--tile-size {tile_size}: {engine} has no such tile size")


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


def check(
    kernel: Callable[..., Any], function: Callable[..., Any], args: Any, out: Any
) -> tuple[float, bool]:
    """Compare a result with the function in float64, and a NaN that must survive."""
    expected = function(*(np.asarray(a, np.float64) for a in args))
    error = float(np.max(np.abs(out - expected), initial=0.0))
    a, b, bias = args[0], args[1], args[2].copy()
    bias[-1] = np.nan
    planted = np.zeros_like(out)
    kernel(a, b, bias, planted)
    marked = np.isnan(planted).all(0).tolist() == np.isnan(bias).tolist()
    return error, marked and bool(np.allclose(out, expected, rtol=RTOL, atol=ATOL))


def described(order: Order, epilogue: str, launches: int) -> DemoReport:
    """Say what is asked and of which device."""
    problem, target, variant = order.problem, order.target, order.variant
    tiles = [str(value) for name, value in variant.config if name == "tile"]
    return DemoReport(
        title="tilewise demo: a persistent cache of compiled kernels",
        device=resolver().fingerprint_of(0),
        compute_capability="none (CPU)" if target.kind == "cpu" else target.arch,
        cache_directory=str(resolver().store_of().directory or "none"),
        workload=f"C = {epilogue}(A @ B + bias)",
        matrix_sizes=f"A {problem.m} x {problem.k}, B {problem.k} x {problem.n}",
        tile_size=tiles[0] if tiles else "none",
        timed_launches=launches,
        variant=str(variant),
    )
