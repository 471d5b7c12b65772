"""The checks of a kernel's parameters and of an `out=` array."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from tilewise.device.arrays import extent
from tilewise.device.located import located
from tilewise.device.views import (
    c_strides,
    device_copy,
    device_view,
    is_device_array,
)
from tilewise.engines.base import Engine
from tilewise.errors import ArgumentError
from tilewise.model.variant import Variant
from tilewise.runtime.dispatch import Entry
from tilewise.runtime.own import matching
from tilewise.runtime.question import Subject

__all__ = [
    "check_device_out",
    "check_out",
    "checked_parameters",
    "checked_pin",
    "checked_ranges",
    "checked_shapes",
    "checked_tuning",
    "guard_of",
    "into_reference",
]


def check_out(
    names: Sequence[str], args: Sequence[Any], out: Any, shape: Any, dtype: Any
) -> None:
    """Raise ArgumentError when `out` does not match or overlaps an input."""
    if type(out) is not np.ndarray:
        raise ArgumentError(f"out is a {type(out).__name__}, not a NumPy array")
    if out.shape != tuple(shape):
        raise ArgumentError(f"out has shape {out.shape}, the result {tuple(shape)}")
    if out.dtype != dtype:
        raise ArgumentError(f"out has dtype {out.dtype}, the result {dtype}")
    if not (out.flags.writeable and out.flags.aligned):
        raise ArgumentError("out is read-only or not aligned in memory")
    for name, arg in zip(names, args, strict=False):
        if isinstance(arg, np.ndarray) and overlaps(out, arg):
            raise ArgumentError(f"out overlaps {name} in memory")


def overlaps(out: Any, arg: Any) -> bool:
    """Say whether two arrays share an element; where that is hard to say, yes."""
    share: Any = np.shares_memory
    if not np.may_share_memory(out, arg):  # Bounds alone: 0.3 us.
        return False
    try:
        return bool(share(out, arg, max_work=1000))
    except np.exceptions.TooHardError:
        return True


def checked_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """
    Return a function's parameters by name.

    Raises ArgumentError for *args, **kwargs and a parameter named `out`.
    """
    found = inspect.signature(function).parameters
    for name, parameter in found.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise ArgumentError(f"a kernel takes named parameters, not {stars}{name}")
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise ArgumentError(f"{name} is keyword-only: a kernel's are positional")
        if name == "out":
            raise ArgumentError("`out` names the result array: rename the parameter")
    return tuple(found)


def checked_shapes(shapes: Any) -> list[Any]:
    """Return (m, n, k) triples; raises ArgumentError showing what is none."""
    found = list(shapes) if isinstance(shapes, Iterable) else [shapes]
    for one in found:
        whole = isinstance(one, tuple) and len(one) == 3
        if not whole or any(not isinstance(s, int) or s < 0 for s in one):
            raise ArgumentError(f"shapes has {one!r}, not three sizes (m, n, k)")
    return found


def checked_ranges(ranges: Any, axes: Sequence[str]) -> dict[str, tuple[int, int]]:
    """
    Return the least and the largest size of each axis, in the axes' order.

    Raises ArgumentError for what is no range, an axis that is missing or unknown, or
    where none varies.
    """
    if not isinstance(ranges, Mapping) or set(ranges) != set(axes):
        told = ", ".join(f'"{axis}": (low, high) or a size' for axis in axes)
        raise ArgumentError(f"ranges={ranges!r}: give {{{told}}}")
    found = {}
    for axis in axes:
        span = ranges[axis]
        pair = span if isinstance(span, tuple) else (span, span)
        if len(pair) != 2 or any(type(size) is not int for size in pair):
            raise ArgumentError(
                f"ranges has {axis}={span!r}, not (low, high) or a size"
            )
        if not 1 <= pair[0] <= pair[1]:
            raise ArgumentError(f"ranges has {axis}={span!r}: 1 <= low <= high")
        found[axis] = pair
    if all(low == high for low, high in found.values()):
        raise ArgumentError(f"ranges={ranges!r}: no axis varies, use shapes= or sizes=")
    return found


def checked_tuning(
    args: Sequence[Any], shapes: Any, sizes: Any, budget_s: Any, ranges: Any = None
) -> list[Mapping[str, int]]:
    """Return what to tune: sizes by axis, or one empty mapping for the arguments."""
    given = (args or None, shapes, sizes, ranges)
    if sum(one is not None for one in given) > 1:
        raise ArgumentError("tune takes arguments, shapes=, sizes= or ranges=, one")
    if budget_s is not None and not (
        isinstance(budget_s, (int, float)) and budget_s > 0
    ):
        raise ArgumentError(f"budget_s={budget_s!r}: give seconds above 0")
    if shapes is not None:
        return [dict(zip("mnk", one, strict=True)) for one in checked_shapes(shapes)]
    return [{}] if sizes is None else list(sizes)


def checked_pin(
    variant: Any, subject: Subject, engines: Mapping[str, Engine]
) -> Variant:
    """
    Return a pin as a variant.

    Raises ArgumentError for text that is none, for a variant of its own that a kernel
    has not, and for an engine or a method that there is none of. A configuration of an
    engine may depend on the problem: it is not looked at.
    """
    if not isinstance(variant, (str, Variant)):
        raise ArgumentError(f"pin({variant!r}): give a variant or its text")
    try:
        pin = Variant.parse(variant) if isinstance(variant, str) else variant
    except ValueError as error:
        raise ArgumentError(f"pin({variant!r}): {error}") from None
    if pin.engine == "reference":
        return pin
    if subject.axes or pin.engine == "user":
        own = subject.user.variants()
        if not matching(pin, own):
            told = ", ".join(["reference", *map(str, own)])
            raise ArgumentError(f"pin({str(pin)!r}): {subject.name} has {told}")
        return pin
    if pin.engine not in engines:
        known = ", ".join(["reference", "user", *engines])
        raise ArgumentError(f"pin({str(pin)!r}): the engines are {known}")
    methods = engines[pin.engine].methods
    if pin.method not in methods:
        told = ", ".join(f"{pin.engine}/{method}" for method in methods)
        raise ArgumentError(f"pin({str(pin)!r}): the methods are {told}")
    return pin


def check_device_out(
    names: Sequence[str], args: Sequence[Any], out: Any, shape: Any, dtype: Any
) -> None:
    """Raise ArgumentError when a device `out` does not match or overlaps an input."""
    place = place_of(out)
    if place is None:
        raise ArgumentError(f"out is a {type(out).__name__}, not a device array")
    address, sizes, strides, kind = place
    if sizes != shape or np.dtype(kind) != dtype:
        have = f"{np.dtype(kind)} {tuple(sizes)}"
        raise ArgumentError(f"out is {have}, the result {dtype} {shape}")
    low, high = reach(sizes, strides, kind)
    for name, arg in zip(names, args, strict=False):
        if (other := place_of(arg)) is None:
            continue
        first, end = reach(*other[1:])
        ahead = other[0] - address  # Bytes from out to the argument.
        if (
            low < ahead + end
            and ahead + first < high
            and overlaps(seen(out), seen(arg))
        ):
            raise ArgumentError(f"out overlaps {name} in memory")


def place_of(array: Any) -> tuple[Any, ...] | None:
    """Return address, shape, strides and dtype of a device array, None of others."""
    try:
        return located(array)
    except AttributeError:  # It has DLPack alone, or is none.
        return located(device_view(array)) if is_device_array(array) else None


@lru_cache(1024)
def reach(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: Any
) -> tuple[int, int]:
    """Return the bytes of an array, from its address: the first and the one behind."""
    item = np.dtype(dtype).itemsize
    return extent(shape, strides or c_strides(shape, item), item)


def seen(array: Any) -> Any:
    """Return a NumPy array that lies as a device array does, never to be read."""
    view = device_view(array)
    face = {"shape": view.shape, "strides": view.strides, "typestr": view.dtype.str,
            "data": (view.address, False), "version": 3}  # fmt: skip
    return np.asarray(SimpleNamespace(__array_interface__=face))


def into_reference(
    names: Sequence[str], entry: Entry, args: Sequence[Any], out: Any
) -> Any:
    """Let the reference serve a call with `out=`, on the host or on a device."""
    result = cast(Any, entry.direct)(*args)
    if is_device_array(result):
        view = device_view(result)
        check_device_out(names, args, out, view.shape, view.dtype)
        device_copy(out, result)
        return out
    if not isinstance(result, (np.ndarray, np.generic)):
        kind = type(result).__name__
        raise ArgumentError(f"out= takes an array, the function returns a {kind}")
    check_out(names, args, out, np.shape(result), result.dtype)
    np.copyto(out, result)
    return out


def guard_of(
    run: Callable[..., Any], args: Sequence[Any], shape: tuple[int, ...], dtype: Any
) -> Callable[..., Any]:
    """Return a native call of a run; None comes back where Python must look."""
    from tilewise.device.guard import Guard  # It brings llvmlite.

    guard = Guard(unguarded)
    guard.arm(run, args, range(len(args)), shape, dtype)
    return guard.call


def unguarded(*args: Any, out: Any) -> None:
    """Leave a call to Python."""
