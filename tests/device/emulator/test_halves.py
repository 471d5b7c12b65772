"""f16, bf16 and tf32 round once, as exact rationals do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tilewise.device.emulator import halves

MODES = ("rn", "rz", "rm", "rp")
#: Digits of the fraction with the leading one, smallest power, largest value.
F16 = (11, -24, 65504.0)
BF16 = (8, -133, 3.3895313892515355e38)


def _bf16(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _cases():
    random = np.random.default_rng(3)
    values = random.standard_normal(3000) * np.exp2(random.integers(-40, 40, 3000))
    ties = np.ldexp(random.integers(-(2**13), 2**13, 2000), random.integers(-30, 5))
    edge = [65504.0, 65519.9, 65520.0, 6e-8, 2.98e-8, 2.99e-8, 1e-46, 3.4e38, 3.39e38]
    return np.concatenate([values, ties, edge, np.negative(edge)])


@pytest.mark.parametrize("mode", MODES)
def test_float64_narrows_to_f16(oracle, mode):
    """Each mode gives the neighbour that exact arithmetic gives."""
    x = _cases()
    expected = [oracle.round_exact(Fraction(v), *F16, mode) for v in x.tolist()]

    with np.errstate(all="ignore"):
        found = halves.narrow_f16(x, mode)

    assert expected == found.astype(float).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_float64_narrows_to_bf16(oracle, mode):
    """Each mode gives the neighbour that exact arithmetic gives."""
    x = _cases()
    expected = [oracle.round_exact(Fraction(v), *BF16, mode) for v in x.tolist()]

    with np.errstate(all="ignore"):
        found = halves.from_bf16(halves.narrow_bf16(x, mode))

    assert expected == found.astype(float).tolist()


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_float32_narrows_to_tf32(oracle, mode):
    """tf32 keeps 10 bits of the fraction."""
    x = _cases().astype(np.float32)
    x = x[(np.abs(x) < 3.4e38) & (np.abs(x) > 2.0**-126)]
    largest = float(np.array(0x7F7FE000, np.uint32).view(np.float32))
    expected = [
        oracle.round_exact(Fraction(v), 11, -136, largest, mode) for v in x.tolist()
    ]

    found = halves.narrow_tf32(x, mode).view(np.float32)

    assert expected == found.astype(float).tolist()


def test_nan_and_infinity_stay():
    """NaN becomes the canonical bf16 NaN, infinities keep their sign."""
    x = np.array([np.nan, np.inf, -np.inf])

    assert [0x7FFF, 0x7F80, 0xFF80] == halves.narrow_bf16(x, "rn").tolist()


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_half_fma_rounds_once(oracle, type_):
    """A * b + c of halves is one rounding of the exact value."""
    random = np.random.default_rng(5)
    a, b, c = random.standard_normal((3, 3000)) * np.exp2(random.integers(-9, 9, 3000))
    if type_ == "f16":
        a, b, c = (x.astype(np.float16) for x in (a, b, c))
        exact = (a.astype(float), b.astype(float), c.astype(float))
    else:
        a, b, c = (_bf16(x) for x in (a, b, c))
        exact = tuple(halves.from_bf16(x).astype(float) for x in (a, b, c))
    rows = zip(*(x.tolist() for x in exact), strict=True)
    sums = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in rows]
    limits = F16 if type_ == "f16" else BF16
    expected = [oracle.round_exact(s, *limits, "rn") for s in sums]

    found = halves.half_op(type_, halves.fma)(a, b, c)
    value = halves.from_bf16(found) if type_ == "bf16" else found

    assert expected == value.astype(float).tolist()


def test_packed_halves_are_two_single_ones():
    """f16x2 works on the lower and the upper half apart."""
    low, high = np.float16(1.5), np.float16(-2.25)
    pair = halves.join(np.array([low]), np.array([high]))

    found = halves.half_op("f16x2", halves.add)(pair, pair)
    parts = [half.view(np.float16).item() for half in halves.split(found)]

    assert [3.0, -4.5] == parts


@pytest.mark.parametrize(("tail", "expected"), [(1, 0x3F91), (-1, 0x3F90)])
def test_a_tail_below_float64_still_breaks_a_tie(tail, expected):
    """A product that ends on a bf16 tie goes where a tiny addend points."""
    a, c = _bf16([1 + 2.0**-4]), _bf16([tail * 2.0**-100])

    assert expected == int(halves.half_op("bf16", halves.fma)(a, a, c)[0])
