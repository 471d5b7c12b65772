"""Verification: each fault is found, with its reason, and nothing right is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.expressions import arguments, random_kernel
from tests.tuner import contestants as c
from tilewise.tuner import nudge
from tilewise.tuner.contest import Case
from tilewise.tuner.verify import prepare, verify


def test_accepts_numpy_itself() -> None:
    """What NumPy computes in the same precision is right."""
    verdict = verify(c.right, c.case())
    assert ("right", "") == (verdict.status, verdict.reason)


def test_reports_an_error_below_one_for_what_is_right() -> None:
    """The error is in units of the bound."""
    error = verify(c.right, c.case()).error
    assert error is not None
    assert 0 < error < 1


REASONS = {
    c.half_writer: "leaves 6 of 54 elements unwritten (your arguments)",
    c.outside_writer: "writes outside its output (your arguments)",
    c.input_changer: "changes argument 3 (your arguments)",
    c.input_returner: "returns argument 1 instead of its output (your arguments)",
    c.another_returner: "returns ndarray instead of its output (your arguments)",
    c.raiser: "raises ValueError: no such tile",
}


@pytest.mark.parametrize("run", REASONS, ids=lambda run: run.__name__)
def test_names_the_fault(run: Any) -> None:
    """A run that breaks the contract is refused with what it did."""
    assert REASONS[run] == verify(run, c.case()).reason


@pytest.mark.parametrize(
    "run",
    [c.off_by_a_thousandth, c.bias_forgetter, c.lower_precision],
    ids=lambda run: run.__name__,
)
def test_refuses_wrong_numbers(run: Any) -> None:
    """A run whose numbers are off is wrong, by more than the bound."""
    verdict = verify(run, c.case())
    assert "wrong" == verdict.status
    assert verdict.error is not None
    assert verdict.error > 1


def test_refuses_what_adds_to_its_output() -> None:
    """A run that relies on what is in the output is wrong: it finds poison."""

    def accumulator(x: Any, w: Any, b: Any, out: Any) -> Any:
        out += x @ w
        return out

    assert "wrong" == verify(accumulator, c.case(lambda x, w, b: x @ w)).status


@pytest.mark.parametrize("run", [c.nan_dropper, c.inf_dropper])
def test_is_aware_of_nan_and_inf(run: Any) -> None:
    """A run that drops NaN or infinities is wrong on the special values."""
    verdict = verify(run, c.case())
    assert "wrong" == verdict.status
    assert verdict.reason.endswith("(special values)")


def test_says_where_a_result_is_wrong() -> None:
    """The reason names the worst element, its value, what is right, and the trial."""

    def one_off(x: Any, w: Any, b: Any, out: Any) -> Any:
        c.right(x, w, b, out)
        out[2, 3] = 99
        return out

    reason = verify(one_off, c.case()).reason
    assert reason.startswith("at [2, 3]: 99 where ")


@pytest.mark.parametrize("k", [1, 64, 4096, 65536])
def test_the_bound_grows_with_k(k: int) -> None:
    """NumPy's float32 is right and one that is off by 1e-3 wrong, up to k = 65536."""
    posed = c.case(shape=(2, 3, k))
    assert verify(c.right, posed).ok
    assert not verify(c.off_by_a_thousandth, posed).ok


def test_finds_low_precision_at_large_k() -> None:
    """Factors rounded to TF32 are found at k = 65536, where the bound is wide."""
    assert "wrong" == verify(c.lower_precision, c.case(shape=(2, 3, 65536))).status


def test_accepts_sums_in_any_order() -> None:
    """A sum taken from the other end in steps of one is right, though not NumPy's."""

    def sequential(x: Any, w: Any, b: Any, out: Any) -> Any:
        out[...] = 0
        for i in reversed(range(x.shape[1])):
            out += x[:, i, None] * w[i]
        np.add(out, b, out=out)
        return np.maximum(out, 0, out=out)

    assert "" == verify(sequential, c.case(shape=(4, 5, 300))).reason


def test_judges_float64_by_a_wider_precision() -> None:
    """Float64 results that were computed in float32 are wrong."""

    def narrow(x: Any, w: Any, b: Any, out: Any) -> Any:
        with np.errstate(all="ignore"):
            out[...] = c.dense(*(a.astype(np.float32) for a in (x, w, b)))
        return out

    assert "wrong" == verify(narrow, c.case(dtype="float64")).status


