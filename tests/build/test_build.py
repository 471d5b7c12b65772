"""The workshop in several threads: nobody waits for another's artifact."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.engines.cpu.test_engine import problem_of
from tilewise.build.build import Workshop
from tilewise.build.order import Counts, Prepared
from tilewise.engines.base import Run
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant
from tilewise.store.stack import open_store

PATIENCE_S = 20
PROBLEM = problem_of(
    lambda x, w: np.maximum(x @ w, 0), (np.ones((2, 3)), np.ones((3, 4))), ("x", "w")
)
A, B = Variant("slow", "a"), Variant("slow", "b")


@dataclass
class SlowEngine:
    """An engine whose builds do what a test tells them to; it counts them."""

    step: Callable[[Variant], Any]
    built: list[Variant] = field(default_factory=list)
    name: str = "slow"
    toolchain: tuple[str, ...] = ()

    def variants(self, problem: Problem, target: Target) -> list[Variant]:
        return [A, B]

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> None:
        return None

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        return (("variant", str(variant)),)

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        self.built.append(variant)
        self.step(variant)
        return Artifact("object", "entry", b"code", arch="here", variant=str(variant))

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        return lambda *args: args[-1]


def workshop(step: Callable[[Variant], Any]) -> tuple[Workshop, SlowEngine]:
    """Return a workshop with an engine that takes a step in each build."""
    engine = SlowEngine(step)
    made = Workshop({"slow": engine}, lambda *args: Target("cpu", "here"), open_store)
    return made, engine


def prepare(made: Workshop, variant: Variant) -> Prepared:
    """Prepare a variant, counting for nobody."""
    return made.prepare(variant, PROBLEM, Counts())


def test_two_artifacts_are_built_at_once() -> None:
    """Each build waits until the other has begun."""
    both = threading.Barrier(2, timeout=PATIENCE_S)
    made, _ = workshop(lambda variant: both.wait())
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda variant: prepare(made, variant), [A, B])
        assert ["build", "build"] == [prepared.origin for prepared in found]


def test_a_hit_does_not_wait_for_a_build() -> None:
    """A is served from memory while B is being built."""
    began, go_on = threading.Event(), threading.Event()

    def step(variant: Variant) -> None:
        if variant == B:
            began.set()
            assert go_on.wait(PATIENCE_S)

    made, _ = workshop(step)
    prepare(made, A)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(prepare, made, B)
        assert began.wait(PATIENCE_S)
        hit = threads.submit(prepare, made, A).result(PATIENCE_S)
        assert ("memory", False) == (hit.origin, slow.done())
        go_on.set()


def test_one_artifact_is_built_once() -> None:
    """Of threads that want the same one, one builds and the rest take what it made."""
    made, engine = workshop(lambda variant: threading.Event().wait(0.2))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda variant: prepare(made, variant), [A] * 4))
    assert [A] == engine.built
    assert 1 == len({id(prepared.run) for prepared in found})


def test_a_build_that_failed_is_tried_again() -> None:
    """The next that wants the artifact builds it anew."""
    errors = [EngineError("once")]

    def step(variant: Variant) -> None:
        if errors:
            raise errors.pop()

    made, _ = workshop(step)
    with pytest.raises(EngineError, match="once"):
        prepare(made, A)
    assert "build" == prepare(made, A).origin


def test_nothing_waits_for_an_artifact_that_is_there() -> None:
    """A hit makes no gate, and a build takes its own away."""
    made, _ = workshop(lambda variant: None)
    prepare(made, A)
    prepare(made, A)
    assert {} == made.gates
