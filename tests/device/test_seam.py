"""Launch shapes are checked against CUDA's limits."""

from __future__ import annotations

import pytest

from tilewise.device.seam import LaunchShape, launch_shape
from tilewise.errors import ArgumentError


def test_missing_axes_are_one():
    """One number is one axis; blocks and threads are products."""
    shape = launch_shape(7, (32, 8), 64)

    assert LaunchShape((7, 1, 1), (32, 8, 1), 64) == shape
    assert (7, 256) == (shape.blocks, shape.threads)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "word"),
    [
        (0, 32, 0, "grid"),
        (1, (32, -1), 0, "block"),
        ((1, 1, 1, 1), 32, 0, "grid"),
        ((), 32, 0, "grid"),
        (1, 1025, 0, "1024"),
        (1, (1, 1, 65), 0, "64"),
        ((1, 65536), 1, 0, "65535"),
        (2**31, 1, 0, "2**31"),
        (1, 32, -1, "shared_bytes"),
    ],
)
def test_impossible_launches_are_named(grid, block, shared, word):
    """Each limit is an error that names it."""
    with pytest.raises(ArgumentError) as caught:
        launch_shape(grid, block, shared)

    assert word in str(caught.value)
