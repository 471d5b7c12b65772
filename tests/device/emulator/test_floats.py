"""Float arithmetic rounds once, in all modes, as libm and the FPU do."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator import floats

MODES = ("rn", "rz", "rm", "rp")
KINDS = (np.float32, np.float64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_fma_is_fused(oracle, kind, mode):
    """The result of a * b + c is rounded once, also near ties and cancellations."""
    function = {np.float32: floats.fma_f32, np.float64: floats.fma_f64}[kind](mode)
    a, b, c = oracle.triples(kind, 2000)
    if kind is np.float64 and mode != "rn":
        a, b, c = (x[::9] for x in (a, b, c))  # exact rationals are slow

    with np.errstate(all="ignore"):
        found = function(a, b, c)

    assert "" == oracle.same(found, oracle.fma(a, b, c, mode))


def test_fma_of_ties_rounds_once(oracle):
    """A sum that float64 rounds to a float32 tie still goes the right way."""
    a = np.float32(1 + 2**-12)
    b = np.float32(1 + 2**-12)
    c = np.array([2.0**-60, -(2.0**-60), 0.0], np.float32) + np.float32(0)

    found = floats.fma_f32("rn")(np.full(3, a), np.full(3, b), c)

    assert "" == oracle.same(found, oracle.fma(np.full(3, a), np.full(3, b), c))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_two_operands_round_once(oracle, name, kind, mode):
    """+, * and / follow the mode as the FPU does."""
    suffix = "f32" if kind is np.float32 else "f64"
    a, b, _ = oracle.triples(kind, 2000)
    if kind is np.float64 and mode != "rn":
        a, b = a[::9], b[::9]
    operation = {"add": np.add, "mul": np.multiply, "div": np.divide}[name]

    with np.errstate(all="ignore"):
        found = getattr(floats, f"{name}_{suffix}")(mode)(a, b)
    with oracle.rounding(mode):
        expected = operation(a, b)

    assert "" == oracle.same(found, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_square_root_rounds_once(oracle, kind, mode):
    """Sqrt follows the mode as the FPU does."""
    suffix = "f32" if kind is np.float32 else "f64"
    a = oracle.triples(kind, 500)[0]

    with np.errstate(all="ignore"):
        found = getattr(floats, f"sqrt_{suffix}")(mode)(a)
    with oracle.rounding(mode):
        expected = np.sqrt(a)

    assert "" == oracle.same(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_flush_keeps_the_sign(oracle, kind):
    """Subnormals become zeros of their sign, the smallest normal stays."""
    tiny = np.finfo(kind).tiny
    x = np.array([tiny / 2, -tiny / 2, tiny, -tiny, 0.0, np.inf, np.nan], kind)
    expected = np.array([0.0, -0.0, tiny, -tiny, 0.0, np.inf, np.nan], kind)

    assert "" == oracle.same(floats.flush(x), expected)


def test_saturate_clamps_and_drops_nan(oracle):
    """Values are clamped to [0, 1]; NaN and -0 become +0."""
    x = np.array([-1.0, -0.0, 0.25, 1.5, np.inf, -np.inf, np.nan], np.float32)
    expected = np.array([0.0, 0.0, 0.25, 1.0, 1.0, 0.0, 0.0], np.float32)

    assert "" == oracle.same(floats.saturate(x), expected)


def test_extremes_order_zeros_and_drop_nan(oracle):
    """+0 is above -0, and a number wins against NaN."""
    a = np.array([0.0, -0.0, np.nan, 1.0, np.nan, -2.0], np.float32)
    b = np.array([-0.0, 0.0, 1.0, np.nan, np.nan, 3.0], np.float32)
    high = np.array([0.0, 0.0, 1.0, 1.0, np.nan, 3.0], np.float32)
    low = np.array([-0.0, -0.0, 1.0, 1.0, np.nan, -2.0], np.float32)

    assert "" == oracle.same(floats.maximum(a, b), high)
    assert "" == oracle.same(floats.minimum(a, b), low)


def test_odd_sum_keeps_what_was_lost(oracle):
    """An inexact sum has an odd last bit, on the side of the exact sum."""
    with np.errstate(all="ignore"):
        found = floats.odd_sum(np.float64(1), np.array([2.0**-80, -(2.0**-80), 0.0]))

    assert [1 + 2.0**-52, 1 - 2.0**-53, 1.0] == found.tolist()
