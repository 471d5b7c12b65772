"""
One compilation that is asked for: found in the store, or built and kept.

An artifact is looked for under its key, then under the key of those that were shipped,
and is built when it is under neither. One that cannot be loaded, or fails its check,
is evicted and built again, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tilewise.build.keys import artifact_key, shipped_key
from tilewise.engines.base import Engine, Run
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant
from tilewise.store.stack import Store

__all__ = ["Counts", "Order", "Prepared", "fetched"]

T = TypeVar("T")
Load = Callable[[Artifact], Run]


@dataclass(slots=True)
class Counts:
    """How often code was compiled and for how long, or found on disk or in memory."""

    compiles: int = 0
    artifact_hits: int = 0
    memory_hits: int = 0
    compile_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Order:
    """
    A variant that is asked for at a problem, for a target.

    `parts` are the labelled texts that its code depends on, `shipped` is the key under
    which it stands in a file that is shipped.
    """

    engine: Engine
    variant: Variant
    problem: Problem
    target: Target
    parts: tuple[tuple[str, str], ...] = field(init=False, repr=False)
    shipped: str = field(init=False)

    def __post_init__(self) -> None:
        """Ask the engine once: it writes the whole source for it."""
        parts = self.engine.key_parts(self.variant, self.problem, self.target)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "shipped", shipped_key(parts, self.target))

    def build(self) -> Artifact:
        """Compile; raises EngineError where it can't be."""
        return self.engine.build(self.variant, self.problem, self.target)

    def load(self, artifact: Artifact) -> Run:
        """Make an artifact callable; raises EngineError when it is unusable."""
        return self.engine.load(artifact, self.variant, self.problem)


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    A run with the milliseconds that each step to it took just now.

    `origin` is "memory", "store" or "build".
    """

    run: Run
    artifact: Artifact
    key: str
    origin: str
    lookup_ms: float = 0.0
    build_ms: float = 0.0
    store_ms: float = 0.0
    load_ms: float = 0.0


def fetched(order: Order, store: Store, load: Load, counts: Counts) -> Prepared:
    """
    Load from the store what is there and loads; build it otherwise, and keep it.

    Raises EngineError where it can neither be built nor loaded.
    """
    missing = None
    try:
        key = artifact_key(order.parts, order.target, order.engine.toolchain)
    except EngineError as error:  # No compiler here: what was shipped may serve.
        key, missing = order.shipped, error
    started = time.perf_counter()
    for known in dict.fromkeys((key, order.shipped)):
        found = loaded_from(store, known, load)
        if found is not None:
            counts.artifact_hits += 1
            return found
    if missing is not None:
        raise missing
    lookup_ms = 1e3 * (time.perf_counter() - started)
    counts.compiles += 1
    made, build_ms = timed(order.build)
    counts.compile_ms += build_ms
    run, load_ms = timed(lambda: load(made))
    made = verified(made, run)
    _, store_ms = timed(lambda: store.keep_artifact(key, made))
    return Prepared(run, made, key, "build", lookup_ms, build_ms, store_ms, load_ms)


def loaded_from(store: Store, key: str, load: Load) -> Prepared | None:
    """Load what is stored under a key; what does not load is evicted."""
    artifact, lookup_ms = timed(lambda: store.artifact(key))
    if artifact is None:
        return None
    try:
        run, load_ms = timed(lambda: load(artifact))
    except EngineError as error:
        store.evict_artifact(key, str(error))
        return None
    marked = verified(artifact, run)
    if marked != artifact:
        store.keep_artifact(key, marked)
    return Prepared(run, marked, key, "store", lookup_ms, load_ms=load_ms)


def verified(artifact: Artifact, run: Run) -> Artifact:
    """Return an artifact marked with the devices that its run was checked on."""
    return replace(artifact, verified=getattr(run, "verified", artifact.verified))


def timed(step: Callable[[], T]) -> tuple[T, float]:
    """Run a step and say how many milliseconds it took."""
    started = time.perf_counter()
    result = step()
    return result, 1e3 * (time.perf_counter() - started)
