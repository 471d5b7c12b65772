"""A kernel bound to constants and sizes: what can be done once is done once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from tilewise.api.checks import check_out
from tilewise.errors import ArgumentError, EngineError

if TYPE_CHECKING:
    from tilewise.api.kernel import TunedKernel

__all__ = ["LIMIT", "BoundKernel"]

LIMIT = 1024
"""Bound kernels that may be alive at once: each holds copies of its constants."""

ALIVE: weakref.WeakSet[BoundKernel] = weakref.WeakSet()
LOCK = threading.Lock()


class BoundKernel:
    """
    A kernel at fixed forms, with some arguments copied and kept.

    `bound(x)` takes the other arguments in order, with the shapes and dtypes that
    they were bound with, and returns a new array; `bound(x, out=y)` allocates
    nothing. Later writes to a bound argument are not seen; `update(w=w2)` replaces
    one. Raises EngineError after `release()`.
    """

    def __init__(
        self,
        kernel: TunedKernel[Any, Any],
        args: Sequence[Any],
        constant: Sequence[str],
    ) -> None:
        names = kernel._subject.parameters
        unknown = [name for name in constant if name not in names]
        if unknown:
            raise ArgumentError(
                f"{kernel._subject.name} has no parameter {', '.join(unknown)}: "
                f"it has {', '.join(names)}"
            )
        enlist(self)
        self._kernel, self._names = kernel, names
        self._fixed = [name in constant for name in names]
        self._args = [
            np.array(arg, order="C") if fixed and isinstance(arg, np.ndarray) else arg
            for arg, fixed in zip(args, self._fixed, strict=True)
        ]
        self._open = [i for i, fixed in enumerate(self._fixed) if not fixed]
        self._forms = {i: form(self._args[i]) for i in self._open}
        self._constants = tuple(i for i, fixed in enumerate(self._fixed) if fixed)
        self._released = False
        self._entry: Any = None
        self._load()
        kernel._bound.add(self)

    def _load(self) -> None:
        """Resolve and load once; the entry serves every later call."""
        entry = self._kernel._bound_entry(tuple(self._args), self._constants)
        self._retire()
        self._entry = entry

    def _retire(self) -> None:
        """Hand the calls so far to the kernel's counts."""
        if self._entry is not None:
            self._kernel._tally.retire(self._entry)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run with the arguments that are not bound, in their order."""
        if self._released:
            raise EngineError(f"this bound {self._kernel._subject.name} is released")
        if len(args) != len(self._open):
            wanted = ", ".join(self._names[i] for i in self._open)
            raise ArgumentError(f"{len(args)} arguments given, the open ones: {wanted}")
        full = list(self._args)
        for place, arg in zip(self._open, args, strict=True):
            if form(arg) != self._forms[place]:
                self._mismatch(place, arg)
            full[place] = arg
        entry = self._entry
        entry.count += 1
        if entry.run is None:
            if out is not None:
                return self._kernel._into(entry, tuple(full), out)
            return cast(Any, entry.direct)(*full)
        if out is None:
            out = np.empty(entry.shape, entry.dtype)
        else:
            check_out(self._names, full, out, entry.shape, entry.dtype)
        return entry.run(*full, out)

    def _mismatch(self, place: int, arg: Any) -> None:
        """Raise ArgumentError naming both forms."""
        raise ArgumentError(
            f"{self._names[place]} was bound as {told(self._forms[place])}, "
            f"the call gives {told(form(arg))}"
        )

    def update(self, **constants: Any) -> None:
        """
        Replace bound arguments by copies of new ones of the same shape and dtype.

        Raises ArgumentError for a name that is not bound or a form that differs.
        """
        args = list(self._args)
        for name, value in constants.items():
            if name not in self._names or not self._fixed[self._names.index(name)]:
                raise ArgumentError(f"{name} is not bound")
            place = self._names.index(name)
            args[place] = replacement(name, args[place], value)
        self._args = args
        self._load()

    def release(self) -> None:
        """Let go of the copies; later calls raise EngineError."""
        self._retire()
        self._released, self._args = True, []
        ALIVE.discard(self)

    def __enter__(self) -> Self:
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
    with LOCK:
        if len(ALIVE) >= LIMIT:
            raise EngineError(
                f"{LIMIT} bound kernels are alive: release() some, or use `with`"
            )
        ALIVE.add(bound)


def replacement(name: str, old: Any, new: Any) -> Any:
    """Return a copy of a constant's new value, which must be of the old one's form."""
    if not isinstance(old, np.ndarray):
        if type(new) is not type(old):
            raise ArgumentError(
                f"{name} was bound as {told(form(old))}, the update gives "
                f"{told(form(new))}"
            )
        return new
    given = np.asarray(new)
    if (given.shape, given.dtype) != (old.shape, old.dtype):
        raise ArgumentError(
            f"{name} was bound as {told(form(old))}, the update gives "
            f"{told(form(given))}"
        )
    return np.array(given, order="C")


def form(arg: Any) -> tuple[Any, ...]:
    """Return what must not change between calls of one argument."""
    if type(arg) is np.ndarray:
        return (arg.dtype, arg.shape, arg.strides)
    return (type(arg),)


def told(form: tuple[Any, ...]) -> str:
    """Write a form for people."""
    if len(form) == 1:
        return str(form[0].__name__)
    return f"{form[0]} {form[1]} with strides {form[2]}"
