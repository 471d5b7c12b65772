"""Races in shared memory are found also where the values come out right."""

from __future__ import annotations

import numpy as np
import pytest

HEAD = """.shared .align 16 .b8 buf[1024]; mov.u32 %r1, buf; shl.b32 %r2, %t, 2;
add.u32 %r1, %r1, %r2; xor.b32 %r3, %t, 33; shl.b32 %r3, %r3, 2; mov.u32 %r4, buf;
add.u32 %r3, %r3, %r4;"""
#: %r6 is the place of another lane of the same warp, %r3 of another warp.
NEAR = """xor.b32 %r6, %t, 5; shl.b32 %r6, %r6, 2; mov.u32 %r4, buf;
add.u32 %r6, %r6, %r4;"""
OUT = "add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r5;"


def found(run, kernel, body, block=64, **options):
    """Return the kinds of reports of a body over one block."""
    _, reports = run(
        kernel(HEAD + body + OUT), 1, block, [np.zeros(block, np.uint32)], **options
    )
    return [r.kind for r in reports]


def test_read_after_write(run, kernel):
    """Reading what another thread wrote needs a barrier."""
    body = "st.shared.u32 [%r1], %t; {} ld.shared.u32 %r5, [%r3];"

    assert [] == found(run, kernel, body.format("bar.sync 0;"))
    assert ["race_raw"] == found(run, kernel, body.format(""))


def test_write_after_read(run, kernel):
    """Writing what another thread read needs a barrier."""
    body = """st.shared.u32 [%r1], %t; bar.sync 0; ld.shared.u32 %r5, [%r3];
    {} st.shared.u32 [%r1], %r5;"""

    assert [] == found(run, kernel, body.format("bar.sync 0;"))
    assert ["race_war"] == found(run, kernel, body.format(""))


def test_write_after_write(run, kernel):
    """Writing what another thread wrote needs a barrier."""
    body = "mov.u32 %r5, 0; st.shared.u32 [%r1], %t; {} st.shared.u32 [%r3], %t;"

    assert [] == found(run, kernel, body.format("bar.sync 0;"))
    assert ["race_waw"] == found(run, kernel, body.format(""))


def test_one_store_to_one_place(run, kernel):
    """Threads that store different values to one place race; equal values don't."""
    body = "mov.u32 %r5, 0; st.shared.u32 [buf], {};"

    assert ["race_waw"] == found(run, kernel, body.format("%t"))
    assert [] == found(run, kernel, body.format("%r5"))


def test_a_thread_does_not_race_with_itself(run, kernel):
    """Reading and writing one's own place needs no barrier."""
    body = "st.shared.u32 [%r1], %t; ld.shared.u32 %r5, [%r1]; st.shared.u32 [%r1], 3;"

    assert [] == found(run, kernel, body)


def test_neighbours_in_one_word_do_not_race(run, kernel):
    """Bytes are watched one by one where a kernel touches bytes."""
    body = """mov.u32 %r4, buf; add.u32 %r4, %r4, %t; cvt.u16.u32 %s1, %t;
    st.shared.u8 [%r4], %s1; ld.shared.u8 %s2, [%r4]; cvt.u32.u16 %r5, %s2;"""

    assert [] == found(run, kernel, body)


def test_vectors_and_scalars_overlap(run, kernel):
    """A scalar read of a vector that another thread wrote is a race."""
    body = """shl.b32 %r6, %t, 4; mov.u32 %r4, buf; add.u32 %r6, %r6, %r4;
    st.shared.v4.u32 [%r6], {%t, %t, %t, %t}; ld.shared.u32 %r5, [%r1];"""

    assert ["race_raw"] == found(run, kernel, body)


def test_atomics_race_only_with_plain_accesses(run, kernel):
    """Atomics meet atomics freely; a plain read needs a barrier."""
    body = """setp.eq.u32 %q1, %t, 0; @%q1 st.shared.u32 [buf], 0; bar.sync 0;
    atom.shared.add.u32 %r5, [buf], 1; {} ld.shared.u32 %r5, [buf];"""

    assert [] == found(run, kernel, body.format("bar.sync 0;"))
    assert ["race_raw"] == found(run, kernel, body.format(""))


def test_strong_accesses_do_not_race(run, kernel):
    """Relaxed loads and stores of a scope are meant to meet."""
    body = """setp.eq.u32 %q1, %t, 0; @%q1 st.relaxed.cta.shared.u32 [buf], 1;
    ld.relaxed.cta.shared.u32 %r5, [buf];"""

    assert [] == found(run, kernel, body)


def test_warps_that_synchronise_do_not_race(run, kernel):
    """bar.warp.sync orders the lanes of a warp and nobody else."""
    body = NEAR + "st.shared.u32 [%r1], %t; {} ld.shared.u32 %r5, [{}];"

    assert [] == found(run, kernel, body.format("bar.warp.sync -1;", "%r6"))
    assert ["race_raw"] == found(run, kernel, body.format("bar.warp.sync -1;", "%r3"))
    assert ["race_raw"] == found(run, kernel, body.format("", "%r6"))


def test_warp_order_holds_for_writes_after_reads(run, kernel):
    """A warp may reuse its own part of shared memory after bar.warp.sync."""
    body = (
        NEAR
        + """st.shared.u32 [%r1], %t; bar.warp.sync -1;
    ld.shared.u32 %r5, [%r6]; {} st.shared.u32 [%r1], %r5;"""
    )

    assert [] == found(run, kernel, body.format("bar.warp.sync -1;"))
    assert ["race_war"] == found(run, kernel, body.format("") + "bar.warp.sync -1;")


def test_named_barriers_order_their_threads(run, kernel):
    """Two groups of 32 have a barrier each; across them is a race."""
    body = """shr.u32 %r7, %t, 5; add.u32 %r7, %r7, 1; xor.b32 %r6, %t, 5;
    shl.b32 %r6, %r6, 2; mov.u32 %r4, buf; add.u32 %r6, %r6, %r4;
    st.shared.u32 [%r1], %t; bar.sync %r7, 32; ld.shared.u32 %r5, [{}];"""

    assert [] == found(run, kernel, body.format("%r6"))
    assert ["race_raw"] == found(run, kernel, body.format("%r3"))


def test_producers_and_consumers(run, kernel):
    """bar.arrive of writers and bar.sync of readers order one with the other."""
    body = """setp.lt.u32 %q1, %t, 32; mov.u32 %r5, 0; @%q1 bra write;
    bar.sync 1, 64; ld.shared.u32 %r5, [%r3]; bra done;
    write: st.shared.u32 [%r1], %t; bar.arrive 1, 64;
    done:"""

    late = body.replace(
        "st.shared.u32 [%r1], %t; bar.arrive 1, 64;",
        "bar.arrive 1, 64; st.shared.u32 [%r1], %t;",
    )

    assert [] == found(run, kernel, body)
    assert ["race_raw"] == found(run, kernel, late)


@pytest.mark.parametrize("blocks", [1, 40])
def test_races_are_counted_over_all_blocks(run, kernel, blocks):
    """The count is that of all threads, the place that of the first."""
    body = HEAD + "st.shared.u32 [%r1], %t; ld.shared.u32 %r5, [%r3];" + OUT
    array = np.zeros(64 * blocks, np.uint32)

    _, reports = run(kernel(body), blocks, 64, [array])

    assert [(64 * blocks, (0, 0, 0), (0, 0, 0), 132)] == [
        (r.count, r.block, r.thread, r.address - 256) for r in reports
    ]
    assert "written by thread (33, 0, 0)" == reports[0].other
