"""Shuffles, votes, matches, matrix fragments: run as PTX, checked lane by lane."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.halves import narrow_bf16
from tilewise.device.emulator.syntax import PtxError

LANES = np.arange(64)


def _shuffled(mode, value, offset, limit):
    """Follow the ISA's pseudo code for one warp of 32 lanes."""
    out, valid = [], []
    for lane in range(32):
        segment, clamp = limit >> 8 & 31, limit & 31
        most = (lane & segment) | (clamp & ~segment & 31)
        least = lane & segment
        by = offset & 31
        source = {
            "up": lane - by,
            "down": lane + by,
            "bfly": lane ^ by,
            "idx": least | (by & ~segment & 31),
        }[mode]
        ok = source >= most if mode == "up" else source <= most
        out.append(value[source if ok else lane])
        valid.append(ok)
    return out, valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("offset", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("limit", [31, 0, 0x1C1F, 0x181F, 0x1000])
def test_shuffles(run, kernel, mode, offset, limit):
    """All modes, offsets and segments give the ISA's lane and predicate."""
    body = f"""
    add.u64 %l1, %p0, %o; ld.global.b32 %r1, [%l1];
    shfl.sync.{mode}.b32 %r2|%q1, %r1, {offset}, {limit}, -1;
    add.u64 %l2, %p1, %o; st.global.b32 [%l2], %r2;
    selp.u32 %r3, 1, 0, %q1; add.u64 %l3, %p2, %o; st.global.b32 [%l3], %r3;"""
    x = (np.arange(64) * 7 + 3).astype(np.uint32)
    parts = [_shuffled(mode, x[at : at + 32].tolist(), offset, limit) for at in (0, 32)]

    found, reports = run(kernel(body, 3), 1, 64, [x, x * 0, x * 0])

    assert parts[0][0] + parts[1][0] == found[1].tolist()
    assert parts[0][1] + parts[1][1] == found[2].astype(bool).tolist()
    assert [] == reports


def test_votes_and_matches(run, kernel):
    """Ballots, all, any, uni, match, redux and activemask see their warp only."""
    body = """
    and.b32 %r1, %t, 3; setp.eq.u32 %q1, %r1, 1; setp.lt.u32 %q2, %t, 32;
    vote.sync.ballot.b32 %r2, %q1, -1;
    vote.sync.all.pred %q3, %q2, -1; vote.sync.any.pred %q4, %q2, -1;
    vote.sync.uni.pred %q5, %q1, -1;
    match.any.sync.b32 %r3, %r1, -1; match.all.sync.b32 %r4|%q6, %b, -1;
    redux.sync.add.u32 %r5, %t, -1; redux.sync.max.s32 %r6, %t, 0xFFFFFFFF;
    redux.sync.xor.b32 %r7, %t, -1; activemask.b32 %r8;
    selp.u32 %r9, 1, 0, %q3; selp.u32 %r10, 2, 0, %q4; selp.u32 %r11, 4, 0, %q5;
    or.b32 %r9, %r9, %r10; or.b32 %r9, %r9, %r11;
    mul.wide.u32 %l1, %i, 32; add.u64 %l1, %l1, %p0;
    st.global.v4.u32 [%l1], {%r2, %r3, %r4, %r5};
    st.global.v4.u32 [%l1+16], {%r6, %r7, %r8, %r9};"""

    (found,), reports = run(kernel(body), 1, 64, [np.zeros((64, 8), np.uint32)])

    assert [0x22222222] * 64 == found[:, 0].tolist()
    assert [0x11111111 << (t & 3) for t in range(64)] == found[:, 1].tolist()
    assert [0xFFFFFFFF] * 64 == found[:, 2].tolist()
    assert [sum(range(32))] * 32 + [sum(range(32, 64))] * 32 == found[:, 3].tolist()
    assert [31] * 32 + [63] * 32 == found[:, 4].tolist()
    assert [0] * 64 == found[:, 5].tolist()
    assert [0xFFFFFFFF] * 64 == found[:, 6].tolist()
    assert [3] * 32 + [0] * 32 == found[:, 7].tolist()
    assert [] == reports


def test_activemask_shows_divergence(run, kernel):
    """Inside a branch only its threads are active."""
    body = """
    mov.u32 %r1, 0; setp.ge.u32 %q1, %t, 5; @%q1 bra after;
    activemask.b32 %r1;
    after: add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [31] * 5 + [0] * 27 == found.tolist()


def test_a_shuffle_in_a_partial_mask_runs_per_group(run, kernel):
    """Two halves of a warp shuffle apart, in different branches."""
    body = """
    setp.lt.u32 %q1, %lane, 16; @%q1 bra low;
    shfl.sync.bfly.b32 %r1, %lane, 1, 31, 0xFFFF0000; bra after;
    low: shfl.sync.bfly.b32 %r1, %lane, 2, 31, 0x0000FFFF;
    after: add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""

    (found,), reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [t ^ (2 if t < 16 else 1) for t in range(32)] == found.tolist()
    assert [] == reports


def test_a_shuffle_waits_for_threads_on_another_path(run, kernel):
    """Lanes that come late, out of a longer path, still take part."""
    body = """
    mov.u32 %r2, %lane; setp.lt.u32 %q1, %lane, 7; @%q1 bra longer;
    join: shfl.sync.idx.b32 %r1, %r2, 3, 31, -1; bra after;
    longer: add.u32 %r2, %r2, 100; bra join;
    after: add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r1;"""

    (found,), reports = run(kernel(body), 1, 32, [np.zeros(32, np.uint32)])

    assert [103] * 32 == found.tolist()
    assert [] == reports


MMA = "mma.sync.aligned.m16n8k16.row.col"
INS = "{%r0,%r1,%r2,%r3},{%r4,%r5}"
SHARED = ".shared .align 16 .b8 buf[2048];"


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(run, kernel, count, trans):
    """Lane 4r + c holds elements (r, 2c) and (r, 2c + 1) of each 8x8 matrix."""
    items = ", ".join(f"%r{10 + at}" for at in range(count))
    stores = "".join(
        f"st.global.b32 [%l5+{4 * at}], %r{10 + at};\n" for at in range(count)
    )
    body = f"""{SHARED}
    mov.u32 %r1, buf; mul.lo.u32 %r2, %t, 16; add.u32 %r1, %r1, %r2;
    mul.wide.u32 %l1, %t, 16; add.u64 %l1, %l1, %p0;
    ld.global.v4.b32 {{%r3, %r4, %r5, %r6}}, [%l1];
    st.shared.v4.b32 [%r1], {{%r3, %r4, %r5, %r6}}; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x{count}{".trans" if trans else ""}.shared.b16
        {{{items}}}, [%r1];
    mul.wide.u32 %l5, %t, 16; add.u64 %l5, %l5, %p1; {stores}"""
    x = np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8)
    tiles = x.swapaxes(1, 2) if trans else x
    expected = [
        [
            (tiles[m, t // 4, t % 4 * 2], tiles[m, t // 4, t % 4 * 2 + 1])
            for m in range(count)
        ]
        for t in range(32)
    ]

    found, reports = run(kernel(body, 2), 1, 32, [x, np.zeros((32, 4), np.uint32)])

    words = found[1][:, :count]
    assert expected == [[(w & 0xFFFF, w >> 16) for w in row] for row in words.tolist()]
    assert [] == reports


def _fragments(kind, k, a, b, c):
    """Spread matrices over lanes as the ISA's figures do."""
    per = 1 if kind == "tf32" else 2
    lanes = range(32)

    def a_place(lane, at, part):
        column = lane % 4 * per + part + 4 * per * (at // 2)
        return lane // 4 + 8 * (at % 2), column

    def b_place(lane, at, part):
        return lane % 4 * per + part + 4 * per * at, lane // 4

    def pack(values):
        raw = np.array(values)
        return int(raw.view(np.uint32)[0]) if raw.nbytes == 4 else None

    a_words = [
        [
            pack([a[a_place(t, at, p)] for p in range(per)])
            for at in range(k * 16 // 32 // per)
        ]
        for t in lanes
    ]
    b_words = [
        [
            pack([b[b_place(t, at, p)] for p in range(per)])
            for at in range(k * 8 // 32 // per)
        ]
        for t in lanes
    ]
    c_rows = [
        [c[t // 4 + 8 * (at // 2), t % 4 * 2 + at % 2] for at in range(4)]
        for t in lanes
    ]
    return np.array(a_words, "u4"), np.array(b_words, "u4"), np.array(c_rows, "f4")


@pytest.mark.parametrize(
    ("kind", "k"),
    [("tf32", 8), ("tf32", 4), ("f16", 16), ("bf16", 16), ("f16", 8), ("bf16", 8)],
)
def test_mma(run, kernel, kind, k):
    """The fragments of a @ b + c come out where the ISA puts them."""
    random = np.random.default_rng(23)
    exact = {"tf32": "f4", "f16": "f2", "bf16": "f4"}[kind]
    a = (random.integers(-8, 8, (16, k)) / 4).astype(exact)
    b = (random.integers(-8, 8, (k, 8)) / 4).astype(exact)
    c = random.integers(-8, 8, (16, 8)).astype("f4")
    raw = [narrow_bf16(x, "rn") if kind == "bf16" else x for x in (a, b)]
    a_words, b_words, c_rows = _fragments(kind, k, *raw, c)
    na, nb = a_words.shape[1], b_words.shape[1]
    ar = ", ".join(f"%r{at}" for at in range(na))
    br = ", ".join(f"%r{10 + at}" for at in range(nb))
    loads = "".join(f"ld.global.b32 %r{at}, [%l1+{4 * at}];\n" for at in range(na))
    loads += "".join(
        f"ld.global.b32 %r{10 + at}, [%l2+{4 * at}];\n" for at in range(nb)
    )
    body = f"""
    mul.wide.u32 %l1, %t, {4 * na}; add.u64 %l1, %l1, %p0;
    mul.wide.u32 %l2, %t, {4 * nb}; add.u64 %l2, %l2, %p1;
    mul.wide.u32 %l3, %t, 16; add.u64 %l3, %l3, %p2; {loads}
    ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%l3];
    mma.sync.aligned.m16n8k{k}.row.col.f32.{kind}.{kind}.f32
        {{%f4, %f5, %f6, %f7}}, {{{ar}}}, {{{br}}}, {{%f0, %f1, %f2, %f3}};
    st.global.v4.f32 [%l3], {{%f4, %f5, %f6, %f7}};"""
    expected = a.astype("f8") @ b.astype("f8") + c

    found, reports = run(kernel(body, 3), 1, 32, [a_words, b_words, c_rows])

    out = np.zeros((16, 8), "f4")
    for lane, row in enumerate(found[2]):
        for at, value in enumerate(row):
            out[lane // 4 + 8 * (at // 2), lane % 4 * 2 + at % 2] = value
    assert expected.astype("f4").tolist() == out.tolist()
    assert [] == reports


def test_mma_sums_in_halves(run, kernel):
    """The f16 form packs its sums in pairs."""
    body = """
    mov.b32 %r1, 0x3C003C00; mov.b32 %r2, 0x40004000;
    mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16
        {%r3, %r4}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%r2, %r2};
    mul.wide.u32 %l1, %t, 8; add.u64 %l1, %l1, %p0;
    st.global.v2.b32 [%l1], {%r3, %r4};"""

    (found,), _ = run(kernel(body), 1, 32, [np.zeros((32, 2), np.uint32)])

    assert {18.0} == set(found.view(np.float16).ravel().tolist())


@pytest.mark.parametrize(
    "text",
    [
        "shfl.bfly.b32 %r1, %r2, 1, 31;",
        "shfl.sync.bfly.b64 %l1, %l2, 1, 31, -1;",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r2}, {%r3}, {%r4};",
        f"{MMA}.f32.f16.bf16.f32 {{%f0,%f1,%f2,%f3}},{INS},{{%f0,%f1,%f2,%f3}};",
        f"{MMA}.f32.f16.f16.f32 {{%f0,%f1,%f2}},{INS},{{%f0,%f1,%f2,%f3}};",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];",
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r2,%r3}, [%r2];",
        "wgmma.fence.sync.aligned;",
        "vote.sync.none.pred %q1, %q2, -1;",
    ],
)
def test_what_is_not_there_is_refused(run, kernel, text):
    """Unknown shapes, types and fragment sizes are errors with a line."""
    with pytest.raises(PtxError) as caught:
        run(kernel(text), 1, 32, [np.zeros(32, "f4")])

    assert caught.value.line > 0
