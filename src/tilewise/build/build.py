"""
From a variant to a run: the only place where engines and the store meet.

An artifact is looked for in memory, then in the store under its key, then under the
key of those that were shipped, and is built when it is in none. One that cannot be
loaded, or fails its check, is evicted and built again, once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tilewise.build.keys import artifact_key, shipped_key
from tilewise.engines.base import Engine, Run
from tilewise.errors import EngineError
from tilewise.model.measurement import Candidate
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant
from tilewise.store.stack import Store

__all__ = ["Counts", "Prepared", "Workshop"]

T = TypeVar("T")


@dataclass(slots=True)
class Counts:
    """How often code was compiled and for how long, or found on disk or in memory."""

    compiles: int = 0
    artifact_hits: int = 0
    memory_hits: int = 0
    compile_ms: float = 0.0


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


@dataclass(slots=True)
class Workshop:
    """
    Builds, keeps and loads the variants of all engines, for one target each.

    `lock` guards the tables and is never held while code is made; a gate lets one
    thread make an artifact and the others that want the same wait for it.
    `aside_of` says why an engine takes no part in a problem unless it is named, or "".
    """

    engines: Mapping[str, Engine]
    target_of: Callable[[str, int], Target]
    store_of: Callable[[], Store]
    aside_of: Callable[[str, Problem], str] = lambda engine, problem: ""
    loaded: dict[tuple[str, str, str], Prepared] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    gates: dict[str, threading.RLock] = field(default_factory=dict)

    def renew_locks(self) -> None:
        """Replace locks that another thread may have held when a child was forked."""
        self.lock, self.gates = threading.RLock(), {}

    def survey(
        self, problem: Problem, allowed: tuple[str, ...]
    ) -> tuple[list[Variant], list[Candidate]]:
        """Return the variants that can serve a problem, and why the others can't."""
        able: list[Variant] = []
        unable: list[Candidate] = []
        for name in self.engines:  # One that can't serve is not imported.
            if allowed and name not in allowed:
                continue
            aside = "" if allowed else self.aside_of(name, problem)
            if aside:
                unable.append(Candidate(Variant(name), "rejected", aside))
                continue
            target = self.target_of(name, problem.device)
            if not target.arch:
                unable.append(Candidate(Variant(name), "rejected", target.reason))
                continue
            engine = self.engines[name]
            for variant in engine.variants(problem, target):
                reason = engine.rejects(variant, problem, target)
                if reason is None:
                    able.append(variant)
                else:
                    unable.append(Candidate(variant, "rejected", reason))
        return able, unable

    def rejects(self, variant: Variant, problem: Problem) -> str | None:
        """Return why one variant cannot serve a problem, or None."""
        engine = self.engines.get(variant.engine)
        if engine is None:
            return f"there is no engine {variant.engine!r} here"
        target = self.target_of(variant.engine, problem.device)
        known = engine.variants(problem, target)
        if variant not in known:
            names = ", ".join(dict.fromkeys(one.name for one in known))
            return f"there is no variant {variant}; {variant.engine} has {names}"
        return engine.rejects(variant, problem, target)

    def prepare(self, variant: Variant, problem: Problem, counts: Counts) -> Prepared:
        """
        Return a variant's run for a problem.

        Raises EngineError when it can neither be built nor loaded.
        """
        engine = self.engines[variant.engine]
        target = self.target_of(variant.engine, problem.device)
        parts = engine.key_parts(variant, problem, target)
        key = shipped_key(parts, target)
        # Two specs may share an artifact; what Python does around it differs.
        place = (key, problem.spec.digest, problem.table)
        if known := self.known(place, counts):
            return known
        with self.lock:
            gate = self.gates.setdefault(key, threading.RLock())
        with gate:
            try:
                if known := self.known(place, counts):
                    return known
                made = self.fetched(variant, problem, target, parts, key, counts)
                with self.lock:
                    self.loaded[place] = made
                return made
            finally:
                with self.lock:
                    self.gates.pop(key, None)

    def known(self, place: tuple[str, str, str], counts: Counts) -> Prepared | None:
        """Return what memory holds, counted, or None."""
        with self.lock:
            known = self.loaded.get(place)
            if known is None:
                return None
            counts.memory_hits += 1
        return Prepared(known.run, known.artifact, known.key, "memory")

    def fetched(
        self,
        variant: Variant,
        problem: Problem,
        target: Target,
        parts: tuple[tuple[str, str], ...],
        shipped: str,
        counts: Counts,
    ) -> Prepared:
        """Load from the store what is there and loads; build it otherwise."""
        engine, missing = self.engines[variant.engine], None
        try:
            key = artifact_key(parts, target, engine.toolchain)
        except EngineError as error:  # No compiler here: what was shipped may serve.
            key, missing = shipped, error
        started = time.perf_counter()
        for known in dict.fromkeys((key, shipped)):
            found = self.loaded_from_store(known, variant, problem)
            if found is not None:
                counts.artifact_hits += 1
                return found
        if missing is not None:
            raise missing
        lookup_ms = 1e3 * (time.perf_counter() - started)
        counts.compiles += 1
        made, build_ms = timed(lambda: engine.build(variant, problem, target))
        counts.compile_ms += build_ms
        run, load_ms = timed(lambda: engine.load(made, variant, problem))
        made = verified(made, run)
        _, store_ms = timed(lambda: self.store_of().keep_artifact(key, made))
        return Prepared(run, made, key, "build", lookup_ms, build_ms, store_ms, load_ms)

    def loaded_from_store(
        self, key: str, variant: Variant, problem: Problem
    ) -> Prepared | None:
        """Load what is stored under a key; what does not load is evicted."""
        store, engine = self.store_of(), self.engines[variant.engine]
        artifact, lookup_ms = timed(lambda: store.artifact(key))
        if artifact is None:
            return None
        try:
            run, load_ms = timed(lambda: engine.load(artifact, variant, problem))
        except EngineError as error:
            store.evict_artifact(key, str(error))
            return None
        marked = verified(artifact, run)
        if marked != artifact:
            store.keep_artifact(key, marked)
        return Prepared(run, marked, key, "store", lookup_ms, load_ms=load_ms)

    def forget(self) -> None:
        """Drop all loaded code from memory."""
        with self.lock:
            self.loaded.clear()


def verified(artifact: Artifact, run: Run) -> Artifact:
    """Return an artifact marked with the devices that its run was checked on."""
    return replace(artifact, verified=getattr(run, "verified", artifact.verified))


def timed(step: Callable[[], T]) -> tuple[T, float]:
    """Run a step and say how many milliseconds it took."""
    started = time.perf_counter()
    result = step()
    return result, 1e3 * (time.perf_counter() - started)
