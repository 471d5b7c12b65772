"""A kernel bound to constants and sizes: what can be done once is done once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tilewise.device.views import (
    device_copy,
    device_empty,
    device_view,
    is_device_array,
)
from tilewise.errors import ArgumentError, EngineError
from tilewise.runtime.dispatch import Entry, is_static, static_key

if TYPE_CHECKING:
    from tilewise.api.kernel import TunedKernel
    from tilewise.device.guard import Guard

__all__ = ["LIMIT", "BoundKernel"]

LIMIT = 1024
"""Bound kernels that may be alive at once: each holds copies of its constants."""

ALIVE: weakref.WeakSet[BoundKernel] = weakref.WeakSet()


class Closely:
    """
    Stand behind a bound kernel's guard: calls that it does not know go to Python.

    It does not keep the bound kernel alive.
    """

    owner: Callable[[], BoundKernel | None]

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Check the call in Python and run it."""
        bound = self.owner()
        assert bound is not None
        return bound._closely(bound._ordered(args, named), out)


class BoundKernel(partial[Any]):
    """
    A kernel at fixed forms, with some arguments copied and kept.

    `bound(x)` takes the other arguments in order, or more slowly by name, with the
    shapes and dtypes that they were bound with, and returns a new array; `bound(x,
    out=y)` allocates nothing. Later writes to a bound argument are not seen;
    `update(w=w2)` replaces one. What it runs was chosen at bind or update, with the
    constants prepared; a later `pin` does not change it. Raises EngineError after
    `release()`.

    It is a functools.partial because Python calls one without a frame of its own: a
    call then costs some 50 ns over the variant, where a `__call__` written in Python
    costs 400.
    """

    _guard: Guard
    _entry: Entry | None = None
    _counted = 0

    def __new__(
        cls,
        kernel: TunedKernel[Any, Any],
        args: Sequence[Any],
        constant: Sequence[str],
    ) -> Self:
        """Make the call; `__init__` says what it runs."""
        from tilewise.device.guard import Guard  # It brings llvmlite.

        closely = Closely()
        guard = Guard(closely)
        self = super().__new__(cls, guard.call)
        closely.owner = weakref.ref(self)
        self._guard = guard
        return self

    def __init__(
        self,
        kernel: TunedKernel[Any, Any],
        args: Sequence[Any],
        constant: Sequence[str],
    ) -> None:
        names = kernel._subject.parameters
        constant = (constant,) if isinstance(constant, str) else tuple(constant)
        unknown = [name for name in constant if name not in names]
        if unknown:
            raise ArgumentError(
                f"{kernel._subject.name} has no parameter {', '.join(unknown)}: "
                f"it has {', '.join(names)}"
            )
        enlist(self)
        self._kernel, self._names = kernel, names
        places = range(len(names))
        self._fixed = tuple(i for i in places if names[i] in constant)
        self._open = tuple(i for i in places if names[i] not in constant)
        self._args = tuple(
            copied(arg) if i in self._fixed else arg for i, arg in enumerate(args)
        )
        self._forms = {i: form(self._args[i]) for i in self._open}
        self._load()
        kernel._bound.add(self)

    def _load(self) -> None:
        """Resolve and load once; the entry serves every later call."""
        entry = self._kernel._bound_entry(self._args, self._fixed)
        self._retire()
        self._entry = entry
        self._arm()

    def _arm(self) -> None:
        """Let the guard serve calls of what is loaded now; the reference needs none."""
        entry = self._entry
        if entry is None or entry.run is None:
            self._guard.disarm()
        else:
            run, shape, dtype = entry.run, entry.shape, entry.dtype
            self._guard.arm(run, self._args, self._open, shape, dtype)

    def _live(self) -> list[Entry]:
        """Return the entry with all calls so far, if there is one."""
        calls, entry = self._guard.calls, self._entry
        if entry is None:
            return []
        entry.count += calls - self._counted
        self._counted = calls
        return [entry]

    def _retire(self) -> None:
        """Hand the calls so far to the kernel's counts."""
        for entry in self._live():
            self._kernel._tally.retire(entry)

    __del__ = _retire

    def __repr__(self) -> str:
        constants = ", ".join(self._names[i] for i in self._fixed)
        return f"<{self._kernel._subject.name} bound to {constants or 'nothing'}>"

    def __reduce__(self) -> Any:
        raise TypeError("a bound kernel holds native code: bind again instead")

    def _closely(self, args: tuple[Any, ...], out: Any) -> Any:
        """Check a call in Python, where the guard did not run it; then run it."""
        entry = self._alive()
        full = list(self._args)
        for place, arg in zip(self._open, args, strict=True):
            if form(arg) != self._forms[place]:
                raise mismatch(self._names[place], self._forms[place], form(arg))
            full[place] = arg
        entry.count += 1
        result = self._kernel._serve(entry, tuple(full), out)
        if entry.run is None:  # It gave way, if it was not the reference before.
            self._arm()
        return result

    def _ordered(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return a call's arguments in order; raises ArgumentError for others."""
        self._alive()
        wanted = [self._names[i] for i in self._open]
        rest = wanted[len(args) :]
        if len(args) > len(wanted) or set(named) != set(rest):
            given = ", ".join([str(len(args)), *named])
            raise ArgumentError(
                f"a bound {self._kernel._subject.name} takes its open arguments in "
                f"order: {', '.join(wanted) or 'none'}; given {given}"
            )
        return (*args, *(named[name] for name in rest))

    def update(self, /, **constants: Any) -> None:
        """
        Replace bound arguments by copies of new ones of the same shape and dtype.

        Raises ArgumentError for a name that is not bound or a form that differs.
        """
        self._alive()
        args = list(self._args)
        for name, value in constants.items():
            place = self._names.index(name) if name in self._names else -1
            if place not in self._fixed:
                bound = ", ".join(self._names[i] for i in self._fixed) or "nothing"
                called = self._kernel._subject.name
                raise ArgumentError(
                    f"{name} is not bound: {called} is bound to {bound}"
                )
            args[place] = replacement(name, args[place], value)
        self._args = tuple(args)
        self._load()

    def _alive(self) -> Entry:
        """Return the entry; raises EngineError when it was released."""
        if self._entry is None:
            raise EngineError(f"this bound {self._kernel._subject.name} is released")
        return self._entry

    def release(self) -> None:
        """Let go of the copies; later calls raise EngineError."""
        self._retire()
        self._guard.disarm()
        self._entry, self._args = None, ()
        ALIVE.discard(self)
        self._kernel._bound.discard(self)

    def __enter__(self) -> Self:
        self._alive()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def enlist(bound: BoundKernel) -> None:
    """Count a bound kernel; raises EngineError when too many are alive."""
    if len(ALIVE) >= LIMIT:
        raise EngineError(
            f"{LIMIT} bound kernels are alive: release() some, or use `with`"
        )
    ALIVE.add(bound)


def replacement(name: str, old: Any, new: Any) -> Any:
    """Return a copy of a constant's new value, which must be of the old one's form."""
    made = copied(np.asanyarray(new) if isinstance(old, np.ndarray) else new)
    have, want = form(made), form(old)
    if is_static(old):  # Another value is another function: it is traced anew.
        have, want = (type(made),), (type(old),)
    if have != want:
        raise mismatch(name, want, have)
    return made


def copied(arg: Any) -> Any:
    """Return a constant that later writes to the argument do not change."""
    if isinstance(arg, np.ndarray):
        return np.array(arg, order="C", subok=True)
    if is_device_array(arg):
        view = device_view(arg)
        made = device_empty(arg, view.shape, view.dtype)
        device_copy(made, arg)
        return made
    return deepcopy(arg) if isinstance(arg, list) else arg


def form(arg: Any) -> tuple[Any, ...]:
    """Return what must not change between calls of one argument."""
    if isinstance(arg, np.ndarray) or is_device_array(arg):
        view = arg if isinstance(arg, np.ndarray) else device_view(arg)
        return (type(arg), view.dtype, view.shape, view.strides, view.flags.aligned)
    return static_key(arg) if is_static(arg) else (type(arg),)


def mismatch(name: str, bound: Any, given: Any) -> ArgumentError:
    """Return the error that names both forms."""
    return ArgumentError(
        f"{name} was bound as {told(bound)}, the call gives {told(given)}"
    )


def told(form: tuple[Any, ...]) -> str:
    """Write a form for people."""
    kind, *rest = form
    if len(rest) != 4:
        return " ".join([kind.__name__, *map(repr, rest)])
    dtype, shape, strides, aligned = rest
    plain = "" if kind is np.ndarray else f"{kind.__name__} "
    end = "" if aligned else ", not aligned"
    return f"{plain}{dtype} {shape} with strides {strides}{end}"
