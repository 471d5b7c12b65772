"""The CPU engine: each method's values are those of the user's own function."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.expressions import arguments, random_kernel
from tests.model.test_trace import NAMES, forms
from tilewise.device.target import cpu_target
from tilewise.engines.cpu.engine import CpuEngine
from tilewise.errors import EngineError, UnsupportedOp
from tilewise.model.problem import Problem, pose
from tilewise.model.spec import match
from tilewise.model.trace import trace
from tilewise.model.variant import Variant

ENGINE = CpuEngine()
METHODS = ("blas_serial", "small", "packed")


def problem_of(function: Callable[..., Any], args: Any, names: Any = None) -> Problem:
    """Pose a function at arguments."""
    if names is None:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
    spec = match(trace(function, forms(*args, names=names)), names)
    posed = pose(spec, args)
    assert isinstance(posed, Problem), posed
    return posed


def run(problem: Problem, method: str, args: Any, out: Any = None) -> Any:
    """Build, load and run one method on a poisoned output."""
    threads = (("threads", 2),) if method == "packed" else ()
    variant = Variant("cpu", method, threads)
    artifact = ENGINE.build(variant, problem, cpu_target())
    if out is None:
        out = np.full(problem.shape, 77, problem.spec.dtype)
    return ENGINE.load(artifact, variant, problem)(*args, out)


def served(seed: int, dtype: str) -> tuple[Any, Any, Any] | None:
    """Return a random kernel's arguments, value and problem, or None if unfused."""
    function, _ = random_kernel(seed)
    args = arguments(seed, dtype, (9, 8, 7))
    args[0], args[1] = np.rint(args[0] * 2), np.rint(args[1] * 2)  # an exact product
    with np.errstate(all="ignore"):
        try:
            expected = function(*[np.copy(a)[()] for a in args[:-1]], args[-1])
            problem = problem_of(function, args, NAMES)
        except (TypeError, AttributeError, DeprecationWarning, UnsupportedOp):
            return None
    rejected = ENGINE.rejects(Variant("cpu", "small"), problem, cpu_target())
    return None if rejected else (args, expected, problem)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3000, 3016))
def test_random_kernels_equal_the_function(method: str, seed: int) -> None:
    """
    Values agree to the last digits; the products are exact by construction.

    One element in fifty may differ: floor, sign and comparisons turn a last digit of
    an exponential into another branch.
    """
    case = served(seed, ("float32", "float64")[seed % 2])
    if case is None:
        return
    args, expected, problem = case
    actual = run(problem, method, args)
    tolerance = 1e-4 if problem.spec.product_dtype == "float32" else 1e-10
    same = np.isclose(actual, expected, tolerance, 1e-6, equal_nan=True)
    assert expected.dtype == actual.dtype
    assert np.mean(same) >= 0.98


def dense(x: Any, w: Any, b: Any) -> Any:
    """Be the common kernel."""
    return np.maximum(x @ w + b, 0)


def inputs(m: int, n: int, k: int, dtype: str = "float32") -> list[Any]:
    """Return whole numbers, whose products are exact."""
    rng = np.random.default_rng(m + 10 * n + 100 * k)
    shapes = ((m, k), (k, n), (n,))
    return [rng.integers(-4, 5, s).astype(dtype) for s in shapes]


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "reversed": lambda a: a[::-1, ::-1],
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "transposed": lambda a: a.T.copy().T,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_the_factors_do_not_matter(method: str, layout: str) -> None:
    """Fortran order, negative and wide strides give the same values."""
    x, w, b = inputs(6, 9, 7)
    args = (LAYOUTS[layout](x), LAYOUTS[layout](w), b)
    assert np.array_equal(dense(*args), run(problem_of(dense, args), method, args))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layout", ["F", "reversed", "strided"])
def test_out_may_have_any_strides(method: str, layout: str) -> None:
    """The result lands where `out` says, and nowhere else."""
    args = inputs(6, 9, 7)
    room = np.full((18, 36), 77, np.float32)
    out = {
        "F": room[:9, :6].T,
        "reversed": room[5::-1, 8::-1],
        "strided": room[::3, ::4],
    }
    target = out[layout]
    before = room.copy()
    run(problem_of(dense, args), method, args, target)
    assert np.array_equal(dense(*args), target)
    target[:] = 77
    assert np.array_equal(before, room)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(9,), (1, 9), (6, 1), (6, 9), (1, 1), ()], ids=str)
def test_operands_broadcast_as_in_numpy(method: str, shape: tuple[int, ...]) -> None:
    """A row, a column, a matrix and a single element are told apart by shape."""
    x, w, _ = inputs(6, 9, 7)
    b = np.random.default_rng(0).integers(-9, 9, shape).astype("f4")
    args = (x, w, np.asarray(b))
    assert np.array_equal(dense(*args), run(problem_of(dense, args), method, args))


@pytest.mark.parametrize("method", METHODS)
def test_sizes_around_the_unrolling_are_right(method: str) -> None:
    """Every k from 0 to 9 and some odd m and n."""
    made: dict[str, Any] = {}
    for k in range(10):
        for m, n in ((1, 1), (3, 5), (0, 4), (4, 0), (17, 33)):
            args = inputs(m, n, k)
            problem = problem_of(dense, args)
            variant = Variant("cpu", method)
            source = str(ENGINE.key_parts(variant, problem, cpu_target()))
            if source not in made:
                artifact = ENGINE.build(variant, problem, cpu_target())
                made[source] = ENGINE.load(artifact, variant, problem)
            out = np.full((m, n), 77, np.float32)
            assert np.array_equal(dense(*args), made[source](*args, out))


