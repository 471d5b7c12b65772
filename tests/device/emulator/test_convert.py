"""cvt rounds, clamps and cuts as the ISA says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tilewise.device.emulator.convert import converter, pair_converter
from tilewise.device.emulator.types import DTYPES

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def _whole(value, mode):
    exact = Fraction(value)
    floor = math.floor(exact)
    return {
        "rzi": math.trunc(exact),
        "rmi": floor,
        "rpi": math.ceil(exact),
        "rni": round(exact),
    }[mode]


def _floats(kind):
    random = np.random.default_rng(1)
    values = random.standard_normal(400) * np.exp2(random.integers(-3, 66, 400))
    halves = random.integers(-300, 300, 200) / 2
    edges = [0.5, -0.5, 127.5, 255.5, 2.0**31, 2.0**31 - 1, 2.0**32, 2.0**63, 2.0**64]
    extra = [np.inf, -np.inf, np.nan, -0.0]
    with np.errstate(over="ignore"):
        return np.concatenate(
            [values, halves, edges, np.negative(edges), extra]
        ).astype(kind)


@pytest.mark.parametrize("mode", ["rzi", "rni", "rmi", "rpi"])
@pytest.mark.parametrize("d", INTEGERS)
@pytest.mark.parametrize("s", ["f16", "f32", "f64"])
def test_floats_become_integers(s, d, mode):
    """Values round by the mode, clamp to the range, and NaN is 0."""
    x = _floats(DTYPES[s])
    info = np.iinfo(DTYPES[d])
    expected = []
    for value in x.tolist():
        if math.isnan(value):
            expected.append(0)
        elif math.isinf(value):
            expected.append(info.max if value > 0 else info.min)
        else:
            expected.append(min(max(_whole(value, mode), info.min), info.max))

    with np.errstate(all="ignore"):
        found = converter({"r": mode, "d": d, "s": s})(x)

    assert (DTYPES[d], expected) == (found.dtype, found.tolist())


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("s", ["s32", "u32", "s64", "u64"])
def test_integers_become_floats(oracle, s, mode):
    """f32 and f64 are the neighbour of the mode, as the FPU rounds."""
    random = np.random.default_rng(2)
    info = np.iinfo(DTYPES[s])
    x = random.integers(info.min, info.max, 500, DTYPES[s], endpoint=True)
    x = np.concatenate([x, np.array([0, 1, info.max, info.min], DTYPES[s])])
    digits = {"f32": (24, -149, 3.4028234663852886e38), "f64": (53, -1074, 1.7e308)}

    for d, limits in digits.items():
        expected = [oracle.round_exact(Fraction(v), *limits, mode) for v in x.tolist()]
        with np.errstate(all="ignore"):
            found = converter({"r": mode, "d": d, "s": s})(x)

        assert expected == found.astype(float).tolist()


@pytest.mark.parametrize("d", INTEGERS)
@pytest.mark.parametrize("s", INTEGERS)
def test_integers_clamp_or_are_cut(s, d):
    """`.sat` clamps to the narrower range, otherwise high bits are dropped."""
    info, target = np.iinfo(DTYPES[s]), np.iinfo(DTYPES[d])
    x = np.array([info.min, info.max, 0, 1, 100, info.max // 2 + 1], DTYPES[s])
    clamped = [min(max(v, target.min), target.max) for v in x.tolist()]

    cut = converter({"d": d, "s": s})(x)
    saturated = converter({"d": d, "s": s, "sat": "sat"})(x)

    bits = 8 * DTYPES[d].itemsize
    expected = [v & ((1 << bits) - 1) for v in x.tolist()]
    assert expected == cut.view(f"u{bits // 8}").tolist()
    assert clamped == saturated.tolist()


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_float64_narrows_as_the_fpu_does(oracle, mode):
    """f32 of f64 follows the mode, subnormals and overflow included."""
    x = oracle.triples(np.float64, 2000)[0] * 1e-3

    with np.errstate(all="ignore"):
        found = converter({"r": mode, "d": "f32", "s": "f64"})(x)
    with oracle.rounding(mode):
        expected = x.astype(np.float32)

    assert "" == oracle.same(found, expected)


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ({"d": "s32", "s": "f32"}, "rounding to an integer"),
        ({"d": "f32", "s": "s32"}, "rounding mode"),
        ({"d": "f16", "s": "f32"}, "rounding mode"),
        ({"r": "rn", "d": "f64", "s": "f32"}, "wider"),
        ({"r": "rn", "d": "s32", "s": "s64"}, "integers"),
        ({"r": "rm", "d": "tf32", "s": "f32"}, "tf32"),
        ({"d": "s32", "s": "s64", "relu": "relu"}, "relu"),
    ],
)
def test_what_the_isa_does_not_have_is_named(groups, word):
    """A combination without meaning is a reason, not a result."""
    assert word in converter(groups)


def test_saturation_and_flushing_go_with_the_conversion():
    """`.sat` clamps to [0, 1]; `.ftz` drops subnormals; `.relu` drops negatives."""
    x = np.array([-1.0, 2.0, np.nan, 0.5], np.float32)
    small = np.array([1e-40], np.float32)

    saturated = converter({"d": "f32", "s": "f32", "sat": "sat"})(x)
    flushed = converter({"d": "f32", "s": "f32", "ftz": "ftz"})(small)
    relu = converter({"r": "rn", "d": "f16", "s": "f32", "relu": "relu"})(x[:2])

    assert [0.0, 1.0, 0.0, 0.5] == saturated.tolist()
    assert [0.0] == flushed.tolist()
    assert [0.0, 2.0] == relu.tolist()


def test_a_pair_puts_its_first_operand_above():
    """cvt.rn.f16x2.f32 d, a, b has a in the upper half."""
    convert = pair_converter({"d": "f16x2", "r": "rn"})
    found = convert(np.array([1.0], np.float32), np.array([-2.0], np.float32))

    assert 0x3C00C000 == int(found[0])
