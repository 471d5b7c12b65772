"""PTX types have the sizes and kinds of their names."""

from __future__ import annotations

from tilewise.device.emulator.types import (
    DTYPES,
    is_float,
    is_signed,
    size_of,
    widened,
)


def test_sizes_follow_the_names():
    """The number in a name is its bits; packed types hold two."""
    expected = {"u8": 1, "s16": 2, "b32": 4, "f64": 8, "f16x2": 4, "bf16": 2}

    assert expected == {name: size_of(name) for name in expected}


def test_kinds_are_told_apart():
    """Floats, signed integers, and what is twice as wide."""
    assert {"f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "tf32"} == {
        name for name in DTYPES if is_float(name)
    }
    assert {"s8", "s16", "s32", "s64"} == {n for n in DTYPES if is_signed(n)}
    assert ["u32", "s64"] == [widened("u16"), widened("s32")]
