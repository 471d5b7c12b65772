"""
What CUDA kernels are tried with: epilogues, layouts, sizes, values, landings.

The factors are quarters of small integers, so that a product is exact in any order
of adding, and steps like floor or == can be compared; `random` values are not, and
their bound grows with k.
"""

# ruff: noqa: PLR0917 - all epilogues take the same seven arguments

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tilewise.device.arch import cuda_target
from tilewise.device.chosen import chosen_device
from tilewise.device.emulator.machine import Options
from tilewise.engines.base import Engine
from tilewise.engines.cuda_cpp.engine import CudaCppEngine
from tilewise.engines.numba_cuda.engine import NumbaCudaEngine
from tilewise.model.problem import Problem, pose
from tilewise.model.spec import match
from tilewise.model.trace import trace
from tilewise.model.variant import Artifact, Variant
from tilewise.runtime.question import arg_form

NAMES = ("x", "w", "b", "c", "r", "i", "a")
ENGINES: dict[str, Engine] = {
    "numba_cuda": NumbaCudaEngine(),
    "cuda_cpp": CudaCppEngine(),
}
KERNELS = (
    "numba_cuda/global",
    *(
        f"numba_cuda/shared tile={tile} rows={rows}"
        for tile in (8, 16, 32)
        for rows in (1, 2, 4)
    ),
    "cuda_cpp/naive",
    *(
        f"cuda_cpp/simt tile={tile}"
        for tile in ("64x64x16", "128x128x16", "128x64x16", "64x128x16", "32x32x32")
    ),
)
LAYOUTS = ("C C", "F F", "S S", "P F", "F P", "R C", "T T")
"""x and w: C and F order, strided, padded rows, reversed, transposed in the kernel."""
SIZES = ("1", "tile-1", "tile", "tile+1", "primes", "k=0", "vector", "m=n")
VALUES = ("exact", "special", "random")
DTYPES = ("float32", "float64")
LANDINGS = ("lazy", "eager")


def chosen(number: Any, steps: list[Any]) -> Any:
    """Return the number-th of some arrays, element by element."""
    result = steps[-1]
    for at in range(len(steps) - 2, -1, -1):
        result = np.where(number == at, steps[at], result)
    return result


def plain(x, w, b, c, r, i, a):
    """Return the product."""
    return x @ w


def bias(x, w, b, c, r, i, a):
    """Use operands of every kind and a number."""
    return np.maximum(x @ w * a + b, 0) * c + r


def smooth(x, w, b, c, r, i, a):
    """Use the smooth functions, one for each row."""
    from scipy.special import erf, expit

    z = x @ w
    return chosen(
        i,
        [np.exp(z), np.exp2(z), np.expm1(z), np.log(z), np.log1p(z), np.log2(z),
         np.sqrt(z), np.tanh(z), np.sin(z), np.cos(z), np.arctan(z), erf(z), expit(z)],
    )  # fmt: skip


def single(x, w, b, c, r, i, a):
    """Use the other functions of one operand."""
    z = x @ w
    return chosen(
        i,
        [np.negative(z), np.positive(z), np.absolute(z), np.square(z),
         np.reciprocal(z), np.sign(z), np.floor(z), np.rint(z), z**3,
         z.astype(np.float64).astype(np.float32) * 2],
    )  # fmt: skip


def double(x, w, b, c, r, i, a):
    """Use the functions of two operands."""
    z = x @ w
    return chosen(
        i,
        [z + b, z - b, z * b, z / b, z // b, z % b, np.power(z, b),
         np.maximum(z, b), np.minimum(z, b), np.hypot(z, b), np.logaddexp(z, b),
         np.heaviside(z, b)],
    )  # fmt: skip


def logic(x, w, b, c, r, i, a):
    """Use comparisons, truth values and integers."""
    z = x @ w
    less, more = z < b, z > c
    integer = chosen(i, [i & 6, i | 8, i ^ 5, ~i, np.absolute(-i), np.square(i)])
    return integer + chosen(
        i,
        [less, z <= b, more, z >= b, z == b, z != b, less & more, less | more,
         less ^ more, ~less, np.logical_and(z, b), np.logical_or(z, b),
         np.logical_not(z), np.isnan(z), np.isfinite(z)],
    )  # fmt: skip


def wide(x, w, b, c, r, i, a):
    """Widen float32 to float64 as NumPy does."""
    return (x @ w + b) * np.sqrt(2 / np.pi) + np.float64(0.1)


EPILOGUES: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (plain, bias, smooth, single, double, logic, wide)
}


@cache
def function_of(epilogue: str, transposed: bool) -> Callable[..., Any]:
    """Return the user's function, of x and w or of their transposes."""
    function = EPILOGUES[epilogue]
    if not transposed:
        return function

    def transposing(x, w, b, c, r, i, a):
        return function(x.T, w.T, b, c, r, i, a)

    return transposing


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    kernel: str
    epilogue: str
    layout: str
    size: str
    values: str
    dtype: str
    landing: str

    @property
    def variant(self) -> Variant:
        """The kernel as a variant."""
        return Variant.parse(self.kernel)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(m, n, k) around the kernel's own tile."""
        bm, bn, bk = tile_of(self.variant)
        return {
            "1": (1, 1, 1),
            "tile-1": (bm - 1, bn - 1, bk - 1),
            "tile": (bm, bn, bk),
            "tile+1": (bm + 1, bn + 1, 2 * bk + 1),
            "primes": (37, 53, 41),
            "k=0": (5, 7, 0),
            "vector": (bm + 4, bn + 8, 2 * bk + 4),
            "m=n": (19, 19, 19),
        }[self.size]


