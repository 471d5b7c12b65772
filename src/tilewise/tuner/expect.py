"""What a right result may be: a centre and a radius per element, NaN and inf told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.tuner.contest import Case
from tilewise.tuner.inputs import Array
from tilewise.tuner.nudge import LARGE_WORK, Known, Nudge, Nudged

__all__ = ["Expected", "Fault", "expect", "is_vast", "limits"]

NUDGES = 4
"""Evaluations moved by chance, besides one upwards and one downwards."""

CLOSELY = 64
"""Evaluations by chance where few elements are in doubt, such as a % b at a step."""

REACH = 2.0
"""A spread of six samples is taken twice: they need not reach the extremes."""

UNITS_RESULT = 4.0
"""Unit roundoffs of the result that are always free: two ulp."""

DOUBTFUL = 0.01
"""The share of elements up to which a fault is looked at more closely."""

FINITE, NAN, UP, DOWN = 1, 2, 4, 8

Tolerance = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Manner:
    """How products are bounded (see `Nudge`), and how many samples are by chance."""

    likely: bool
    relative: float | None
    chances: int


@dataclass(frozen=True, slots=True)
class Fault:
    """
    The worst element: its index, what it is and what it should be, in words.

    `doubtful` says that so few elements are off that a closer look is due.
    """

    index: tuple[int, ...]
    actual: str
    expected: str
    doubtful: bool = False

    def __str__(self) -> str:
        """Write the fault as the end of a sentence."""
        place = f"at {list(self.index)}: " if self.index else ""
        return f"{place}{self.actual} where {self.expected} is right"


@dataclass(frozen=True, slots=True)
class Expected:
    """
    The results that count as right.

    `kinds` holds one bit for each of finite, NaN, +inf and -inf that may occur;
    finite ones lie within `radius` of `centre`, all in the wider precision, complex
    numbers as two. `accepts` is a tolerance that the user wrote as a function.
    """

    centre: Array
    radius: Array
    kinds: Array
    plain: Array
    accepts: Tolerance | None = None

    def error(self, actual: Array) -> Array:
        """Return the error of each element in units of its radius; <= 1 is right."""
        real = as_real(actual)
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = np.abs(real.astype(self.centre.dtype) - self.centre)
            units = np.divide(
                distance, self.radius, out=np.zeros_like(distance), where=distance != 0
            )
        finite = np.isfinite(real) if real.dtype.kind == "f" else np.True_
        allowed = kind_of(real) & self.kinds != 0
        return np.where(allowed, np.where(finite, units, 0.0), np.inf)

    def judge(self, actual: Array) -> tuple[float, Fault | None]:
        """Return the largest error of a result, and its worst element if wrong."""
        if self.accepts is not None:
            right = bool(np.all(self.accepts(actual, self.plain)))
            told = Fault((), "a result", "what tolerance= accepts")
            return (0.0, None) if right else (np.inf, told)
        units = self.error(actual)
        if not units.size:
            return 0.0, None
        worst = int(np.argmax(units))
        largest = float(units.reshape(-1)[worst])
        return largest, None if largest <= 1 else self.fault(actual, units, worst)

    def fault(self, actual: Array, units: Array, worst: int) -> Fault:
        """Describe one element of a wrong result."""
        index = tuple(map(int, np.unravel_index(worst, units.shape)))
        centre, radius = self.centre[index], self.radius[index]
        kinds = int(self.kinds[index])
        finite = f"{centre:.9g} +- {radius:.2g}"
        names = ((FINITE, finite), (NAN, "nan"), (UP, "inf"), (DOWN, "-inf"))
        allowed = " or ".join(text for bit, text in names if kinds & bit)
        found = f"{as_real(actual)[index]:.9g}"
        few = np.count_nonzero(units > 1) <= max(2, DOUBTFUL * units.size)
        return Fault(index[: actual.ndim], found, allowed, bool(few))


def expect(
    case: Case, args: Sequence[Any], *, likely: bool, closely: bool = False
) -> Expected:
    """
    Compute what is right for some arguments, from the reference alone.

    The reference is evaluated in wider precision, then with each operation moved
    within its bound, then as it is: what plain NumPy shows for the same arguments is
    right too. A large product is taken in wider precision in some of its rows only
    (see `Nudge.narrowed`). `likely` says that the numbers are random (see `gamma`);
    `closely` asks for many more evaluations, for the last few elements in doubt.
    """
    with np.errstate(all="ignore"):
        plain = np.asarray(case.reference(*args)).astype(case.dtype, copy=False)
        rtol, atol = limits(case.tolerance)
        count = CLOSELY if closely else chances(case)
        samples = wide_samples(case, args, Manner(likely, rtol, count))
        return gathered(plain, samples, rtol, atol, case.tolerance)


def limits(tolerance: object) -> tuple[float | None, float]:
    """Return the relative and the absolute tolerance; None means the bound."""
    if tolerance is None or callable(tolerance):
        return None, 0.0
    pair = tolerance if isinstance(tolerance, tuple | list) else (tolerance, tolerance)
    relative, absolute = map(float, pair)
    return relative, absolute


def wide_samples(case: Case, args: Sequence[Any], manner: Manner) -> list[Array]:
    """
    Evaluate in wider precision: as it is, one way, the other way, and by chance.

    A function that takes no subclass of ndarray is evaluated without moving; one that
    takes no wider arguments has no other oracle than itself.
    """
    samples = [np.asarray(case.wider(*args))] if case.wider else []
    narrow = narrowest(args, case.dtype)
    wide = [widened(arg) for arg in args]
    like = wide if few(case) or narrow.char != "d" else args
    memory = (a.ctypes.data for a in (*wide, *like) if isinstance(a, np.ndarray))
    known = Known(frozenset(memory))
    first = args if like is args and is_vast(case) else wide
    for number, sign in enumerate((None, 1, -1, *[0] * manner.chances)):
        nudge = nudge_of(narrow, sign, number)
        nudge.likely, nudge.relative = manner.likely, manner.relative
        nudge.known = known
        try:
            samples.append(evaluated(case, first if sign is None else like, nudge))
        except Exception:  # The user's code may refuse a subclass by any error.
            return samples or [unmoved(case, wide, args)]
        if narrow.kind not in "fc":
            break
    return samples


def nudge_of(narrow: np.dtype[Any], sign: int | None, seed: int) -> Nudge:
    """Make a nudge for results that are rounded to a dtype."""
    if narrow.kind not in "fc":
        return Nudge(narrow, 0.0, 0.0, None)
    numbers = np.finfo(narrow)
    unit, lift = float(numbers.eps) / 2, float(numbers.smallest_subnormal)
    return Nudge(narrow, unit, lift, sign, np.random.default_rng(seed))


def evaluated(case: Case, wide: Sequence[Any], nudge: Nudge) -> Array:
    """Evaluate the reference with every operation moved."""
    args = [Nudged.of(a, nudge) if isinstance(a, np.ndarray) else a for a in wide]
    return np.asarray(case.reference(*args)).view(np.ndarray)


def unmoved(case: Case, wide: Sequence[Any], args: Sequence[Any]) -> Array:
    """Evaluate the reference on plain arrays, wider ones where it takes them."""
    try:
        return np.asarray(case.reference(*wide))
    except Exception:  # It may refuse wider arguments by any error, too.
        return np.asarray(case.reference(*args))


def few(case: Case) -> bool:
    """Say whether a result is so small that every evaluation may be in long double."""
    return int(np.prod(case.shape)) <= 1 << 14


def is_vast(case: Case) -> bool:
    """Say whether even a pass over the result in long double would take long."""
    return int(np.prod(case.shape)) * case.depth > LARGE_WORK


def chances(case: Case) -> int:
    """Return how many evaluations are moved by chance; the fewer the larger."""
    return NUDGES if few(case) else int(not is_vast(case))


WIDER = {"e": np.float64, "f": np.float64, "d": np.longdouble}
WIDER_COMPLEX = {"F": np.complex128, "D": np.clongdouble}


def widened(arg: Any) -> Any:
    """Return an argument in wider precision; Python numbers and integers stay."""
    wider: Any = (WIDER | WIDER_COMPLEX).get(
        getattr(getattr(arg, "dtype", None), "char", "")
    )
    return arg if wider is None else arg.astype(wider)


def narrowest(args: Sequence[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    """Return the least precise floating dtype of the arguments, else the result's."""
    dtypes = [a.dtype for a in args if isinstance(a, np.ndarray | np.generic)]
    floats = [dtype for dtype in dtypes if dtype.kind in "fc"]
    return max(floats, key=lambda d: float(np.finfo(d).eps), default=result)


