"""What counts as right: centres, radii and kinds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tuner import contestants as c
from tilewise.tuner.expect import expect, limits, narrowest, widened


def test_the_centre_is_the_wider_result() -> None:
    """The centre is what float64 gives for the same numbers."""
    posed = c.case()
    wide = c.dense(*(a.astype(np.float64) for a in posed.args))
    found = expect(posed, posed.args, likely=False)
    assert np.array_equal(wide, found.centre)


def test_near_a_pole_the_radius_grows() -> None:
    """Next to a zero of the divisor more is right than far from it."""
    posed = c.case(lambda x, w, b: 1 / (x @ w))
    found = expect(posed, posed.args, likely=False)
    near, far = np.argmax(np.abs(found.centre)), np.argmin(np.abs(found.centre))
    assert found.radius.flat[near] > found.radius.flat[far]


@pytest.mark.filterwarnings("ignore:overflow")
def test_overflow_may_be_infinite_or_not() -> None:
    """A result next to the largest float32 may be finite or infinite."""
    top = np.float32(np.finfo(np.float32).max)
    posed = c.case(lambda x, w, b: np.exp(0 * (x @ w) + np.log(top)))
    found = expect(posed, posed.args, likely=False)
    assert {1 | 4} == set(found.kinds.ravel().tolist())


def test_reads_tolerances() -> None:
    """A number is relative and absolute, a pair is both, nothing is the bound."""
    assert (0.1, 0.1) == limits(0.1)
    assert (0.1, 0.2) == limits((0.1, 0.2))
    assert (None, 0.0) == limits(None)


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [("f2", "f8"), ("f4", "f8"), ("f8", "longdouble"), ("i4", "i4"), ("F", "D")],
)
def test_widens_floats_alone(dtype: str, wide: str) -> None:
    """Floating and complex arguments are widened, integers stay."""
    assert np.dtype(wide) == widened(np.zeros(2, dtype)).dtype


def test_python_numbers_stay() -> None:
    """A Python number is weak in any precision."""
    assert type(widened(0.5)) is float


def test_the_least_precise_argument_sets_the_bound() -> None:
    """Among float16 and float64 arguments the bound is that of float16."""
    args = [np.zeros(2, "f8"), np.zeros(2, "f2"), np.zeros(2, "i8"), 0.5]
    assert np.dtype("f2") == narrowest(args, np.dtype("f8"))
