"""
A call checked and made in native code, or handed to Python where anything differs.

A guard stands before a run. It compares type, dtype, shape, strides and alignment of
what a call gives, `out` among it, with what it was armed with, and `out`'s range of
addresses with those of the arguments; then it calls the run with these and with the
arguments that it keeps. Its state is a tuple in a list: it is replaced whole, while
other threads call. Offsets are those of `pack`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tilewise.device.functions import closure
from tilewise.device.guard_ir import ENTRY_WORDS, MAX_ARGUMENTS, guard_ir
from tilewise.device.native import code_address, is_gil_build
from tilewise.device.pack import ALIGNED, MAX_NDIM, NUMBERS, PLAIN, SINGLETONS, tag
from tilewise.errors import EngineError

__all__ = ["Guard"]

WRITEABLE = 0x400
"""NPY_ARRAY_WRITEABLE among an array's flags."""
ARRAY, TYPED, SAME = 0, 1, 2
"""What is compared: an array's form, a number's type, an object itself."""
NEVER = (struct.pack("=q", -1),)
"""The state of a guard that lets nothing through: a call of -1 arguments."""
PASSED_ON = (OverflowError, EngineError)
"""What a run may raise that Python mends: it is called again by `slow`."""


class Guard:
    """
    The way to a run: `call(*given)` or `call(*given, out=y)`.

    It takes the arguments that `arm` names and returns what the run returns. A call
    that is not as it was armed for, or whose run raises one of PASSED_ON, goes to
    `slow(*given, out=y)` as it came. Without `out` one is allocated.
    """

    def __init__(self, slow: Callable[..., Any]) -> None:
        address = native_guard()
        self._state: list[Any] = [NEVER, slow]
        self._calls = np.zeros(1, np.int64)
        self.call = closure(address, self._state) if address else slow

    @property
    def calls(self) -> int:
        """How many calls the run served."""
        return int(self._calls[0])

    def arm(
        self,
        run: Callable[..., Any],
        args: Sequence[Any],
        given: Sequence[int],
        shape: tuple[int, ...],
        dtype: Any,
    ) -> None:
        """
        Let calls through that give the arguments at `given` in the form of `args`.

        The others are kept. `out` is to be C-contiguous, of `shape` and `dtype`.
        Where the forms can't be told natively all calls go to `slow`.
        """
        total = len(args)
        entries = [described(args[place], place) for place in given]
        out = described(np.empty(shape, dtype), total, WRITEABLE)
        if total >= MAX_ARGUMENTS or out is None or None in entries:
            self.disarm()
            return
        words = [len(given), total + 1, self._calls.ctypes.data]
        for entry in (*entries, out):
            words += entry or ()
        kept = [None if place in given else arg for place, arg in enumerate(args)]
        packed = struct.pack(f"={len(words)}q", *words)
        fresh = (np.empty, tuple(shape), np.dtype(dtype))
        self._state[0] = (packed, run, *fresh, PASSED_ON, *kept, None)

    def disarm(self) -> None:
        """Send every call to `slow`, and let go of run and arguments."""
        self._state[0] = NEVER


def described(arg: Any, place: int, more: int = 0) -> tuple[int, ...] | None:
    """Return what a guard compares an argument with, or None where it can't."""
    kind = type(arg)
    if kind is np.ndarray:
        if arg.dtype.num not in PLAIN or arg.ndim > MAX_NDIM or not arg.flags.aligned:
            return None
        reach = [(n - 1) * s for n, s in zip(arg.shape, arg.strides, strict=True)]
        low, high = (sum(f(r, 0) for r in reach) for f in (min, max))
        ends, room = (low, high + arg.itemsize), (0,) * (MAX_NDIM - arg.ndim)
        form = (*arg.shape, *room, *arg.strides, *room)
        return (ARRAY, place, tag(arg.dtype), ALIGNED | more, arg.ndim, *ends, *form)
    if kind in NUMBERS:
        return (TYPED, place, id(kind), *(0,) * (ENTRY_WORDS - 3))
    if any(arg is one for one in SINGLETONS):
        return (SAME, place, id(arg), *(0,) * (ENTRY_WORDS - 3))
    return None


@cache
def native_guard() -> int:
    """Compile the guard's code, once a process (7 ms); 0 where this Python differs."""
    if not is_gil_build() or struct.calcsize("P") != 8:
        return 0
    address = code_address(guard_ir(), "tilewise_guard")
    return address if fits(address) else 0


def fits(address: int) -> bool:
    """Say whether the code reads this Python's objects as they are."""
    calls, out = np.zeros(1, np.int64), np.zeros(2)
    words = [1, 3, calls.ctypes.data]
    words += (*(described(1.0, 0) or ()), *(described(out, 2, WRITEABLE) or ()))
    run, fresh = lambda *args: args, (np.empty, (2,), np.dtype(float))
    packed = struct.pack(f"={len(words)}q", *words)
    state = (packed, run, *fresh, PASSED_ON, None, "kept", None)
    call = closure(address, [state, lambda *args, **kwargs: "slow"])
    told = call(2.0, out=out), call(2.0)[2].shape, call(2, out=out), int(calls[0])
    return told == ((2.0, "kept", out), (2,), "slow", 2)
