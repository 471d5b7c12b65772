"""What counts as right where a function may return anything: its own result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.device.host import array_location
from tilewise.device.views import on_host
from tilewise.tuner.contest import Case
from tilewise.tuner.expect import Fault, limits
from tilewise.tuner.inputs import Array, guarded, is_plain

__all__ = ["Returned", "is_lent", "returned"]


@dataclass(frozen=True, slots=True)
class Returned:
    """
    The reference's result, and how far floating numbers may be from it.

    Arrays must have its shape and dtype and lie where its arrays do; integers, texts
    and all else must be equal. `relative` is a share of each number's size. The
    reference `lends` where its result is memory of an argument.
    """

    value: Any
    relative: float | None
    absolute: float
    accepts: Any
    elements: int
    lends: bool = False

    def judge(self, actual: Any) -> tuple[float, Fault | None]:
        """Return the largest error in units of the tolerance, and the first fault."""
        if callable(self.accepts):
            right = bool(np.all(self.accepts(actual, self.value)))
            told = Fault((), "a result", "what tolerance= accepts")
            return (0.0, None) if right else (np.inf, told)
        largest = 0.0
        for path, found, wanted in pairs("", actual, self.value):
            error, fault = self.compared(found, wanted)
            if fault is not None:
                place = f"result{path}: " if path else ""
                return error, Fault(fault.index, place + fault.actual, fault.expected)
            largest = max(largest, error)
        return largest, None

    def compared(self, actual: Any, wanted: Any) -> tuple[float, Fault | None]:
        """Compare two results without parts."""
        told = kinds(actual), kinds(wanted)
        if told[0] != told[1]:
            return np.inf, Fault((), *told)
        if "object" in told[1]:
            same = bool(np.all(actual == wanted))
            return (0.0, None) if same else (np.inf, Fault((), *told))
        have, want = np.asarray(on_host(actual)), np.asarray(on_host(wanted))
        if not want.size:
            return 0.0, None
        units = self.units(have, want)
        worst = int(np.argmax(units))
        index = tuple(map(int, np.unravel_index(worst, units.shape)))
        error = float(units[index])
        if error <= 1:
            return error, None
        return error, Fault(index, f"{have[index]!s}", f"{want[index]!s}")

    def units(self, have: Array, want: Array) -> Array:
        """Return each element's error in units of its tolerance; <= 1 is right."""
        same = np.asarray(have == want)
        if want.dtype.kind in "fcmM":
            absent = np.isnat if want.dtype.kind in "mM" else np.isnan
            same = same | (absent(have) & absent(want))
        if want.dtype.kind not in "fc":
            return np.where(same, 0.0, np.inf)
        free = self.roundings(want.dtype) if self.relative is None else self.relative
        with np.errstate(all="ignore"):
            room = np.abs(want) * free + self.absolute
            units = np.abs(have - want) / room
        return np.where(same, 0.0, np.where(np.isfinite(units), units, np.inf))

    def roundings(self, dtype: np.dtype[Any]) -> float:
        """
        Return the relative error that is free without a stated tolerance.

        Sums of n numbers in two orders differ by some sqrt(n) roundings.
        """
        unit = float(np.finfo(dtype).eps) / 2
        return unit * (4 + 4 * math.sqrt(self.elements))


def returned(case: Case) -> Returned:
    """Run the reference on copies of the arguments; its result is what is right."""
    arrays = [arg.size for arg in case.args if hasattr(arg, "size")]
    relative, absolute = limits(case.tolerance)
    there = {at: guarded(a, a) for at, a in enumerate(case.args) if is_plain(a)}
    own: Sequence[Any] = ()
    if case.bench is None:
        own = [there[at].array if at in there else a for at, a in enumerate(case.args)]
        value = case.reference(*own)
    else:
        value = case.bench.carried(case.bench.reference, case.args, there)
    most, lends = max(arrays, default=1), any(is_lent(value, arg) for arg in own)
    return Returned(value, relative, absolute, case.tolerance, most, lends)


def is_lent(result: Any, arg: Any) -> bool:
    """Say whether a result is memory of an argument."""
    both = isinstance(result, np.ndarray) and isinstance(arg, np.ndarray)
    return both and np.may_share_memory(result, arg)


def pairs(path: str, actual: Any, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what corresponds in two results: tuples, lists and mappings by part."""
    parts, found = parted(wanted), parted(actual)
    if parts is None or found is None or found.keys() != parts.keys():
        yield path, actual, wanted
        return
    for key, part in parts.items():
        yield from pairs(f"{path}[{key!r}]", found[key], part)


def parted(value: Any) -> Mapping[Any, Any] | None:
    """Return a result's parts by key or place; None for one that has none."""
    if isinstance(value, Mapping):
        return value
    return dict(enumerate(value)) if isinstance(value, (tuple, list)) else None


def kinds(value: Any) -> str:
    """Write what two results must have in common besides their numbers."""
    shape = getattr(value, "shape", ())
    if isinstance(value, (bool, int, float, complex, np.generic)):
        names = {"b": "a bool", "i": "an integer", "u": "an integer", "f": "a float"}
        return names.get(np.asarray(value).dtype.kind, type(value).__name__)
    if not hasattr(value, "dtype"):
        size = f" of {len(value)}" if hasattr(value, "__len__") else ""
        return f"an object {type(value).__name__}{size}"
    return f"{value.dtype} {tuple(shape)} on the {array_location(value)}"