@pytest.mark.parametrize("method", METHODS)
def test_scalars_are_read_at_each_call(method: str) -> None:
    """Python and NumPy numbers, and sizes in arithmetic."""

    def scaled(x: Any, w: Any, alpha: Any) -> Any:
        return x @ w * (alpha / x.shape[1])

    x, w, _ = inputs(4, 4, 4)
    for alpha in (2.0, 3, np.float32(0.5), np.float64(-1.5)):
        args = (x, w, alpha)
        actual = run(problem_of(scaled, args), method, args)
        expected = scaled(*args)
        assert expected.dtype == actual.dtype
        assert np.array_equal(expected, actual)


def test_a_widening_epilogue_gives_float64() -> None:
    """np.sqrt(2 / np.pi) widens where NumPy widens."""

    def wide(x: Any, w: Any) -> Any:
        return np.tanh(x @ w * np.sqrt(2 / np.pi))

    args = inputs(5, 6, 7)[:2]
    actual = run(problem_of(wide, args), "blas_serial", args)
    np.testing.assert_allclose(actual, wide(*args), rtol=1e-14)


def test_other_dtypes_are_rejected_by_name() -> None:
    """The reason names the argument, its dtype and what is fused."""
    args = [a.astype("float16") for a in inputs(3, 3, 3)]
    reason = ENGINE.rejects(
        Variant("cpu", "small"), problem_of(dense, args), cpu_target()
    )
    assert "x is float16; float32 and float64 are fused" == reason


@pytest.mark.parametrize("shape", [(1, 1, 1), (4096, 2, 4096), (512, 512, 512)])
def test_the_librarys_product_with_a_pass_always_competes(
    shape: tuple[int, int, int],
) -> None:
    """A fused product that is slower than BLAS and the epilogue loses to those."""
    m, n, k = shape
    args = np.empty((m, k)), np.empty((k, n)), np.empty(n)
    problem = problem_of(lambda x, w, b: np.tanh(x @ w + b), args)
    target = cpu_target()
    able = [v for v in ENGINE.variants(problem, target)
            if ENGINE.rejects(v, problem, target) is None]  # fmt: skip
    assert Variant("cpu", "blas_serial") in able


def test_an_identity_has_no_epilogue_to_fuse() -> None:
    """The product alone is NumPy's own business."""
    problem = problem_of(lambda x, w: x @ w, inputs(3, 3, 3)[:2])
    reason = ENGINE.rejects(Variant("cpu", "blas_serial"), problem, cpu_target())
    assert "there is no epilogue to fuse" == reason


def test_large_work_is_not_for_the_small_kernel() -> None:
    """The reason has the figures."""
    problem = problem_of(dense, inputs(256, 256, 512))
    reason = ENGINE.rejects(Variant("cpu", "small"), problem, cpu_target())
    assert "m*n*k=33554432 is over 16777216" == reason


def test_damaged_code_is_an_error_not_a_crash() -> None:
    """Bytes that are no object are refused before they run."""
    from dataclasses import replace

    problem, variant = problem_of(dense, inputs(3, 3, 3)), Variant("cpu", "small")
    artifact = ENGINE.build(variant, problem, cpu_target())
    for code in (artifact.code[:100], b"", b"\0" * 64):
        with pytest.raises(EngineError):
            ENGINE.load(replace(artifact, code=code), variant, problem)


def test_sizes_take_no_part_in_the_key() -> None:
    """What differs in sizes alone shares its code."""
    keys = [
        ENGINE.key_parts(Variant("cpu", "small"), problem_of(dense, a), cpu_target())
        for a in (inputs(3, 4, 5), inputs(30, 40, 50))
    ]
    assert keys[0] == keys[1]


WARM = """
import sys
sys.modules["numba"] = None
import numpy as np
from pathlib import Path
from tests.engines.cpu.test_engine import dense, inputs, problem_of, ENGINE
from tilewise.model.variant import Artifact, Variant
code = Path(sys.argv[1]).read_bytes()
args = inputs(5, 6, 7)
run = ENGINE.load(
    Artifact("object", "", code), Variant("cpu", "small"), problem_of(dense, args)
)
print(np.array_equal(run(*args, np.empty((5, 6), "f4")), dense(*args)))
"""


def test_code_is_loaded_without_numba(tmp_path: Any) -> None:
    """A process where numba can't be imported loads the object and is right."""
    problem = problem_of(dense, inputs(5, 6, 7))
    path = tmp_path / "code"
    path.write_bytes(ENGINE.build(Variant("cpu", "small"), problem, cpu_target()).code)
    done = subprocess.run(
        [sys.executable, "-c", WARM, str(path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "True\n" == done.stdout, done.stderr


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(9, 1), (8,), (9, 8), (1, 1)])
def test_bools_are_read_and_written(method: str, shape: tuple[int, ...]) -> None:
    """A mask as an operand and a comparison as the result, in any of their kinds."""
    random = np.random.default_rng(0)
    x, w = random.standard_normal((9, 7)), random.standard_normal((7, 8))
    mask = random.random(shape) < 0.5

    def either(x: Any, w: Any, mask: Any) -> Any:
        return np.where(mask, x @ w > 0.5, x @ w < -0.5)

    args = x, w, mask
    assert np.array_equal(either(*args), run(problem_of(either, args), method, args))
