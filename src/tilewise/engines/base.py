"""What an engine is: it says what it can build, builds it and loads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant

__all__ = ["Bindable", "Engine", "Run", "bound_run"]

Run = Callable[..., Any]
"""
run(*args, out): the kernel's arguments in order, then the array to fill.

`out` has the result's shape and dtype and is C-contiguous unless the caller gave
it. A run is valid for the problem that it was loaded for, at any sizes with the
same forms. It returns `out` and never writes an argument.
"""


class Bindable(Protocol):
    """
    A run of a problem with constants that prepares them once.

    Called without `bind`, it prepares them at each call: any arguments are right.
    """

    def __call__(self, *args: Any) -> Any:
        """Fill and return the last argument."""
        ...

    def bind(self, args: Sequence[Any]) -> Run:
        """
        Pack or move the constants among a call's arguments and return the run to use.

        `args` are all of the kernel's arguments, without `out`; which are constant
        the problem said when the run was loaded. Sizes are those of `args` from then
        on, so that buffers are allocated here. The bound run is called as a run is,
        with every argument, but need not look at those that are constant: later
        writes to them are not seen. Several threads may call it at once. It owns
        what it made, and letting go of it frees that.
        """
        ...


def bound_run(run: Run | Bindable, args: Sequence[Any]) -> Run:
    """Bind a run to a call's constants where its engine offers that."""
    bind: Callable[[Sequence[Any]], Run] | None = getattr(run, "bind", None)
    return run if bind is None else bind(args)


class Engine(Protocol):
    """One way to make code for a problem; knows no other engine and no disk."""

    @property
    def name(self) -> str:
        """The engine's name, the first word of its variants."""
        ...

    @property
    def toolchain(self) -> tuple[str, ...]:
        """The distributions whose exact versions are part of an artifact's key."""
        ...

    @property
    def methods(self) -> tuple[str, ...]:
        """The engine's algorithms, the second words of its variants."""
        ...

    def variants(self, problem: Problem, target: Target) -> Sequence[Variant]:
        """Return all variants, the simplest first, also those that it rejects."""
        ...

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        """Return why a variant cannot serve a problem, or None."""
        ...

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        """Return the labelled texts that the code depends on; no sizes."""
        ...

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        """Compile; raises EngineError with the compiler's own words."""
        ...

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        """
        Make an artifact callable; raises EngineError when it is unusable.

        A run that checks its results has `verified`, the devices on which it or an
        earlier one did.
        """
        ...
