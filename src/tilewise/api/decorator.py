"""The decorator: its options, checked by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from tilewise.api.kernel import TunedKernel
from tilewise.api.own import check_maker, check_tolerance, stated_sizes
from tilewise.api.shapes import operand_axes
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
    budget_s: float | None = None,
    axes: Mapping[str, Callable[..., int]] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    sizes: Sequence[Mapping[str, int] | tuple[int, ...]] = (),
) -> Callable[[Callable[P, R]], TunedKernel[P, R]]: ...
def tuned_kernel(function: Any = None, /, **options: Any) -> Any:
    """
    Decorate a NumPy function so that the fastest verified variant serves each call.

    `signature` is NumPy's gufunc notation, "(m,k),(k,n),(n),()->(m,n)", where () is
    a number; `engines` limits the engines; `tune` is "auto" (measure what is undecided)
    or "off"; `precision` is "strict", "tf32" or "fast"; `tolerance` replaces the error
    bound (a number, a pair (rtol, atol) or a callable(actual, expected) -> bool);
    `name` is how the kernel is listed; `budget_s` bounds the measuring of one problem,
    in seconds (None: 1 s, or what 24 calls take up to 10 s); `sizes` are those that
    `tune()` and `tilewise retune` measure where none are given or decided: tuples in
    the order of (m, n, k) or of the axes, or mappings.

    `axes` makes any function a kernel: it maps names to functions of the arguments
    that return the sizes by which variants are chosen. The function is never traced;
    what competes with it are the variants that `kernel.variant` adds.
    `make_inputs(**sizes)` returns arguments for sizes by axis, as `tune(sizes=...)` and
    `tilewise retune` need them. Without a tolerance each floating number may be
    4 + 4 sqrt(N) roundings off, N being the elements of the largest argument; all else
    must be equal.

    Raises ArgumentError for an option that is not one of these.
    """
    known = checked_options.__kwdefaults__ or {}
    for option in options:
        if option not in known:
            told = ", ".join(known)
            raise ArgumentError(f"tuned_kernel has no option {option}: use {told}")
    checked = checked_options(**options)
    if function is None:
        return lambda f: TunedKernel(f, *checked(f))
    return TunedKernel(function, *checked(function))


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
    budget_s: float | None = None,
    axes: Any = None,
    make_inputs: Any = None,
    sizes: Sequence[Any] = (),
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
    if budget_s is not None and not budget_s > 0:
        raise ArgumentError(f"budget_s={budget_s!r}: give seconds above 0")
    if signature is not None and axes is not None:
        raise ArgumentError("signature= is for products: a kernel with axes= has none")
    if signature is not None:
        operand_axes(signature)
    check_maker(axes, make_inputs)
    check_tolerance(tolerance)
    options = Options(
        signature, tuple(engines), tune, precision, tolerance, budget_s, axes,
        stated_sizes(axes, sizes), make_inputs,
    )  # fmt: skip
    return lambda f: (name or named(f), options)
