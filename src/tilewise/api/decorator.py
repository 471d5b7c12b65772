"""The decorator: its options, checked by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from tilewise.api.kernel import TunedKernel
from tilewise.errors import ArgumentError
from tilewise.runtime.question import Options

__all__ = ["tuned_kernel"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tuned_kernel(function: Callable[P, R], /) -> TunedKernel[P, R]: ...
@overload
def tuned_kernel(
    *,
    signature: str | None = None,
    engines: Sequence[str] = (),
    tune: str = "auto",
    precision: str = "strict",
    tolerance: Any = None,
    name: str | None = None,
    budget_s: float = 1.0,
) -> Callable[[Callable[P, R]], TunedKernel[P, R]]: ...
def tuned_kernel(function: Any = None, /, **options: Any) -> Any:
    """
    Decorate a NumPy function so that the fastest verified variant serves each call.

    `signature` is NumPy's gufunc notation, "(m,k),(k,n),(n)->(m,n)"; `engines`
    limits the engines; `tune` is "auto" (measure what is undecided) or "off";
    `precision` is "strict", "tf32" or "fast"; `tolerance` replaces the error bound
    (a number, a pair (rtol, atol) or a callable(actual, expected) -> bool); `name`
    is how the kernel is listed; `budget_s` bounds the measuring of one problem, in
    seconds. Raises ArgumentError for an option that is not one of these.
    """
    if function is None:
        checked = checked_options(**options)
        return lambda f: TunedKernel(f, *checked(f))
    return TunedKernel(function, *checked_options()(function))


def named(function: Any) -> str:
    """Return a function's name; raises ArgumentError for what is no function."""
    if not hasattr(function, "__qualname__") or isinstance(function, type):
        raise ArgumentError(f"{function!r} is no function: decorate a def or a lambda")
    return str(function.__qualname__).replace("<locals>.", "")


def checked_options(
    *,
    signature: str | None = None,
    engines: Sequence[str] = (),
    tune: str = "auto",
    precision: str = "strict",
    tolerance: Any = None,
    name: str | None = None,
    budget_s: float = 1.0,
) -> Callable[[Callable[..., Any]], tuple[str, Options]]:
    """Check a decorator's options; returns function -> (name, options)."""
    for option, value, allowed in (
        ("tune", tune, ("auto", "off")),
        ("precision", precision, ("strict", "tf32", "fast")),
    ):
        if value not in allowed:
            raise ArgumentError(f"{option}={value!r}: use one of {', '.join(allowed)}")
    if isinstance(engines, str):
        raise ArgumentError(f"engines={engines!r}: give a list of names")
    if not budget_s > 0:
        raise ArgumentError(f"budget_s={budget_s!r}: give seconds above 0")
    options = Options(
        signature, tuple(engines), tune, precision, tolerance, float(budget_s)
    )
    return lambda f: (name or named(f), options)
