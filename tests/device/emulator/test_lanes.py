"""Threads know their block, their place in it, and their special registers."""

from __future__ import annotations

import numpy as np

from tilewise.device.emulator.lanes import Chunk
from tilewise.device.seam import launch_shape


def test_places_count_from_the_first_block_of_the_chunk():
    """Thread numbers run through consecutive blocks."""
    chunk = Chunk(launch_shape((3, 2), (4, 2)), first=2, blocks=3)

    assert 24 == len(chunk.all)
    assert ((2, 0, 0), (0, 0, 0)) == chunk.place(0)
    assert ((1, 1, 0), (1, 1, 0)) == chunk.place(2 * 8 + 5)


def test_some_lanes_keep_their_own_registers():
    """A subset has the special registers of its threads."""
    chunk = Chunk(launch_shape(2, (8, 5)), first=0, blocks=2)
    lanes = chunk.all.take(np.array([3, 41, 79]))

    assert [3, 1, 7] == lanes.special("tid.x").tolist()
    assert [0, 0, 4] == lanes.special("tid.y").tolist()
    assert [0, 1, 1] == lanes.special("ctaid.x").tolist()
    assert [3, 1, 7] == lanes.special("laneid").tolist()
    assert [0, 0, 1] == lanes.special("warpid").tolist()
    assert [0b1000, 0b10, 1 << 7] == lanes.special("lanemask_eq").tolist()
    assert [0b1111, 0b11, 255] == lanes.special("lanemask_le").tolist()
    assert [2**32 - 16, 2**32 - 4, 2**32 - 256] == lanes.special("lanemask_gt").tolist()
    assert [2**32 - 8, 2**32 - 2, 2**32 - 128] == lanes.special("lanemask_ge").tolist()


def test_what_is_the_same_for_all_is_a_scalar():
    """Sizes, and an axis of one, take no array."""
    lanes = Chunk(launch_shape(2, 8), first=0, blocks=2).all
    found = [lanes.special(n) for n in ("ntid.x", "nctaid.x", "tid.y", "warpsize")]

    assert [8, 2, 0, 32] == [int(v) for v in found]
    assert [0] * 4 == [v.ndim for v in found]