def gathered(
    plain: Array,
    samples: list[Array],
    relative: float | None,
    absolute: float,
    tolerance: object,
) -> Expected:
    """Join samples and the plain result to a centre, a radius and kinds."""
    result = plain.dtype
    wide = np.result_type(np.float64, as_real(samples[0]).dtype)
    values = [as_real(s).astype(wide, copy=False) for s in samples]
    kinds = kind_of(as_real(plain))
    for sample in samples:
        kinds = kinds | kind_of(as_real(sample.astype(result)))
    near = as_real(plain).astype(wide)
    centre = values[0]
    for value in [near, *values[1:]]:
        centre = np.where(np.isfinite(centre), centre, value)
    radius = np.zeros(centre.shape, wide)
    for value in values[1:]:
        radius = np.fmax(radius, distance(value, centre) * reach(result))
    radius = radius + distance(near, centre)
    if result.kind in "fc":
        numbers = np.finfo(result)
        free = UNITS_RESULT * numbers.eps / 2 if relative is None else relative
        size = np.abs(np.where(np.isfinite(centre), centre, 0)) + radius
        radius = radius + size * free
        radius = radius + 2 * numbers.smallest_subnormal + absolute
    accepts = tolerance if callable(tolerance) else None
    return Expected(centre, radius, kinds, samples[0].astype(result), accepts)


def reach(result: np.dtype[Any]) -> float:
    """Return how far beyond the samples' spread is right; steps are whole."""
    return REACH if result.kind in "fc" else 1.0


def distance(value: Array, centre: Array) -> Array:
    """Return how far samples are from the centre; what is not finite does not count."""
    found: Array = np.asarray(np.abs(value - centre))
    found[~np.isfinite(found)] = 0.0
    return found


def as_real(array: Array) -> Array:
    """Return complex numbers as a last axis of two, everything else as it is."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], axis=-1)


def kind_of(real: Array) -> Array:
    """Return one bit per element: finite, NaN, +inf or -inf."""
    finite = np.isfinite(real) if real.dtype.kind == "f" else np.True_
    if finite.all():
        return np.full(real.shape, FINITE, np.uint8)
    kinds = np.where(np.isnan(real), NAN, np.where(real > 0, UP, DOWN))
    return np.where(finite, FINITE, kinds).astype(np.uint8)
