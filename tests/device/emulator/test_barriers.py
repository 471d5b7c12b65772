"""Barriers that not all threads come to are reported, and the kernel goes on."""

from __future__ import annotations

import numpy as np


def found(run, kernel, body, block=64):
    """Return the reports of a body over one block."""
    _, reports = run(kernel(body), 1, block, [np.zeros(block, np.uint32)])
    return [(r.kind, r.count) for r in reports]


def test_a_barrier_in_one_branch(run, kernel):
    """Threads of a block that wait at different barriers diverge."""
    body = """setp.lt.u32 %q1, %t, 32; @%q1 bra low; bar.sync 0; bra join;
    low: bar.sync 0; join:"""

    assert [("barrier_divergence", 64)] == found(run, kernel, body)


def test_a_barrier_that_some_exited_before(run, kernel):
    """A thread that returned does not come any more."""
    body = "setp.ge.u32 %q1, %t, 60; @%q1 ret; bar.sync 0;"

    assert [("barrier_exited", 60)] == found(run, kernel, body)


def test_a_barrier_under_a_predicate(run, kernel):
    """Some wait while the others run on to the end."""
    body = """setp.lt.u32 %q1, %t, 32; @%q1 bar.sync 0;
    add.u64 %l1, %p0, %o; st.global.u32 [%l1], 1;"""

    assert [("barrier_exited", 32)] == found(run, kernel, body)


def test_too_few_threads_for_a_count(run, kernel):
    """A named barrier whose count is never reached is a deadlock."""
    body = "setp.ge.u32 %q1, %t, 32; @%q1 ret; bar.sync 2, 64;"

    assert [("barrier_deadlock", 32)] == found(run, kernel, body)


def test_a_clean_barrier_in_a_uniform_loop(run, kernel):
    """The same barrier again and again is no finding."""
    body = """mov.u32 %r1, 0; loop: bar.sync 0; add.u32 %r1, %r1, 1;
    setp.lt.u32 %q1, %r1, 5; @%q1 bra loop;
    barrier.sync 1; barrier.cta.sync.aligned 0;"""

    assert [] == found(run, kernel, body)


def test_blocks_wait_apart(run, kernel):
    """One block may pass its barrier more often than another."""
    body = """mov.u32 %r1, 0; loop: bar.sync 0; add.u32 %r1, %r1, 1;
    setp.le.u32 %q1, %r1, %b; @%q1 bra loop;
    add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""

    (found_,), reports = run(kernel(body), 4, 32, [np.zeros(128, np.uint32)])

    assert np.repeat([1, 2, 3, 4], 32).tolist() == found_.tolist()
    assert [] == reports


def test_warp_operations_without_their_threads(run, kernel):
    """Masks that lack a runner, name an absent lane, or read an inactive one."""
    absent = "shfl.sync.idx.b32 %r1, %t, 20, 31, -1;"
    lacking = "shfl.sync.idx.b32 %r1, %t, 0, 31, 0xFFFF;"
    inside = """setp.ge.u32 %q1, %t, 8; @%q1 bra after;
    shfl.sync.idx.b32 %r1, %t, 20, 31, 0xFF; after:"""

    ragged = [kind for kind, _ in found(run, kernel, absent, block=16)]
    assert ["inactive_lane"] == ragged[:1]
    assert [("membermask", 32)] == found(run, kernel, lacking)
    assert [("inactive_lane", 8)] == found(run, kernel, inside, block=32)


def test_a_shuffle_that_others_never_reach(run, kernel):
    """A full mask inside a branch runs without the threads it names."""
    body = """setp.ge.u32 %q1, %t, 8; @%q1 bra after;
    shfl.sync.idx.b32 %r1, %t, 0, 31, -1; bra after; after: bar.sync 0;"""

    assert [("warp_divergence", 8)] == found(run, kernel, body, block=32)


def test_matrix_instructions_need_whole_warps(run, kernel):
    """Mma under divergence is reported."""
    body = """mov.u32 %r1, 0; mov.f32 %f1, 0f00000000;
    setp.ge.u32 %q1, %t, 8; @%q1 bra after;
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f2, %f3, %f4, %f5},
    {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f1, %f1, %f1}; after:"""

    assert [("warp_divergence", 8)] == found(run, kernel, body, block=32)