EPILOGUES = {
    "exp": lambda x, w, b: np.exp(x @ w + b),
    "reciprocal": lambda x, w, b: 1 / (x @ w + b),
    "floor": lambda x, w, b: np.floor((x @ w) * 4),
    "comparison": lambda x, w, b: x @ w > b,
    "to integers": lambda x, w, b: (np.clip(x @ w, -9, 9) * 4).astype(np.int32),
    "remainder": lambda x, w, b: (x @ w) % 0.5,
    "cancelling": lambda x, w, b: (x @ w + 1000) - 1000,
    "root": lambda x, w, b: np.sqrt(x @ w),
}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("k", [8, 1000])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_follows_the_epilogue(name: str, k: int) -> None:
    """NumPy with the sum in another order is right through any epilogue."""
    function = EPILOGUES[name]

    def reordered(x: Any, w: Any, b: Any, out: Any) -> Any:
        out[...] = function(x[:, ::-1].copy(), w[::-1].copy(), b)
        return out

    assert "" == verify(reordered, c.case(function, (40, 50, k))).reason


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_allows_flips_only_near_the_step() -> None:
    """A comparison that is flipped where its sides are apart is wrong."""

    def flipped(x: Any, w: Any, b: Any, out: Any) -> Any:
        np.greater(x @ w, b, out=out)
        out[0, 0] = not out[0, 0]
        return out

    verdict = verify(flipped, c.case(EPILOGUES["comparison"]))
    assert "wrong" == verdict.status


def test_accepts_random_kernels_computed_in_another_way() -> None:
    """150 random epilogues, evaluated in float64 and rounded, are right in float32."""
    reasons = []
    for seed in range(150):
        function, source = random_kernel(seed)
        args = tuple(arguments(seed, "float32"))
        with np.errstate(all="ignore"):
            try:
                result = np.asarray(function(*map(np.copy, args[:-1]), args[-1]))
            except (TypeError, ValueError, DeprecationWarning):
                continue
        posed = Case(args, function, None, result.shape, result.dtype, 3)

        def wider(*given: Any, function: Any = function) -> Any:
            *arrays, alpha, out = given
            with np.errstate(all="ignore"):
                out[...] = function(*(a.astype(np.float64) for a in arrays), alpha)
            return out

        verdict = verify(wider, posed)
        reasons += [] if verdict.ok else [(source, verdict.reason)]
    assert [] == reasons


@pytest.mark.parametrize("size", [(0, 4, 4), (4, 0, 4), (4, 4, 0)])
def test_takes_empty_axes(size: tuple[int, int, int]) -> None:
    """Nothing to compute, or the epilogue of zeros, is right."""
    assert "right" == verify(c.right, c.case(shape=size)).status


def test_takes_scalars() -> None:
    """A result without axes is checked like any other."""

    def dot(x: Any, w: Any, out: Any) -> Any:
        out[()] = x @ w
        return out

    x = np.arange(6, dtype=np.float32)
    posed = Case((x, x + 1), lambda x, w: x @ w, None, (), x.dtype, 6)
    assert "right" == verify(dot, posed).status


def test_tries_the_callers_layouts() -> None:
    """A run that assumes contiguous arguments is wrong for others."""

    def contiguous(x: Any, w: Any, b: Any, out: Any) -> Any:
        flat = np.lib.stride_tricks.as_strided(x, strides=(x.shape[1] * 4, 4))
        return c.right(flat, w, b, out)

    posed = c.case()
    x = np.asfortranarray(posed.args[0])
    posed = c.case(args=(x, *posed.args[1:]))
    assert "wrong" == verify(contiguous, posed).status


def test_finds_reads_beyond_an_argument() -> None:
    """Memory around the arguments is NaN, so that reading it shows."""

    def beyond(x: Any, w: Any, b: Any, out: Any) -> Any:
        shifted = np.lib.stride_tricks.as_strided(b, (len(b) + 1,))[1:]
        return c.right(x, w, shifted, out)

    assert "wrong" == verify(beyond, c.case()).status


def test_leaves_the_callers_arguments() -> None:
    """A run that spoils its arguments never touches the caller's."""
    posed = c.case()
    before = [a.copy() for a in posed.args]
    verify(c.input_changer, posed)
    assert all(map(np.array_equal, before, posed.args))


