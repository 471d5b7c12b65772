"""Sizes and ranges as they are written on the command line."""

from __future__ import annotations

import pytest

from tilewise import ArgumentError
from tilewise.cli.load import points_of, ranges_of, sizes_of


def test_shapes_are_read_in_the_order_of_the_axes() -> None:
    """Zero is a size."""
    assert [(64, 32, 16), (0, 4, 4)] == sizes_of("64x32x16, 0x4x4")
    assert [{"n": 500, "bins": 16}] == points_of("500x16", ("n", "bins"))


@pytest.mark.parametrize("text", ["4x4", "4x4x4x4", "4x4x-4", "4x4xk", "", "4x4x4,"])
def test_what_is_no_shape_is_shown(text: str) -> None:
    """The error has the part and the form."""
    with pytest.raises(ArgumentError, match="is not MxNxK, such as 128x64x32"):
        sizes_of(text)


def test_a_kernels_own_axes_are_named() -> None:
    """The form is that of its axes."""
    with pytest.raises(ArgumentError, match="'500' is not NxBINS, such as 128x64"):
        points_of("500", ("n", "bins"))


def test_ranges_are_sizes_or_spans() -> None:
    """One of either for each axis."""
    assert {"m": (1, 4096), "n": 64} == ranges_of("m=1-4096,n=64")


@pytest.mark.parametrize("text", ["m", "m=a", "m=1-", "=4", "m=1:4"])
def test_what_is_no_range_is_shown(text: str) -> None:
    """The error has the part and an example."""
    with pytest.raises(ArgumentError, match="is no range, such as m=1-4096"):
        ranges_of(text)
