"""A device engine that the tests write: instant work, and transfers that cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.engines.base import Run
from tilewise.model.problem import Problem, scalar_values
from tilewise.model.variant import Artifact, Target, Variant

FAST = Variant("scripted", "fast")
TARGET = Target("scripted", "arch_1")


def heavy(x: Any, w: Any) -> Any:
    """Be a function that takes some 0.3 ms on the host."""
    z = x @ w
    for _ in range(12):
        z = np.tanh(z)
    return z


class ScriptedEngine:
    """
    Computes at once what it has computed before; moving an array costs `move_s`.

    That is paid at each call for each host array that is no bound constant, and once
    for those that are.
    """

    name, methods, toolchain = "scripted", ("fast",), ()

    def __init__(self, move_s: float) -> None:
        self.move_s = move_s
        self.known: dict[bytes, Any] = {}
        self.moved: list[int] = []

    def variants(self, problem: Problem, target: Target) -> Sequence[Variant]:
        return (FAST,)

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        return None

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        return (("variant", str(variant)), ("spec", problem.spec.digest))

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        return Artifact("scripted", "entry", b"code")

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        assert not scalar_values(problem.spec, [])
        return Staged(self, problem)


class Staged:
    """A run that moves its arguments first."""

    def __init__(self, engine: ScriptedEngine, problem: Problem) -> None:
        self.engine, self.problem = engine, problem

    def __call__(self, *args: Any) -> Any:
        return self.run(args, range(len(args) - 1))

    def bind(self, args: Sequence[Any]) -> Run:
        """Move the constants once."""
        self.move(self.problem.constants)
        rest = [i for i in range(len(args)) if i not in self.problem.constants]
        return lambda *given: self.run(given, rest)

    def run(self, args: tuple[Any, ...], moving: Sequence[int]) -> Any:
        """Move some arguments and fill the last with the function's result."""
        self.move(moving)
        *given, out = args
        key = b"".join(arg.tobytes() for arg in given)
        if key not in self.engine.known:
            self.engine.known[key] = heavy(*given)
        out[...] = self.engine.known[key]
        return out

    def move(self, places: Sequence[int]) -> None:
        """Take the time of so many transfers."""
        self.engine.moved += places
        end = time.perf_counter() + self.engine.move_s * len(places)
        while time.perf_counter() < end:
            pass