def test_keeps_the_callers_integers() -> None:
    """Integers may be indices: only the caller's own are tried."""
    seen = []

    def take(x: Any, w: Any, i: Any, out: Any) -> Any:
        seen.append(i.tolist())
        out[...] = (x @ w)[i]
        return out

    random = np.random.default_rng(0)
    x, w = (random.standard_normal((4, 4)).astype(np.float32) for _ in "xw")
    index = np.array([3, 1])
    posed = Case((x, w, index), lambda x, w, i: (x @ w)[i], None, (2, 4), x.dtype, 4)
    assert verify(take, posed).ok
    assert [[3, 1]] == [list(i) for i in dict.fromkeys(map(tuple, seen))]


def test_takes_a_tolerance() -> None:
    """A tolerance of 1 % accepts what is off by a thousandth."""
    assert verify(c.off_by_a_thousandth, c.case(tolerance=1e-2)).ok
    assert not verify(c.off_by_a_thousandth, c.case(tolerance=(1e-5, 0.0))).ok


def test_takes_a_tolerance_function() -> None:
    """A function of (actual, expected) decides alone."""
    assert verify(c.off_by_a_thousandth, c.case(tolerance=lambda a, e: True)).ok
    verdict = verify(c.right, c.case(tolerance=lambda a, e: False))
    assert "a result where what tolerance= accepts is right" in verdict.reason


def test_takes_a_wider_function() -> None:
    """A function that is given for wider precision is asked instead."""
    posed = c.case(wider=lambda x, w, b: c.dense(*(a.astype("f8") for a in (x, w, b))))
    assert verify(c.right, posed).ok


def test_takes_functions_that_refuse_subclasses() -> None:
    """A function that insists on plain arrays is its own oracle, in wider precision."""

    def plain(x: Any, w: Any, b: Any) -> Any:
        assert type(x) is np.ndarray
        return c.dense(x, w, b)

    posed = c.case(plain)
    assert "right" == verify(c.right, posed).status
    assert "wrong" == verify(c.bias_forgetter, posed).status


LARGE = (520, 512, 512)
"""Sizes from which the wide product is taken in some rows only."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_finds_one_wrong_element_of_a_large_result(dtype: str) -> None:
    """A row that is not taken in wide precision is checked against NumPy's product."""
    posed = c.case(lambda x, w, b: x @ w + b, LARGE, dtype)

    def lacking(x: Any, w: Any, b: Any, out: Any) -> Any:
        np.add(np.matmul(x, w, out=out), b, out=out)
        out[261, 77] -= x[261, 0] * w[0, 77]
        return out

    verdict = verify(lacking, posed)
    assert "at [261, 77]" in verdict.reason


@pytest.mark.parametrize("run", [c.right, c.lower_precision])
def test_judges_a_large_result(run: Any) -> None:
    """What is right passes; TF32 shows in the rows that are looked at closely."""
    assert (run is c.right) == verify(run, c.case(shape=LARGE)).ok


def test_large_products_are_wide_in_some_rows_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No product in wider precision has more than 64 rows."""
    rows: list[int] = []
    wide = nudge.product

    def counted(x: Any, w: Any) -> Any:
        rows.append(len(x))
        return wide(x, w)

    monkeypatch.setattr(nudge, "product", counted)
    prepare(c.case(shape=LARGE))
    assert 0 < max(rows) <= 64


def test_says_what_would_allow_more() -> None:
    """A number that is off by a little names the option that states another bound."""
    reason = verify(c.off_by_a_thousandth, c.case()).reason
    assert reason.endswith("(your arguments); tolerance= states another bound")


def test_one_that_changed_an_argument_does_not_spoil_the_next() -> None:
    """Contestants share copies of the arguments, but not one that was changed."""
    posed = c.case()
    exam = prepare(posed)

    def changing(x: Any, w: Any, b: Any, out: Any) -> Any:
        x += 1
        return c.right(x, w, b, out)

    for run, status in ((c.right, "right"), (changing, "wrong"), (c.right, "right")):
        assert status == verify(run, posed, exam).status


def test_one_that_raises_does_not_spoil_the_next() -> None:
    """What it changed before it raised is not seen by the others."""
    posed = c.case()
    exam = prepare(posed)

    def raising(x: Any, w: Any, b: Any, out: Any) -> Any:
        x += 1
        raise ValueError

    for run, status in ((raising, "failed"), (c.right, "right")):
        assert status == verify(run, posed, exam).status
