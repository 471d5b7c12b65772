"""Asynchronous copies that are not waited for rightly are found."""

from __future__ import annotations

import numpy as np
import pytest

HEAD = """.shared .align 16 .b8 buf[2048]; mov.u32 %r1, buf; shl.b32 %r2, %t, 4;
add.u32 %r1, %r1, %r2; mul.wide.u32 %l1, %t, 16; add.u64 %l1, %l1, %p0;
xor.b32 %r3, %t, 33; shl.b32 %r3, %r3, 4; mov.u32 %r4, buf; add.u32 %r3, %r3, %r4;"""
COPY = "cp.async.ca.shared.global [%r1], [%l1], 16; cp.async.commit_group;"


def found(run, kernel, body, lazy):
    """Return the kinds of reports of a body over 64 threads."""
    _, reports = run(kernel(HEAD + body), 1, 64, [np.ones(256, np.float32)], lazy=lazy)
    return sorted({r.kind for r in reports})


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        ("cp.async.wait_group 0; bar.sync 0;", []),
        ("cp.async.wait_all; bar.sync 0;", []),
        ("bar.sync 0;", ["async_never_waited", "async_unwaited"]),
        (
            "cp.async.wait_group 1; bar.sync 0;",
            ["async_never_waited", "async_unwaited"],
        ),
        ("cp.async.wait_group 0;", ["race_raw"]),
        ("bar.sync 0; cp.async.wait_group 0;", ["race_raw"]),
    ],
)
def test_waits(run, kernel, middle, expected, lazy):
    """Others may read a copy after its owner waited and all met."""
    body = f"{COPY} {middle} ld.shared.f32 %f1, [%r3];"

    assert expected == found(run, kernel, body, lazy)


@pytest.mark.parametrize("lazy", [True, False])
def test_a_copy_over_what_others_still_read(run, kernel, lazy):
    """The next tile may not be fetched into a buffer that is being read."""
    body = f"""{COPY} cp.async.wait_all; bar.sync 0; ld.shared.f32 %f1, [%r3]; {{}}
    {COPY} cp.async.wait_all;"""

    assert ["race_war"] == found(run, kernel, body.format(""), lazy)
    assert [] == found(run, kernel, body.format("bar.sync 0;"), lazy)


@pytest.mark.parametrize("lazy", [True, False])
def test_a_store_into_a_copy_in_flight(run, kernel, lazy):
    """Nobody may write where a copy has yet to land."""
    body = f"{COPY} st.shared.u32 [%r1], 5; cp.async.wait_all;"

    assert ["async_unwaited"] == found(run, kernel, body, lazy)


def test_a_copy_that_nobody_waits_for(run, kernel):
    """A kernel that ends with copies in flight is reported once."""
    assert ["async_never_waited"] == found(run, kernel, COPY, lazy=True)


def test_lazy_copies_land_at_the_wait(run, kernel):
    """Before the wait shared memory holds the old value, or the new one if eager."""
    body = f"""{HEAD} st.shared.u32 [%r1], 5; {COPY} ld.shared.u32 %r5, [%r1];
    cp.async.wait_all; add.u64 %l2, %p1, %o; st.global.u32 [%l2], %r5;"""
    arrays = [np.full(256, 9, np.uint32), np.zeros(64, np.uint32)]

    (_, late), _ = run(kernel(body, 2), 1, 64, arrays, lazy=True)
    (_, early), _ = run(kernel(body, 2), 1, 64, arrays, lazy=False)

    assert ({5}, {9}) == (set(late.tolist()), set(early.tolist()))


def test_the_source_is_aligned_also_where_nothing_is_read(run, kernel):
    """A copy of no bytes from a crooked address is misaligned all the same."""
    body = """add.u64 %l1, %l1, 4; cp.async.cg.shared.global [%r1], [%l1], 16, 0;
    cp.async.wait_all;"""

    assert ["misaligned"] == found(run, kernel, body, lazy=True)
