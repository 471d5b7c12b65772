"""Accesses outside, misaligned, to unwritten or read-only memory are reported."""

from __future__ import annotations

import numpy as np
import pytest


def kinds(reports):
    """Return what was found: kind, count, block and thread of the first."""
    return [(r.kind, r.count, r.block[0], r.thread[0]) for r in reports]


def test_past_the_end_of_a_buffer(run, kernel):
    """The last block reads one element too many; the rest is right."""
    body = """
    add.u64 %l1, %p0, %o; ld.global.f32 %f1, [%l1];
    add.u64 %l2, %p1, %o; st.global.f32 [%l2], %f1;"""
    x = np.ones(63, np.float32)

    (_, found), reports = run(kernel(body, 2), 2, 32, [x, np.zeros(64, np.float32)])

    assert [("out_of_bounds", 1, 1, 31)] == kinds(reports)
    assert [1.0] * 63 + [0.0] == found.tolist()
    assert "byte 252 of argument 0 (252 bytes)" == reports[0].other


@pytest.mark.parametrize("offset", [-4, 256, -(2**33)])
def test_before_and_beyond_and_null(run, kernel, offset):
    """Below the buffer, in the red zone, and far away in no memory at all."""
    body = f"add.u64 %l1, %p0, {offset}; ld.global.f32 %f1, [%l1];"

    _, reports = run(kernel(body), 1, 32, [np.zeros(64, np.float32)])

    assert [("out_of_bounds", 32)] == [(r.kind, r.count) for r in reports]


def test_a_store_out_of_bounds_writes_nothing(run, kernel):
    """The neighbour of a buffer stays as it was."""
    body = "add.u64 %l1, %p0, %o; st.global.u32 [%l1+128], 7;"
    arrays = [np.zeros(48, np.uint32), np.full(64, 5, np.uint32)]

    found, reports = run(kernel(body, 2), 1, 32, arrays)

    assert [0] * 32 + [7] * 16 == found[0].tolist()
    assert [5] * 64 == found[1].tolist()
    assert [("out_of_bounds", 16, 0, 16)] == kinds(reports)


@pytest.mark.parametrize("vec", ["v2", "v4"])
def test_misaligned_vectors(run, kernel, vec):
    """A vector has to lie at a multiple of its own size."""
    items = ", ".join(f"%f{at}" for at in range(int(vec[1])))
    body = f"""
    mul.wide.u32 %l1, %t, {4 * int(vec[1])}; add.u64 %l1, %l1, %p0;
    ld.global.{vec}.f32 {{{items}}}, [%l1+4];"""

    _, reports = run(kernel(body), 1, 32, [np.zeros(256, np.float32)])

    assert [("misaligned", 32, 0, 0)] == kinds(reports)


def test_misaligned_scalars(run, kernel):
    """One thread with an odd address is found among the others."""
    body = """
    setp.eq.u32 %q1, %t, 9; selp.b64 %l2, 2, 0, %q1; add.u64 %l1, %p0, %o;
    add.u64 %l1, %l1, %l2; ld.global.u32 %r1, [%l1];"""

    _, reports = run(kernel(body), 1, 32, [np.zeros(64, np.float32)])

    assert [("misaligned", 1, 0, 9)] == kinds(reports)


SHARED = """.shared .align 4 .b8 first[128]; .shared .align 4 .b8 second[128];"""


def test_between_two_shared_arrays(run, kernel):
    """An index past one static array does not reach the next."""
    body = f"""{SHARED}
    mov.u32 %r1, first; mov.u32 %r4, second; shl.b32 %r2, %t, 2;
    add.u32 %r1, %r1, %r2; add.u32 %r4, %r4, %r2;
    st.shared.u32 [%r1+4], %t; st.shared.u32 [%r4], %t;"""

    _, reports = run(kernel(body), 1, 32, [np.zeros(1)])

    assert [("out_of_bounds", 1, 0, 31)] == kinds(reports)
    assert "shared" == reports[0].space
    assert "byte 128 of first (128 bytes)" == reports[0].other


def test_past_dynamic_shared_memory(run, kernel):
    """The launch's bytes are the limit."""
    head = ".extern .shared .align 16 .b8 dynamic[];"
    body = """
    mov.u32 %r1, dynamic; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], %t;"""

    _, enough = run(kernel(body, 1, head), 1, 32, [np.zeros(1)], shared_bytes=128)
    _, less = run(kernel(body, 1, head), 1, 32, [np.zeros(1)], shared_bytes=120)
    _, none = run(kernel(body, 1, head), 1, 32, [np.zeros(1)])

    assert [] == enough
    assert [("out_of_bounds", 2, 0, 30)] == kinds(less)
    assert [("out_of_bounds", 32, 0, 0)] == kinds(none)


def test_past_a_local_array(run, kernel):
    """Each thread's own array has its own ends."""
    body = """
    .local .align 4 .b8 mine[16]; mov.u64 %l1, mine; mul.wide.u32 %l2, %t, 4;
    add.u64 %l1, %l1, %l2; st.local.u32 [%l1], %t;"""

    _, reports = run(kernel(body), 1, 6, [np.zeros(1)])

    assert [("out_of_bounds", 2, 0, 4)] == kinds(reports)


@pytest.mark.parametrize("space", ["shared", "local"])
def test_memory_that_nobody_wrote(run, kernel, space):
    """Reads before writes are found per element, not per array."""
    body = f"""
    .{space} .align 4 .b8 mine[256]; mov.u64 %l1, mine; add.u64 %l1, %l1, %o;
    setp.ne.u32 %q1, %t, 3; @%q1 st.{space}.u32 [%l1], %t;
    ld.{space}.u32 %r1, [%l1]; add.u64 %l2, %p0, %o; st.global.u32 [%l2], %r1;"""

    _, reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [("uninitialised", 1, 0, 3)] == kinds(reports)


def test_parts_of_an_element_that_nobody_wrote(run, kernel):
    """A word is only written when all its bytes are."""
    body = """
    .local .align 4 .b8 mine[4]; st.local.u16 [mine], %s1; mov.u16 %s1, 1;
    ld.local.u32 %r1, [mine];"""
    body = body.replace(
        "st.local.u16 [mine], %s1; mov.u16 %s1, 1;",
        "mov.u16 %s1, 1; st.local.u16 [mine], %s1;",
    )

    _, reports = run(kernel(body), 1, 4, [np.zeros(1)])

    assert [("uninitialised", 4, 0, 0)] == kinds(reports)


def test_constants_are_read_only(run, kernel):
    """A store through a generic address into constants is reported."""
    head = ".const .align 4 .u32 table[4] = {1, 2, 3, 4};"
    body = "mov.u64 %l1, table; cvta.const.u64 %l1, %l1; st.u32 [%l1], 5;"

    _, reports = run(kernel(body, 1, head), 1, 1, [np.zeros(1)])

    assert [("read_only", 1, 0, 0)] == kinds(reports)
