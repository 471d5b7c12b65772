"""Exact rationals round to float64 in every mode."""

from __future__ import annotations

import math

import pytest

from tilewise.device.emulator import exact


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("rn", 1.0), ("rz", 1.0), ("rm", 1.0), ("rp", math.nextafter(1.0, 2.0))],
)
def test_a_lost_tail_moves_only_the_upward_mode(mode, expected):
    """1 + 2**-200 is 1 unless it is rounded up."""
    assert expected == exact.fma_f64(1.0, 1.0, 2.0**-200, mode)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("rn", math.inf), ("rz", 1.7976931348623157e308), ("rp", math.inf)],
)
def test_overflow_stops_at_the_largest_number_where_the_mode_says(mode, expected):
    """The largest product is infinite, or the largest float64 toward zero."""
    assert expected == exact.fma_f64(1e300, 1e300, 0.0, mode)


def test_an_infinite_addend_wins_over_a_finite_product():
    """A product that overflows float64 is still finite beside an infinity."""
    assert -math.inf == exact.fma_f64(1e300, 1e300, -math.inf, "rn")


def test_cancellation_is_negative_zero_downward_only():
    """X - x is -0 in mode rm and +0 in the others (IEEE 754, 6.3)."""
    signs = [math.copysign(1, exact.fma_f64(3.0, 1.0, -3.0, m)) for m in ("rm", "rn")]

    assert [-1.0, 1.0] == signs


def test_division_and_root_move_by_the_sign_of_their_error():
    """1/3 lies above its nearest float64, and the root of 2 below."""
    third, root = 1 / 3, math.sqrt(2)

    assert math.nextafter(third, 1) == exact.divide_f64(1.0, 3.0, "rp")
    assert third == exact.divide_f64(1.0, 3.0, "rm")
    assert math.nextafter(root, 0) == exact.sqrt_f64(2.0, "rz")
    assert root == exact.sqrt_f64(2.0, "rp")
