"""A kernel bound to constants and sizes: what can be done once is done once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from copy import deepcopy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tilewise.errors import ArgumentError, EngineError
from tilewise.runtime.dispatch import is_static, run_entry, static_key

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
        constant = (constant,) if isinstance(constant, str) else tuple(constant)
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
            copied(arg) if fixed else arg
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
        self._check_alive()
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
        if out is not None:
            return self._kernel._into(entry, tuple(full), out)
        return run_entry(entry, full, self._kernel.reference)

    def _check_alive(self) -> None:
        """Raise EngineError when the copies are gone."""
        if self._released:
            raise EngineError(f"this bound {self._kernel._subject.name} is released")

    def _mismatch(self, place: int, arg: Any) -> None:
        """Raise ArgumentError naming both forms."""
        raise ArgumentError(
            f"{self._names[place]} was bound as {told(self._forms[place])}, "
            f"the call gives {told(form(arg))}"
        )

    def update(self, /, **constants: Any) -> None:
        """
        Replace bound arguments by copies of new ones of the same shape and dtype.

        Raises ArgumentError for a name that is not bound or a form that differs.
        """
        self._check_alive()
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
        if not self._released:
            self._retire()
        self._released, self._args = True, []
        ALIVE.discard(self)

    def __enter__(self) -> Self:
        self._check_alive()
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
        return copied(new)
    given = np.asanyarray(new)
    if (given.shape, given.dtype) != (old.shape, old.dtype):
        raise ArgumentError(
            f"{name} was bound as {told(form(old))}, the update gives "
            f"{told(form(given))}"
        )
    return copied(given)


def copied(arg: Any) -> Any:
    """Return a constant that later writes to the argument do not change."""
    if isinstance(arg, np.ndarray):
        return np.array(arg, order="C", subok=True)
    return deepcopy(arg) if isinstance(arg, list) else arg


def form(arg: Any) -> tuple[Any, ...]:
    """Return what must not change between calls of one argument."""
    if type(arg) is np.ndarray:
        return (arg.dtype, arg.shape, arg.strides, arg.flags.aligned)
    return static_key(arg) if is_static(arg) else (type(arg),)


def told(form: tuple[Any, ...]) -> str:
    """Write a form for people."""
    first, *rest = form
    if isinstance(first, type):
        return " ".join([first.__name__, *map(repr, rest)])
    aligned = "" if rest[2] else ", not aligned"
    return f"{first} {rest[0]} with strides {rest[1]}{aligned}"
