"""Blocks become functions that keep each value in the types it was seen as."""

from __future__ import annotations

import numpy as np

from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.program import compile_entry


def source(kernel, body):
    """Return the Python of a kernel."""
    return compile_entry(parse(kernel(body)), "kernel", {}).source


def test_one_function_per_block(kernel):
    """Straight code is one function, a branch makes three."""
    straight = source(kernel, "add.u32 %r1, %t, 1;")
    branched = source(kernel, "setp.eq.u32 %q1, %t, 0; @%q1 bra L; mov.u32 %r1, 1; L:")

    assert (1, 3) == (straight.count("def block_"), branched.count("def block_"))


def test_a_register_serves_any_type_of_its_size(run, kernel):
    """b32 registers hold floats, signed numbers and bits in turn."""
    body = """mov.b32 %r1, 0f3F800000; add.f32 %r2, %r1, %r1; shr.u32 %r3, %r2, 23;
    neg.s32 %r4, %r3; add.u64 %l1, %p0, %o; st.global.s32 [%l1], %r4;"""

    (found,), reports = run(kernel(body), 1, 32, [np.zeros(32, np.int32)])

    assert {-128} == set(found.tolist())
    assert [] == reports


def test_narrow_results_extend_into_wide_registers(run, kernel):
    """A signed 8-bit load fills a 64-bit register with its sign."""
    body = """ld.global.s8 %l5, [%p0]; cvt.u32.u64 %r1, %l5;
    add.u64 %l1, %p1, %o; st.global.u32 [%l1], %r1;"""
    arrays = [np.array([-3], np.int8), np.zeros(32, np.uint32)]

    (_, found), _ = run(kernel(body, 2), 1, 32, arrays)

    assert {2**32 - 3} == set(found.tolist())


def test_swapped_registers_in_a_loop_keep_their_values(run, kernel):
    """Values that change places between blocks don't alias."""
    body = """mov.u32 %r1, %t; mov.u32 %r2, 100; mov.u32 %r5, 0;
    L: mov.u32 %r3, %r1; mov.u32 %r1, %r2; mov.u32 %r2, %r3;
    setp.lt.u32 %q2, %t, 9; @%q2 add.u32 %r1, %r1, 1000;
    add.u32 %r5, %r5, 1; setp.lt.u32 %q1, %r5, 3; @%q1 bra L;
    mul.wide.u32 %l1, %i, 8; add.u64 %l1, %l1, %p0;
    st.global.v2.u32 [%l1], {%r1, %r2};"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros((32, 2), np.uint32)])

    expected = []
    for t in range(32):
        a, b = t, 100
        for _ in range(3):
            a, b = b, a
            a += 1000 * (t < 9)
        expected.append([a, b])
    assert expected == found.tolist()
