"""Threads go their own ways and meet again; launches cover the whole grid."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.syntax import PtxError


def test_branches_meet_again(run, kernel):
    """Both sides of nested branches give each thread its own value."""
    body = """
    mov.u32 %r1, 1; setp.lt.u32 %q1, %t, 10; @%q1 bra low;
    setp.lt.u32 %q2, %t, 20; @%q2 bra mid; add.u32 %r1, %r1, 300; bra join;
    mid: add.u32 %r1, %r1, 200; bra join;
    low: add.u32 %r1, %r1, 100;
    join: add.u32 %r1, %r1, 1; add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""

    (found,), reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [102] * 10 + [202] * 10 + [302] * 12 == found.tolist()
    assert [] == reports


def test_each_thread_loops_its_own_number_of_times(run, kernel):
    """A loop runs on for the threads that need it."""
    body = """
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    loop: setp.gt.u32 %q1, %r1, %t; @%q1 bra done;
    add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra.uni loop;
    done: add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r2;"""

    (found,), _ = run(kernel(body), 2, 40, [np.zeros(80, np.uint32)])

    assert [t * (t + 1) // 2 for t in range(40)] * 2 == found.tolist()


def test_threads_may_exit_early(run, kernel):
    """What exits writes no more; the others go on with their own values."""
    body = """
    add.u32 %r1, %i, 5; setp.gt.u32 %q1, %t, 6; @%q1 exit;
    add.u32 %r1, %r1, %t; setp.eq.u32 %q2, %t, 2; @%q2 ret;
    add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""

    (found,), _ = run(kernel(body), 3, 32, [np.zeros(96, np.uint32)])

    expected = [i + 5 + i % 32 if i % 32 <= 6 and i % 32 != 2 else 0 for i in range(96)]
    assert expected == found.tolist()


def test_indexed_branches(run, kernel):
    """brx.idx takes each thread to its entry of the table."""
    body = """
    and.b32 %r1, %t, 3; mov.u32 %r2, 0;
    table: .branchtargets zero, one, two, three;
    brx.idx %r1, table;
    zero: mov.u32 %r2, 10; bra after;
    one: mov.u32 %r2, 11; bra after;
    two: mov.u32 %r2, 12; bra after;
    three: mov.u32 %r2, 13;
    after: add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r2;"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [10 + t % 4 for t in range(32)] == found.tolist()


def test_special_registers(run, kernel):
    """Indices and sizes in three axes, lanes and masks."""
    body = """
    mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.y;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %lanemask_lt;
    mov.u32 %r7, %warpid; mov.u32 %r9, %ctaid.z; mov.u32 %r10, %nctaid.y;
    mul.lo.u32 %r11, %r9, %r10; add.u32 %r11, %r11, %r3;
    mad.lo.u32 %r11, %r11, %r4, %b; mul.lo.u32 %r11, %r11, 24;
    mad.lo.u32 %r12, %r2, %r5, %r1; mad.lo.u32 %r12, %r12, %n, %t;
    add.u32 %r11, %r11, %r12; mul.wide.u32 %l1, %r11, 32; add.u64 %l1, %l1, %p0;
    st.global.v4.u32 [%l1], {%t, %r1, %r2, %b};
    st.global.v4.u32 [%l1+16], {%r3, %r9, %r7, %r6};"""
    grid, block = (2, 3, 2), (4, 3, 2)

    (found,), _ = run(kernel(body), grid, block, [np.zeros((12 * 24, 8), np.uint32)])

    index = np.arange(24)
    blocks = np.arange(12)
    assert (np.tile(index % 4, 12)).tolist() == found[:, 0].tolist()
    assert (np.tile(index // 4 % 3, 12)).tolist() == found[:, 1].tolist()
    assert (np.tile(index // 12, 12)).tolist() == found[:, 2].tolist()
    assert (np.repeat(blocks % 2, 24)).tolist() == found[:, 3].tolist()
    assert (np.repeat(blocks // 2 % 3, 24)).tolist() == found[:, 4].tolist()
    assert (np.repeat(blocks // 6, 24)).tolist() == found[:, 5].tolist()
    assert [0] * 288 == found[:, 6].tolist()
    assert np.tile((1 << index) - 1, 12).tolist() == found[:, 7].tolist()


def test_a_grid_of_many_chunks_is_covered(run, kernel):
    """More threads than run at once still all run."""
    body = "add.u64 %l1, %p0, %o; st.global.u32 [%l1], %i;"

    (found,), reports = run(kernel(body), 70, 512, [np.zeros(70 * 512, np.uint32)])

    assert (np.arange(70 * 512) == found).all()
    assert [] == reports


def test_a_lock_that_threads_spin_on_is_passed_on(run, kernel):
    """Threads that spin don't starve the one that holds the lock."""
    body = """
    spin: atom.global.cas.b32 %r1, [%p0], 0, 1; setp.ne.u32 %q1, %r1, 0;
    @%q1 bra spin;
    ld.volatile.global.u32 %r2, [%p0+4]; add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%p0+4], %r2; atom.global.exch.b32 %r3, [%p0], 0;"""

    (found,), _ = run(kernel(body), 1, 8, [np.zeros(2, np.uint32)])

    assert [0, 8] == found.tolist()


def test_an_endless_loop_is_an_error(run, kernel):
    """A kernel that never ends is refused with the line where it is."""
    with pytest.raises(PtxError, match="endless loop"):
        run(kernel("loop: bra loop;"), 1, 32, [np.zeros(1, np.uint32)])


def test_trap_is_reported(run, kernel):
    """Threads that run into trap end there, and the others go on."""
    body = """
    setp.lt.u32 %q1, %t, 3; @!%q1 bra go; trap;
    go: add.u64 %l1, %p0, %o; st.global.u32 [%l1], 1;"""

    (found,), reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [0] * 3 + [1] * 29 == found.tolist()
    assert [("trap", 3)] == [(r.kind, r.count) for r in reports]


def test_a_register_read_before_it_is_written_is_reported(run, kernel):
    """Only the threads whose path skipped the write are counted."""
    body = """
    setp.lt.u32 %q1, %t, 5; @%q1 bra skip; mov.u32 %r1, 3;
    skip: add.u32 %r2, %r1, 1; add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r2;"""

    _, reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    found = [(r.kind, r.count, r.other, r.thread) for r in reports]
    assert [("uninitialised_register", 5, "%r1", (0, 0, 0))] == found


def test_a_predicated_write_counts_for_its_threads(run, kernel):
    """Reading under the same predicate is clean, reading by all is not."""
    body = """
    setp.lt.u32 %q1, %t, 5; @%q1 mov.u32 %r1, 3; add.u64 %l1, %p0, %o;
    @%q1 st.global.u32 [%l1], %r1;"""
    more = "st.global.u32 [%l1], %r1;"

    _, clean = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])
    _, faulty = run(kernel(body + more), 1, 32, [np.zeros(32, np.uint32)])

    assert [] == clean
    assert [("uninitialised_register", 27)] == [(r.kind, r.count) for r in faulty]


def test_device_functions_are_called(run, kernel):
    """Arguments and results go through parameters; each call has its own frame."""
    head = """
    .func (.param .b32 out) twice(.param .b32 x, .param .b64 where)
    {
    .reg .b32 %r<3>; .reg .b64 %l<2>; .reg .pred %q<2>;
    .local .align 4 .b8 mine[4];
    ld.param.b32 %r1, [x]; ld.param.b64 %l1, [where];
    setp.gt.u32 %q1, %r1, 40; @%q1 bra big;
    add.u32 %r1, %r1, %r1; st.local.u32 [mine], %r1; ld.local.u32 %r2, [mine];
    st.param.b32 [out+0], %r2; ret;
    big: st.global.u32 [%l1], %r1; st.param.b32 [out], %r1; ret;
    }"""
    call = """{
    .param .b32 a; st.param.b32 [a+0], %r1; .param .b64 w; st.param.b64 [w], %p1;
    .param .b32 r; call.uni (r), twice, (a, w); ld.param.b32 %r1, [r+0];
    }"""
    body = f"""mov.u32 %r1, %t; {call} {call}
    add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""
    arrays = [np.zeros(32, np.uint32), np.zeros(1, np.uint32)]

    found, reports = run(kernel(body, 2, head), 1, 32, arrays)

    once = [2 * t for t in range(32)]
    assert [2 * t if t <= 40 else t for t in once] == found[0].tolist()
    assert 40 < found[1][0]
    assert [] == [r for r in reports if r.kind != "race_waw"]


def test_a_predicate_without_a_value_is_reported_for_all(run, kernel):
    """A guard is read by every thread, also where it turns out false."""
    body = "@%q1 st.global.u32 [%p0], 1;"

    _, reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [("uninitialised_register", 32, "%q1")] == [
        (r.kind, r.count, r.other) for r in reports
    ]
