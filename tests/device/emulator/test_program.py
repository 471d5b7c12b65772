"""A compiled kernel knows its granules and what barriers it has."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.program import compile_entry

SHARED = ".shared .align 16 .b8 buf[64];"


def compiled(kernel, body):
    """Compile a body."""
    return compile_entry(parse(kernel(SHARED + body)), "kernel", {})


@pytest.mark.parametrize(
    ("body", "shared", "memory"),
    [
        ("st.shared.v4.f32 [buf], {%f1, %f1, %f1, %f1};", 4, 4),
        ("st.shared.u16 [buf], 1; ld.global.u8 %r1, [%p0];", 2, 1),
        ("st.shared.f64 [buf], %d1;", 4, 4),
        ("ld.u8 %r1, [%p0];", 1, 1),
    ],
)
def test_granules_are_the_smallest_access(kernel, body, shared, memory):
    """At most 4 bytes; generic accesses count for both."""
    program = compiled(kernel, body)

    assert (shared, memory) == (program.granule, program.global_granule)


@pytest.mark.parametrize(
    ("body", "partial"),
    [
        ("bar.sync 0;", False),
        ("barrier.cta.sync.aligned 0;", False),
        ("bar.sync 1;", True),
        ("bar.sync 0, 32;", True),
        ("bar.sync %r1;", True),
        ("bar.arrive 1, 64;", True),
        ("bar.warp.sync -1;", True),
    ],
)
def test_partial_barriers_are_known_beforehand(kernel, body, partial):
    """Only barriers that may take part of a block cost clocks."""
    assert partial == compiled(kernel, body).partial


def test_asynchronous_copies_are_known_beforehand(kernel):
    """Such kernels run with both landings."""
    copy = "cp.async.ca.shared.global [buf], [%p0], 4; cp.async.wait_all;"

    assert compiled(kernel, copy).asynchronous
    assert not compiled(kernel, "").asynchronous
