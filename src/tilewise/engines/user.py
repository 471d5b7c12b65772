"""The variants that a user gave a kernel: plain callables with lists of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from tilewise.model.axes import Posed
from tilewise.model.variant import Value, Variant

__all__ = ["PLACES", "UserEngine", "UserMethod", "predicate_names"]

PLACES = ("host", "device", "any")
"""Where the arguments of a user's variant may live."""


@dataclass(frozen=True, slots=True)
class UserMethod:
    """
    One callable of a user with the values that its parameters may take.

    It is called with the kernel's arguments and, by keyword, one value from each list
    of `choices`, and returns what the kernel's function returns. `where` is one of
    PLACES; `valid` says for which parameters and sizes it can serve, and is given those
    of both that it names. One that is not `isolated` is measured in this process.
    """

    name: str
    function: Callable[..., Any]
    choices: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    where: str = "any"
    valid: Callable[..., Any] | None = None
    isolated: bool = True

    @property
    def variants(self) -> list[Variant]:
        """Each combination of the parameters' values, in the order of the lists."""
        names = [name for name, _ in self.choices]
        return [
            Variant("user", self.name, tuple(zip(names, values, strict=True)))
            for values in product(*(values for _, values in self.choices))
        ]

    def rejects(self, variant: Variant, problem: Posed) -> str | None:
        """Return why a variant cannot serve a problem, or None."""
        if self.where not in ("any", problem.residency):
            return (
                f"takes arguments on the {self.where}, these are on the "
                f"{problem.residency}"
            )
        if self.valid is None:
            return None
        known = {**dict(problem.point), **dict(variant.config)}
        names = predicate_names(self.valid)
        given = known if names is None else {name: known[name] for name in names}
        told = ", ".join(f"{name}={value}" for name, value in given.items())
        try:
            return None if self.valid(**given) else f"valid= says no for {told}"
        except (Exception, SystemExit) as error:
            return f"valid= raises {type(error).__name__} for {told}: {error}"


def predicate_names(valid: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names that a predicate asks for; None where it takes all."""
    found = inspect.signature(valid).parameters
    if any(p.kind is p.VAR_KEYWORD for p in found.values()):
        return None
    return tuple(found)


@dataclass(slots=True)
class UserEngine:
    """
    The methods of one kernel by name; more may come while the program runs.

    `trusted` are variants that this process runs: measuring them apart gains nothing.
    """

    methods: dict[str, UserMethod] = field(default_factory=dict)
    trusted: set[Variant] = field(default_factory=set)

    def variants(self) -> list[Variant]:
        """Return all variants in the order of their definition."""
        methods = list(self.methods.values())  # Another thread may add one.
        return [v for method in methods for v in method.variants]

    def bare(self, variant: Variant) -> Callable[..., Any]:
        """Return a variant as a function of the kernel's arguments."""
        return partial(self.methods[variant.method].function, **dict(variant.config))
