"""Variables are placed apart, aligned, with red zones around them."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.layout import RED_ZONE, lay_out, param_offsets
from tilewise.device.emulator.syntax import PtxError, Variable


def test_static_arrays_lie_apart_and_dynamic_memory_behind_them():
    """Offsets are multiples of the alignment; dynamic memory has no end yet."""
    variables = [
        Variable("a", "shared", 10, 1),
        Variable("b", "shared", 256, 128),
        Variable("other", "local", 64, 4),
        Variable("dynamic", "shared", 0, 16),
    ]

    frame = lay_out(variables, ("shared",))
    (first, second) = frame.regions

    assert {"a", "b", "dynamic"} == set(frame.offsets)
    assert (0, 0) == (frame.offsets["b"] % 128, frame.offsets["dynamic"] % 1024)
    assert second[0] - first[1] >= RED_ZONE
    assert frame.dynamic == frame.offsets["dynamic"] >= second[1] + RED_ZONE
    assert frame.nbytes >= frame.dynamic + RED_ZONE


def test_nothing_declared_has_no_regions():
    """A kernel without variables has an empty frame."""
    frame = lay_out([], ("local",))

    assert ({}, (), None) == (frame.offsets, frame.regions, frame.dynamic)


def test_parameters_are_aligned_by_their_types():
    """A structure and a pointer after a number start at their alignment."""
    params = (
        Variable("n", "param", 4, 4),
        Variable("p", "param", 8, 8),
        Variable("s", "param", 12, 4),
    )

    assert ({"n": 0, "p": 8, "s": 16}, 28) == param_offsets(params)
    with pytest.raises(PtxError, match="no size"):
        param_offsets((Variable("x", "param", 0, 4),))
