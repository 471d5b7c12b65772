"""
Build CUDA artifacts ahead of time, for machines that are not here.

Neither a GPU nor a driver is needed. The keys are those that a call looks for, since
neither sizes nor the machine take part in them; a bundle's keys leave the toolchain
out too, so that a bundle also serves where no compiler is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewise.api.shapes import arguments_at
from tilewise.build.order import Counts, Order, fetched
from tilewise.device.arch import arch_of, cuda_target, occupancy
from tilewise.engines.base import Run
from tilewise.errors import ArgumentError, EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Variant
from tilewise.runtime.once import engines
from tilewise.runtime.question import Subject, ask
from tilewise.store.bundle import write_bundle
from tilewise.store.stack import open_store

__all__ = [
    "ARCHS",
    "CUDA_ENGINES",
    "SHAPES",
    "Built",
    "build_ahead",
    "fulfilled",
    "problems_of",
    "subjects_of",
]

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
CUDA_ENGINES = ("numba_cuda", "cuda_cpp")
SHAPES = ((256, 256, 256),)
"""One square: sizes take no part in the code unless an axis has one element."""
JOBS = 2

Progress = Callable[[int, int, "Built"], None]


@dataclass(frozen=True, slots=True)
class Built:
    """
    What became of one variant for one arch.

    `origin` is "store" (a HIT), "build", "rejected" or "failed"; `reason` says why
    for the last two. `ms` is what looking up or compiling took.
    """

    kernel: str
    variant: Variant
    arch: str
    origin: str
    ms: float = 0.0
    reason: str = ""
    key: str = ""
    shipped_key: str = ""
    artifact: Artifact | None = None

    def figure(self, name: str) -> int:
        """Return a figure of the artifact, such as "registers"; 0 without one."""
        return dict(self.artifact.resources).get(name, 0) if self.artifact else 0

    def occupancy(self, threads: int) -> float:
        """Return the theoretical occupancy with blocks of so many threads."""
        registers, shared = self.figure("registers"), self.figure("shared_bytes")
        return occupancy(arch_of(self.arch), threads, registers, shared)


def build_ahead(
    subjects: Sequence[Subject],
    archs: Sequence[str] = ARCHS,
    *,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
    dtypes: Sequence[str] = ("float32",),
    names: Sequence[str] = CUDA_ENGINES,
    progress: Progress | None = None,
    bundle: Path | None = None,
) -> list[Built]:
    """
    Build every CUDA variant of some kernels for some archs, two at a time.

    `progress` is called with how many are done, of how many, and the last one. Raises
    EngineError for an unknown arch, ArgumentError for a kernel that has no such
    problem, OSError when the bundle can't be written.
    """
    orders = list(unique(orders_of(subjects, archs, shapes, dtypes, names)))
    with ThreadPoolExecutor(JOBS, thread_name_prefix="tilewise-build") as pool:
        waiting: dict[Future[Built], int] = {
            pool.submit(fulfilled, *one): at for at, one in enumerate(orders)
        }
        results: dict[int, Built] = {}
        for future in as_completed(waiting):
            made = results[waiting[future]] = future.result()
            if progress is not None:
                progress(len(results), len(orders), made)
    done = [results[at] for at in range(len(orders))]
    if bundle is not None:
        whole = [(b.shipped_key, b.artifact) for b in done if b.artifact is not None]
        write_bundle(bundle, whole, open_store().tables())
    return done


def orders_of(
    subjects: Sequence[Subject],
    archs: Sequence[str],
    shapes: Sequence[tuple[int, int, int]],
    dtypes: Sequence[str],
    names: Sequence[str],
) -> Iterator[tuple[str, Order]]:
    """Yield what is to be built, by kernel, problem, arch, engine and variant."""
    targets = [cuda_target(arch) for arch in archs]
    known = engines()
    for subject in subjects:
        for problem in problems_of(subject, shapes, dtypes):
            for target in targets:
                for name in names:
                    for variant in known[name].variants(problem, target):
                        order = Order(known[name], variant, problem, target)
                        yield subject.name, order


def unique(orders: Iterator[tuple[str, Order]]) -> Iterator[tuple[str, Order]]:
    """Leave out what has the code of an earlier order: shapes mostly share it."""
    seen = set()
    for kernel, order in orders:
        if order.shipped not in seen:
            seen.add(order.shipped)
            yield kernel, order


def problems_of(
    subject: Subject, shapes: Sequence[tuple[int, int, int]], dtypes: Sequence[str]
) -> list[Problem]:
    """
    Return a kernel's problems at sizes and dtypes, its arrays in C order.

    Raises ArgumentError with the reason where only the reference serves one.
    """
    found = []
    for dtype in dtypes:
        for sizes in shapes:
            named = dict(zip("mnk", sizes, strict=True))
            question = ask(subject, arguments_at(subject, named, dtype, "host"))
            if question.fused is None:
                raise ArgumentError(f"{subject.name} at {sizes}: {question.reason}")
            found.append(question.fused)
    return found


def fulfilled(kernel: str, order: Order) -> Built:
    """Look an order up, or build and keep it; never raises for one variant."""
    variant, arch = order.variant, order.target.arch
    reason = order.engine.rejects(variant, order.problem, order.target)
    if reason is not None:
        return Built(kernel, variant, arch, "rejected", reason=reason)
    started = time.perf_counter()
    try:
        made = fetched(order, open_store(), unloaded, Counts())
    except EngineError as error:
        return Built(kernel, variant, arch, "failed", since_ms(started), str(error))
    took, keys = since_ms(started), (made.key, order.shipped)
    return Built(kernel, variant, arch, made.origin, took, "", *keys, made.artifact)


def unloaded(artifact: Artifact) -> Run:
    """Return what stands for the run of an artifact whose device is not here."""

    def run(*args: Any) -> Any:
        raise EngineError(f"{artifact.variant} was built for an {artifact.arch}")

    return run


def since_ms(started: float) -> float:
    """Return the milliseconds since a time."""
    return 1e3 * (time.perf_counter() - started)


def subjects_of(kernels: Sequence[Any]) -> list[Subject]:
    """
    Return the subjects of the kernels that engines generate code for.

    Raises ArgumentError where there is none: a kernel with axes has its user's code.
    """
    found = [kernel._subject for kernel in kernels]
    fused = [subject for subject in found if not subject.axes]
    if found and not fused:
        names = ", ".join(subject.name for subject in found)
        raise ArgumentError(f"{names}: a kernel with axes has no code of engines")
    return fused
