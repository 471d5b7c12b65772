"""
A wider evaluation whose every operation is nudged by what rounding may do to it.

Monte Carlo arithmetic (D. S. Parker, UCLA CSD-970002, 1997; the same idea as CESTAC,
J. Vignes, Math. Comput. Simul. 35, 1993): evaluate several times, each time moving
every rounded result within its bound; the spread of the outcomes is what a right
implementation may show, through any epilogue: it grows where 1/z is near a pole and
is a whole step where a comparison may fall either way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.tuner.inputs import Array
from tilewise.tuner.product import product

__all__ = ["LARGE_WORK", "Known", "Nudge", "Nudged", "gamma", "spread"]

EXACT = frozenset(
    {
        "absolute", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "clip",
        "conjugate", "copysign", "fabs", "floor", "fmax", "fmin", "heaviside",
        "invert", "isfinite", "isinf", "isnan", "logical_and", "logical_not",
        "logical_or", "logical_xor", "maximum", "minimum", "negative", "positive",
        "rint", "sign", "signbit", "trunc",
    }
)  # fmt: skip
"""Operations that do not round; comparisons give bools, which are never nudged."""

ARITHMETIC = frozenset(
    {"add", "divide", "multiply", "reciprocal", "sqrt", "square", "subtract"}
)
"""Operations that round once; with a constant rounded before, that is two units."""

UNITS_ARITHMETIC = 2.0
UNITS_FUNCTION = 16.0
"""Unit roundoffs (8 ulp): libm, SVML and CUDA state at most 4 ulp, a power more."""


def gamma(k: Any, unit: float, random: bool = False) -> Any:
    """
    Return the bound on a dot product's error relative to |x|'|w|, for k products.

    gamma_k = k u / (1 - k u) holds for every order of summation, with and without
    fused multiply-add (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
    2nd ed., 2002, section 3.1). For `random` data exp(8 sqrt(k) u) - 1 fails with
    probability below 2 k exp(-32) (Higham and Mary, SIAM J. Sci. Comput. 41, 2019,
    theorem 3.1): at k = 65536 in float32 1.2e-4 instead of 3.9e-3.
    """
    certain = k * unit / np.maximum(1 - k * unit, 0.5)
    if not random:
        return certain
    likely = np.expm1(8 * np.sqrt(k) * unit + k * unit * unit)
    return np.minimum(certain, likely)


@dataclass(slots=True, eq=False)
class Known:
    """Products of arguments, by their memory, which several evaluations share."""

    sources: frozenset[int] = frozenset()
    products: dict[Any, tuple[Array, Array]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Nudge:
    """
    How one evaluation is moved.

    `unit` is the `narrow` precision's unit roundoff and `lift` its smallest number;
    `sign` is +1 or -1 to move everything one way, 0 to move each element by
    chance, None to move nothing.
    `relative` replaces gamma_k.
    """

    narrow: np.dtype[Any]
    unit: float
    lift: float
    sign: int | None = 0
    random: np.random.Generator = field(default_factory=np.random.default_rng)
    likely: bool = False
    relative: float | None = None
    known: Known = field(default_factory=Known)

    def signs(self, shape: tuple[int, ...]) -> Any:
        """Draw factors of size 0.5 to 1 in this evaluation's direction."""
        if self.sign:
            return self.sign
        drawn = self.random.random(shape, np.float32)
        return drawn - (drawn < 0.5)

    def rounded(self, exact: Array, units: float) -> Array:
        """Move results by so many unit roundoffs; those without rounding stay."""
        size = np.abs(exact)
        size *= units * self.unit
        size += self.lift
        size *= self.signs(exact.shape)
        kind = self.narrow
        if exact.dtype.kind == "c":
            kind = np.result_type(self.narrow, np.complex64)
        if exact.dtype == kind:
            stays = ~np.isfinite(exact) | (exact == 0)
        else:  # 0, infinities and what rounds to itself; NaN moves to NaN
            stays = exact.astype(kind) == exact
        moved: Array = np.add(
            exact, size, out=size if size.dtype == exact.dtype else None
        )
        np.copyto(moved, exact, where=stays)
        return moved.astype(exact.dtype, copy=False)

    def product(self, x: Array, w: Array) -> Array:
        """Return x @ w moved by its bound, which counts the products that are not 0."""
        key = tuple((a.ctypes.data, a.shape, a.strides, a.dtype.str) for a in (x, w))
        large = is_large(x, w) and self.narrow.char in "fd" and x.dtype == w.dtype
        measure = self.narrowed if large else self.measured
        exact, bound = self.known.products.get(key) or measure(x, w)
        if {x.ctypes.data, w.ctypes.data} <= self.known.sources:
            self.known.products[key] = exact, bound
        if exact.dtype.kind not in "fc" or self.sign is None:
            return exact.copy()  # the user's function may go on in place
        moved = bound * self.signs(exact.shape)
        moved[~np.isfinite(bound)] = 0
        found: Array = (exact + moved).astype(exact.dtype, copy=False)
        return found

    def measured(self, x: Array, w: Array) -> tuple[Array, Array]:
        """Return the product in the given precision and the bound on its error."""
        exact = np.asarray(product(x, w))
        if exact.dtype.kind not in "fc":
            return exact, exact
        sizes = [np.abs(a).astype(np.float64) for a in (x, w)]
        count: Any = float(x.shape[-1])
        if all(np.count_nonzero(a) < 0.5 * a.size for a in sizes):
            count = np.matmul(*((a != 0).astype(np.float32) for a in sizes))
        rate = self.relative
        if rate is None:
            rate = gamma(count + 2 * (exact.dtype.kind == "c"), self.unit, self.likely)
        return exact, rate * np.matmul(*sizes) + count * self.lift

    def narrowed(self, x: Array, w: Array) -> tuple[Array, Array]:
        """
        Return a large product and the bound on its error, wide in some rows only.

        Elsewhere the product is NumPy's in the narrow precision, which is off by as
        much as a right implementation, and |x|'|w| is bounded by the norms of row and
        column (Cauchy and Schwarz): for normal numbers three times the bound of the
        wide rows. So each element is checked, and each column is checked closely.
        """
        low = [a.astype(self.narrow, copy=False) for a in (x, w)]
        exact = np.matmul(*low).astype(x.dtype)
        k = float(x.shape[1])
        rate = self.relative
        if rate is None:
            rate = gamma(k + 2, self.unit, self.likely)
        bound = 2 * rate * np.multiply.outer(norms(low[0], 1), norms(low[1], 0))
        bound += 2 * k * self.lift
        few = max(4, DIRECT_WORK // w.size) if x.dtype.char == "d" else CLOSE_ROWS
        rows = spread(len(x), min(few, CLOSE_ROWS))
        wider = np.longdouble if x.dtype == self.narrow else x.dtype
        close = self.measured(x[rows].astype(wider), w.astype(wider))
        exact[rows], bound[rows] = close
        return exact, bound


LARGE_WORK = 1 << 27
"""Multiplications above which the wide product is taken in some rows only."""

CLOSE_ROWS = 64
DIRECT_WORK = 1 << 22
"""Multiplications in long double that take about 10 ms: fewer rows, at least four."""


def is_large(x: Array, w: Array) -> bool:
    """Say whether a product of matrices is too costly in the wider precision."""
    return x.ndim == w.ndim == 2 and len(x) * w.size > LARGE_WORK


def spread(count: int, wanted: int) -> Array:
    """Return places from the first to the last, of both ends more than between."""
    share = wanted // 4
    between = np.linspace(0, count - 1, 2 * share).astype(int)
    ends = (np.arange(min(share, count)), np.arange(max(0, count - share), count))
    found: Array = np.unique(np.concatenate([between, *ends]))
    return found


def norms(matrix: Array, axis: int) -> Array:
    """Return the 2-norms of rows or columns in float64; none overflows."""
    size = np.abs(matrix).max(axis=axis, keepdims=True).astype(np.float64)
    scaled = matrix / np.where(size > 0, size, 1.0)
    found: Array = np.sqrt((scaled * scaled).sum(axis=axis)) * size.reshape(-1)
    return found


class Nudged(np.ndarray[Any, np.dtype[Any]]):
    """An array on which every NumPy operation is moved as its `nudge` says."""

    nudge: Nudge

    def __array_finalize__(self, source: Any) -> None:
        self.nudge = getattr(source, "nudge", None)  # type: ignore[assignment]

    @classmethod
    def of(cls, array: Array, nudge: Nudge) -> Nudged:
        """View an array as one that is nudged."""
        view = array.view(cls)
        view.nudge = nudge
        return view

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        """Compute on plain arrays, move what rounds, and hand back nudged arrays."""
        nudge = self.nudge
        given = [plain(value) for value in inputs]
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            results: Any = nudge.product(*given)
        else:
            results = computed(getattr(ufunc, method), given, plain_options(kwargs))
            units = units_of(ufunc.__name__)
            if units and method == "__call__":
                results = each(results, lambda r: moved(nudge, r, units))
        if out is not None:
            targets = out if isinstance(results, tuple) else out[0]
            return deliver(targets, results)
        return each(results, lambda r: wrapped(r, nudge))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Send np.dot to the product; keep the nudge through all other functions."""
        if func is np.dot and not kwargs and max(map(np.ndim, args)) <= 2:
            return (np.matmul if min(map(np.ndim, args)) else np.multiply)(*args)
        found = super().__array_function__(func, types, args, kwargs)
        return each(found, lambda r: wrapped(r, self.nudge))

    def dot(self, other: Any, out: Any = None) -> Any:
        """Multiply as np.dot does."""
        found = np.dot(self, other)
        return found if out is None else deliver(out, found)


def units_of(operation: str) -> float:
    """Return how many unit roundoffs an operation's result may be off."""
    if operation in EXACT:
        return 0.0
    return UNITS_ARITHMETIC if operation in ARITHMETIC else UNITS_FUNCTION


def plain(value: Any) -> Any:
    """Return a nudged array as NumPy's own; everything else as it is."""
    return value.view(np.ndarray) if isinstance(value, Nudged) else value


def plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return a ufunc's options with plain arrays (`where=` may be an array)."""
    return {name: plain(value) for name, value in options.items()}


def computed(loop: Any, given: list[Any], options: dict[str, Any]) -> Any:
    """Call a loop; one that has no long double (SciPy's) is given float64."""
    try:
        return loop(*given, **options)
    except TypeError:
        long = np.longdouble
        narrowed = [
            v.astype(np.float64) if getattr(v, "dtype", None) == long else v
            for v in given
        ]
        return loop(*narrowed, **options)


def each(found: Any, step: Any) -> Any:
    """Apply a step to a result, or to each of several."""
    return tuple(map(step, found)) if isinstance(found, tuple) else step(found)


def moved(nudge: Nudge, result: Any, units: float) -> Any:
    """Move a floating result; integers and bools are exact."""
    array = np.asarray(result)
    moves = array.dtype.kind in "fc" and nudge.sign is not None
    return nudge.rounded(array, units) if moves else result


def wrapped(result: Any, nudge: Nudge) -> Any:
    """View an array or a NumPy number as nudged again."""
    if isinstance(result, np.ndarray | np.generic):
        return Nudged.of(np.asarray(result), nudge)
    return result


def deliver(target: Any, result: Any) -> Any:
    """Copy results into the given arrays, as `out=` does."""
    if isinstance(target, tuple):
        return tuple(deliver(t, r) for t, r in zip(target, result, strict=True))
    np.copyto(plain(target), result, casting="same_kind")
    return target
