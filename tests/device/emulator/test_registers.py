"""Registers that hold one array stay apart when some lanes write one of them."""

from __future__ import annotations

import numpy as np


def test_a_copy_of_a_register_does_not_follow_it(run, kernel):
    """After mov, a write under divergence changes one register only."""
    body = """add.u32 %r1, %t, 7; mov.u32 %r2, %r1; setp.lt.u32 %q1, %t, 9;
    @%q1 bra L; mov.u32 %r1, 5; L: mul.wide.u32 %l1, %i, 8; add.u64 %l1, %l1, %p0;
    st.global.v2.u32 [%l1], {%r1, %r2};"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros((32, 2), np.uint32)])

    assert [t + 7 if t < 9 else 5 for t in range(32)] == found[:, 0].tolist()
    assert [t + 7 for t in range(32)] == found[:, 1].tolist()


def test_a_register_that_was_written_in_part_is_copied_again(run, kernel):
    """A second mov and a second divergent write don't meet either."""
    body = """mov.u32 %r1, %t; setp.lt.u32 %q1, %t, 9; @%q1 bra L; mov.u32 %r1, 5;
    L: mov.u32 %r2, %r1; @%q1 bra M; mov.u32 %r1, 6;
    M: mul.wide.u32 %l1, %i, 8; add.u64 %l1, %l1, %p0;
    st.global.v2.u32 [%l1], {%r1, %r2};"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros((32, 2), np.uint32)])

    assert [t if t < 9 else 6 for t in range(32)] == found[:, 0].tolist()
    assert [t if t < 9 else 5 for t in range(32)] == found[:, 1].tolist()


def test_exits_keep_each_lane_with_its_values(run, kernel):
    """Arrays are cut together when threads leave."""
    body = """mov.u32 %r1, %t; setp.gt.u32 %q1, %t, 20; @%q1 exit; rem.u32 %r3, %t, 2;
    setp.eq.u32 %q2, %r3, 0; @%q2 exit; add.u64 %l1, %p0, %o;
    st.global.u32 [%l1], %r1;"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [t if t <= 20 and t % 2 else 0 for t in range(32)] == found.tolist()
