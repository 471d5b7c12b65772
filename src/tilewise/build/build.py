"""
From a variant to a run: the only place where engines and the store meet.

An artifact is looked for in memory, then ordered: found in the store, or built.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewise.build.order import Counts, Order, Prepared, fetched
from tilewise.engines.base import Engine
from tilewise.model.measurement import Candidate
from tilewise.model.problem import Problem
from tilewise.model.variant import Target, Variant
from tilewise.store.stack import Store

__all__ = ["Workshop"]


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
        target = self.target_of(variant.engine, problem.device)
        order = Order(self.engines[variant.engine], variant, problem, target)
        key = order.shipped
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
                made = fetched(order, self.store_of(), order.load, counts)
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

    def forget(self) -> None:
        """Drop all loaded code from memory."""
        with self.lock:
            self.loaded.clear()
