"""Races between blocks in global memory are found when asked for."""

from __future__ import annotations

import numpy as np
import pytest


def found(run, kernel, body, **options):
    """Return the kinds of reports over three blocks of 32."""
    _, reports = run(
        kernel(body), 3, 32, [np.zeros(128, np.uint32)], global_races=True, **options
    )
    return [r.kind for r in reports]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("add.u64 %l1, %p0, %o; st.global.u32 [%l1], %t;", []),
        ("add.u64 %l1, %p0, %o; ld.global.u32 %r1, [%p0];", []),
        ("st.global.u32 [%p0], %b;", ["race_waw"]),
        (
            "add.u64 %l1, %p0, %o; st.global.u32 [%l1+4], 1; ld.global.u32 %r1, [%l1];",
            ["race_raw"],
        ),
        (
            "add.u64 %l1, %p0, %o; ld.global.u32 %r1, [%l1+4]; st.global.u32 [%l1], 1;",
            ["race_war"],
        ),
        ("red.global.add.u32 [%p0], 1;", []),
        ("red.global.add.u32 [%p0], 1; ld.global.u32 %r1, [%p0];", ["race_raw"]),
        (
            "st.relaxed.gpu.global.u32 [%p0], 1; ld.acquire.gpu.global.u32 %r1, [%p0];",
            [],
        ),
    ],
)
def test_blocks_race(run, kernel, body, expected):
    """Plain accesses of two blocks to one place race, atomics don't."""
    assert expected == found(run, kernel, body)


def test_nothing_is_said_unless_asked_for(run, kernel):
    """Global races are an option."""
    _, reports = run(kernel("st.global.u32 [%p0], %b;"), 3, 32, [np.zeros(4, "u4")])

    assert [] == reports


def test_races_across_chunks_are_found(run, kernel):
    """Blocks that don't run at the same time race all the same."""
    _, reports = run(
        kernel("st.global.u32 [%p0], %b;"),
        100,
        512,
        [np.zeros(4, "u4")],
        global_races=True,
    )

    assert ["race_waw"] == [r.kind for r in reports]