def tile_of(variant: Variant) -> tuple[int, int, int]:
    """Return the tile m x n x k of a kernel."""
    config = dict(variant.config)
    if variant.method == "shared":
        tile, rows = int(config["tile"]), int(config["rows"])
        return tile * rows, tile, tile
    if variant.method == "simt":
        m, n, k = (int(side) for side in str(config["tile"]).split("x"))
        return m, n, k
    return 16, 16, 1


def matrix(shape: tuple[int, int], layout: str, make: Callable[..., Any]) -> Any:
    """Return an array of a layout, as LAYOUTS names them."""
    m, n = shape
    if layout in "FT":
        return make((n, m)).T
    if layout == "P":
        return make((m, n + 4))[:, :n]
    if layout == "S":
        return make((2 * m, 3 * n))[::2, ::3]
    if layout == "R":
        return make((m, n))[::-1, ::-1]
    return make((m, n))


def arguments(case: Case) -> list[Any]:
    """Return host arguments of a case, always the same."""
    m, n, k = case.sizes
    random = np.random.default_rng(7)

    def make(shape: tuple[int, ...]) -> Any:
        if case.values == "random":
            return random.standard_normal(shape).astype(case.dtype)
        return (random.integers(-6, 7, shape) / 4).astype(case.dtype)

    layouts = case.layout.split()
    x, w = (
        matrix(shape, layout, make)
        for shape, layout in zip(((m, k), (k, n)), layouts, strict=True)
    )
    operands = [make((n,)), make((m, 1)), matrix((m, n), "S", make)]
    if case.values == "special":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], case.dtype)
        for array in (x, *operands):
            hit = random.random(array.shape) < 0.15
            some = special[:5] if array is x else special  # 1e-40 makes sums inexact
            array[hit] = random.choice(some, int(hit.sum()))
    if layouts[0] == "T":
        x, w = x.T, w.T
    which = np.arange(m * n, dtype=np.int32).reshape(m, n) % 15
    return [x, w, *operands, which, 0.75]


@cache
def problem_at(function: Callable[..., Any], case: Case) -> Problem:
    """Return the problem of a case."""
    args = arguments(case)
    forms = {n: arg_form(n, v) for n, v in zip(NAMES, args, strict=True)}
    posed = pose(match(trace(function, forms), NAMES), args)
    assert isinstance(posed, Problem), posed
    return posed


Key: TypeAlias = tuple[str, ...]
ARTIFACTS: dict[Key, Artifact] = {}
RUNS: dict[Key, Any] = {}
KEPT = 16
"""What is kept of each at most: a kernel, epilogue and dtype has 10 runs."""


def kept(cache: dict[Key, Any], key: Key, make: Callable[[], Any]) -> Any:
    """Return what was made for a key; the oldest makes room."""
    if key not in cache:
        if len(cache) >= KEPT:
            del cache[next(iter(cache))]
        cache[key] = make()
    return cache[key]


def run_of(case: Case, arch: str) -> Any:
    """Build a case's kernel once for the same source, and load it once for a spec."""
    function = function_of(case.epilogue, case.layout == "T T")
    problem, target = problem_at(function, case), cuda_target(arch)
    engine, variant = ENGINES[case.variant.engine], case.variant
    reason = engine.rejects(variant, problem, target)
    if reason is not None:
        return reason
    parts = dict(engine.key_parts(variant, problem, target))
    source = (case.kernel, arch, parts["source"], parts["types"])

    def load() -> Any:
        built = kept(ARTIFACTS, source, lambda: engine.build(variant, problem, target))
        # Its check is tested apart.
        return engine.load(replace(built, verified=("emulated",)), variant, problem)

    return kept(RUNS, (*source, parts["spec"]), load)


def difference(case: Case, arch: str = "sm_90") -> str:
    """Run a case; returns "" where it equals NumPy, or what differs."""
    run = run_of(case, arch)
    if isinstance(run, str):
        return run
    function, args = function_of(case.epilogue, case.layout == "T T"), arguments(case)
    with np.errstate(all="ignore"):
        expected = function(*args)
    chosen_device().options = Options(lazy=case.landing == "lazy")
    out = np.full(expected.shape, 77, expected.dtype)
    run(*args, out)
    return compared(case, expected, out)


def compared(case: Case, expected: Any, out: Any) -> str:
    """Compare within a few ulp, and with k of them for inexact sums."""
    k = case.sizes[2] if case.values == "random" else 0
    bound = float(np.finfo(case.dtype).eps) * (16 + 8 * k)
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(out, expected, rtol=bound, atol=bound, equal_nan=True)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size}, at {at}: {out[at]!r}, not {expected[at]!r}"
