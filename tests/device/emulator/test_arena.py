"""Global memory is handed out with red zones and taken back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tilewise.device.emulator.arena import Arena
from tilewise.errors import EngineError


def test_buffers_are_aligned_and_apart():
    """Addresses are multiples of 256, at least 256 bytes lie between."""
    arena = Arena(1 << 16)
    regions = [arena.allocate(size, "x") for size in (1, 300, 0, 256)]

    gaps = [b.start - a.end for a, b in pairwise(regions)]

    assert [0] * 4 == [region.start % 256 for region in regions]
    assert min(gaps) >= 256


def test_freed_memory_is_reused_for_its_size():
    """A buffer of the same size takes the place; the last one resets all."""
    arena = Arena(1 << 16)
    first, keep = arena.allocate(1000, "a"), arena.allocate(10, "b")
    arena.free(first)

    again = arena.allocate(1000, "c")

    assert first.start == again.start
    arena.free(again)
    arena.free(keep)
    assert [] == arena.regions
    assert arena.allocate(5000, "d").start == first.start


def test_reused_memory_is_uninitialised():
    """What an earlier buffer held does not count as written."""
    arena = Arena(1 << 16)
    region, _ = arena.allocate(8, "a"), arena.allocate(8, "b")
    arena.write(region, np.ones(8, np.uint8))
    assert region.initialised
    arena.free(region)

    again = arena.allocate(8, "c")

    assert (False, 0) == (again.initialised, int(arena.written[again.start]))


def test_running_out_is_an_error_with_numbers():
    """The error says what was asked and what is left."""
    arena = Arena(4096)
    arena.allocate(2048, "a")

    with pytest.raises(EngineError, match="3000 bytes asked, 1536 of 4096 left"):
        arena.allocate(3000, "b")
