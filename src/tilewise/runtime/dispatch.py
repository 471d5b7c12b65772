"""
The call itself: pack the arguments' forms into a key, look it up, run.

Nothing here thinks: no formatting, environment, disk or tuning. What is not in the
table goes to `miss`. The cost of a call over its kernel stands in the newest
benchmarks/records line of bench_dispatch.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewise.device.located import device_number, is_located, located
from tilewise.errors import EngineError

__all__ = [
    "NUMBERS",
    "Dispatcher",
    "Entry",
    "Key",
    "is_static",
    "python_key",
    "static_key",
]

Key = bytes | tuple[Any, ...]
NUMBERS = (int, float, complex)
STATICS = (bool, str, bytes, type(None), type, np.dtype, np.ufunc)


class Entry:
    """
    What one combination of forms and sizes runs.

    `run(*args, out)` fills `out`, which has `shape` and `dtype`; without it
    `direct(*args)` serves the call: the reference, or a call on a device, whose
    `filling` fills a device `out`. `guard(*args, out=out)` checks and runs natively,
    or returns None where Python must look closer. `fallback` says why nothing else
    could serve, or ""; `saving_us` is what a call saves over the reference, measured.
    """

    __slots__ = (
        "count", "direct", "dtype", "fallback", "filling", "guard", "run", "saving_us",
        "shape", "variant",
    )  # fmt: skip

    def __init__(
        self,
        variant: str,
        run: Callable[..., Any] | None,
        shape: tuple[int, ...] = (),
        dtype: Any = None,
        direct: Callable[..., Any] | None = None,
        fallback: str = "",
    ) -> None:
        self.variant, self.run, self.direct = variant, run, direct
        self.shape, self.dtype, self.count = shape, dtype, 0
        self.fallback, self.saving_us = fallback, 0.0
        self.filling: Callable[..., Any] | None = None
        self.guard: Callable[..., Any] | None = None

    def give_way(self, reference: Callable[..., Any], reason: str) -> None:
        """Let the reference serve from now on."""
        self.direct = reference
        self.run = self.filling = None
        self.variant, self.fallback, self.saving_us = "reference", reason, 0.0


class Dispatcher:
    """
    A table from packed forms to entries, and the way in.

    Subclasses say what happens on a miss and check an `out=`.
    """

    def __init__(self, pack: Callable[..., Key | None]) -> None:
        self._pack = pack
        self._entries: dict[Key, Entry] = {}

    def __call__(self, /, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Run the kernel; `out=` is filled and returned when given."""
        if kwargs:
            args = self._bind(args, kwargs)
        key = self._pack(*args) or python_key(args)
        entry = self._entries.get(key)  # type: ignore[arg-type]
        if entry is None:
            return self._miss(args, out)
        entry.count += 1
        if out is not None:
            return self._into(entry, args, out)
        run = entry.run
        try:
            if run is None:
                return entry.direct(*args)  # type: ignore[misc]
            return run(*args, np.empty(entry.shape, entry.dtype))
        except (OverflowError, EngineError) as error:
            return self._failed(entry, args, error)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        raise TypeError("a subclass says what to do")

    def _miss(self, args: tuple[Any, ...], out: Any) -> Any:
        raise TypeError("a subclass says what to do")

    def _failed(self, entry: Entry, args: tuple[Any, ...], error: Exception) -> Any:
        raise TypeError("a subclass says what to do")

    def _into(self, entry: Entry, args: tuple[Any, ...], out: Any) -> Any:
        raise TypeError("a subclass says what to do")


def python_key(args: Sequence[Any]) -> tuple[Any, ...] | None:
    """
    Describe arguments that the native key cannot; None for what no table holds.

    Arrays by type, dtype, shape, strides and alignment, those of a GPU by its number
    too; numbers by type; static arguments by type and value.
    """
    key: list[Any] = []
    for arg in args:
        kind = type(arg)
        if kind is np.ndarray:
            flags = (arg.flags.aligned, arg.dtype.isnative)
            key += (kind, arg.dtype, arg.shape, arg.strides, flags)
        elif is_located(arg):
            address, shape, strides, dtype = located(arg)
            key += (kind, dtype, shape, strides, address & 7, device_number(arg))
        elif is_static(arg):
            key.append(static_key(arg))
        elif kind in NUMBERS or isinstance(arg, np.generic):
            key.append(kind)
        else:
            return None
    return tuple(key)


def static_key(value: Any) -> tuple[Any, ...]:
    """Describe a static argument so that 1, 1.0 and True differ, in tuples too."""
    if isinstance(value, tuple):
        return (type(value), *map(static_key, value))
    return (type(value), repr(value) if type(value) in NUMBERS else value)


def is_static(value: Any) -> bool:
    """Say whether an argument is traced by value."""
    if isinstance(value, tuple):
        return all(is_static(v) or type(v) in NUMBERS for v in value)
    return isinstance(value, STATICS)
