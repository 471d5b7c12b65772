"""Loads, stores, moves, atomics and generic addresses, run as PTX."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.syntax import PtxError

SHARED = ".shared .align 16 .b8 buf[4096];"


@pytest.mark.parametrize(
    "type_", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "f32"]
)
def test_loads_extend_by_their_type(run, kernel, type_):
    """A load into a wider register extends with the type's sign."""
    dtype = np.dtype(
        {"f": "f", "u": "u", "s": "i"}[type_[0]] + str(int(type_[1:]) // 8)
    )
    x = np.arange(64).astype(dtype)
    x[1::2] = ~x[1::2] if dtype.kind != "f" else -x[1::2]
    register = {"f32": "%f1"}.get(type_, "%l5")
    stored = {"f32": "f32"}.get(type_, "u64")
    body = f"""
    mul.wide.u32 %l1, %i, {dtype.itemsize}; add.u64 %l1, %l1, %p0;
    ld.global.{type_} {register}, [%l1];
    mul.wide.u32 %l2, %i, 8; add.u64 %l2, %l2, %p1;
    st.global.{stored} [%l2], {register};"""
    out = np.zeros(64, "f8" if type_ == "f32" else "i8")

    (_, found), reports = run(kernel(body, 2), 1, 64, [x, out])

    if type_ == "f32":
        assert x.tolist() == found.view("f4")[::2].tolist()
    else:
        wide = x.astype("i8") if dtype.kind == "i" else x.astype("u8").view("i8")
        assert wide.tolist() == found.tolist()
    assert [] == reports


@pytest.mark.parametrize("space", ["global", "shared", "local"])
@pytest.mark.parametrize("vec", [2, 4])
def test_vectors_keep_every_element(run, kernel, space, vec):
    """A vector goes out and comes back element by element, in every space."""
    x = np.arange(32 * vec, dtype=np.float32)
    items = "{" + ", ".join(f"%f{at}" for at in range(vec)) + "}"
    through = {
        "global": "",
        "shared": f"""mul.lo.u32 %r2, %t, {4 * vec}; mov.u32 %r3, buf;
            add.u32 %r2, %r2, %r3; st.shared.v{vec}.f32 [%r2], {items};
            mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0;
            ld.shared.v{vec}.f32 {items}, [%r2];""",
        "local": f"""mov.u64 %l5, frame; st.local.v{vec}.f32 [%l5+16], {items};
            mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0;
            ld.local.v{vec}.f32 {items}, [%l5+16];""",
    }[space]
    body = f"""{SHARED} .local .align 16 .b8 frame[64];
    mul.wide.u32 %l1, %i, {4 * vec}; add.u64 %l2, %l1, %p0; add.u64 %l3, %l1, %p1;
    ld.global.v{vec}.f32 {items}, [%l2];
    {through}
    st.global.v{vec}.f32 [%l3], {items};"""

    (_, found), reports = run(kernel(body, 2), 1, 32, [x, np.full_like(x, np.nan)])

    assert x.tolist() == found.tolist()
    assert [] == reports


def test_predicated_accesses_touch_only_their_threads(run, kernel):
    """@p ld keeps the old value, @!p st writes nothing."""
    body = """
    setp.lt.u32 %q1, %t, 8; mov.u32 %r1, 7; add.u64 %l1, %p0, %o; add.u64 %l2, %p1, %o;
    @%q1 ld.global.u32 %r1, [%l1];
    @!%q1 st.global.u32 [%l2], %r1;
    @%q1 st.global.u32 [%l2+4], %r1;"""
    x = np.arange(8, dtype=np.uint32) + 100  # threads 8.. would be out of bounds
    out = np.zeros(33, np.uint32)

    (_, found), reports = run(kernel(body, 2), 1, 32, [x, out])

    assert [0, *range(100, 108)] == found[:9].tolist()
    assert [7] * 23 == found[9:32].tolist()
    assert [] == reports


def test_moves_pack_and_unpack(apply):
    """Mov joins and splits registers, the first element lowest."""
    low, high = apply(
        "mov.b64 {%d, %e}, %a;",
        {"d": "u32", "e": "u32"},
        a=("u64", [0x1122334455667788]),
    )
    joined = apply(
        "mov.b32 %d, {%a, %b};", "u32", a=("u16", [0x7788]), b=("u16", [0x5566])
    )
    bits = apply("mov.b32 %d, %a;", "u32", a=("f32", [1.0]))
    flag = apply("mov.pred %d, %a;", "pred", a=("pred", [True]))

    assert (0x55667788, 0x11223344) == (low[0], high[0])
    assert 0x55667788 == joined[0]
    assert 0x3F800000 == bits[0]
    assert flag[0]


def test_generic_addresses_find_their_space(run, kernel):
    """Threads of one load may point to shared, local and global memory."""
    body = f"""{SHARED} .local .align 16 .b8 frame[16];
    mov.u32 %r1, buf; mul.lo.u32 %r2, %t, 4; add.u32 %r1, %r1, %r2;
    add.u32 %r3, %t, 1000; st.shared.u32 [%r1], %r3;
    mov.u64 %l1, frame; add.u32 %r4, %t, 2000; st.local.u32 [%l1], %r4;
    cvta.local.u64 %l2, %l1; cvt.u64.u32 %l3, %r1; cvta.shared.u64 %l3, %l3;
    add.u64 %l4, %p0, %o;
    rem.u32 %r5, %t, 3; setp.eq.u32 %q1, %r5, 1; setp.eq.u32 %q2, %r5, 2;
    selp.b64 %l5, %l2, %l4, %q1; selp.b64 %l5, %l3, %l5, %q2;
    ld.u32 %r6, [%l5]; add.u32 %r6, %r6, 1; st.u32 [%l5], %r6; ld.u32 %r7, [%l5];
    add.u64 %l6, %p1, %o; st.global.u32 [%l6], %r7;
    isspacep.shared %q3, %l5; isspacep.local %q4, %l5; isspacep.global %q5, %l5;
    selp.u32 %r8, 1, 0, %q3; selp.u32 %r9, 2, 0, %q4; selp.u32 %r10, 4, 0, %q5;
    or.b32 %r8, %r8, %r9; or.b32 %r8, %r8, %r10;
    add.u64 %l7, %p2, %o; st.global.u32 [%l7], %r8;"""
    x = np.arange(32, dtype=np.uint32)

    found, reports = run(kernel(body, 3), 1, 32, [x, x * 0, x * 0])

    base = np.array([0, 2000, 1000])[x % 3]
    assert (x + base + 1).tolist() == found[1].tolist()
    assert np.array([4, 2, 1])[x % 3].tolist() == found[2].tolist()
    assert [] == reports


ATOMICS = [
    ("add.u32", "u4", lambda old, x: old + x),
    ("min.s32", "i4", min),
    ("max.s32", "i4", max),
    ("min.u64", "u8", min),
    ("max.u32", "u4", max),
    ("and.b32", "u4", lambda old, x: old & x),
    ("or.b32", "u4", lambda old, x: old | x),
    ("xor.b64", "u8", lambda old, x: old ^ x),
    ("exch.b32", "u4", lambda old, x: x),
    ("inc.u32", "u4", lambda old, x: 0 if old >= x else old + 1),
    ("dec.u32", "u4", lambda old, x: x if old == 0 or old > x else old - 1),
    ("add.f32", "f4", lambda old, x: np.float32(old + x)),
    ("add.f64", "f8", lambda old, x: old + x),
    ("add.u64", "u8", lambda old, x: old + x),
]


@pytest.mark.parametrize(("op", "kind", "function"), ATOMICS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_take_turns(run, kernel, op, kind, function, space):
    """Threads that hit one place update it in turn and see the value before."""
    size = np.dtype(kind).itemsize
    held = {"f4": "%f1", "f8": "%d1", "u4": "%r1", "i4": "%r1", "u8": "%l1"}[kind]
    old = held.replace("1", "2")
    load = f"{'f' if kind[0] == 'f' else 'b'}{8 * size}"
    target = {
        "global": "mov.u64 %l10, %p1;",
        "shared": f"""mov.u64 %l10, buf; ld.global.{load} {old}, [%p1];
            st.shared.{load} [%l10], {old}; bar.sync 0;""",
    }[space]
    back = f"""bar.sync 0; setp.eq.u32 %q1, %t, 0;
        @%q1 ld.shared.{load} {old}, [%l10]; @%q1 st.global.{load} [%p1], {old};"""
    body = f"""{SHARED if space == "shared" else ""}
    mul.wide.u32 %l9, %i, {size}; add.u64 %l8, %p0, %l9;
    ld.global.{load} {held}, [%l8]; {target}
    atom.{space}.{op} {old}, [%l10], {held};
    add.u64 %l8, %p2, %l9; st.global.{load} [%l8], {old};
    {back if space == "shared" else ""}"""
    random = np.random.default_rng(19)
    x = random.integers(0, 50, 40).astype(kind)
    start = np.array([23], kind)
    value, seen = start[0].item(), []
    for operand in x.tolist():
        seen.append(value)
        value = type(value)(function(value, operand))
    text = kernel(body, 3)
    if space == "shared":  # every thread fills the place with one value: no race
        assert "st.shared" in text

    found, reports = run(text, 1, 40, [x, start, np.zeros(40, kind)])

    assert seen == found[2].tolist()
    assert [value] == found[1].tolist()
    assert [] == reports


def test_compare_and_swap(run, kernel):
    """Cas writes only where the old value is the expected one."""
    body = """
    add.u32 %r1, %t, 1; atom.global.cas.b32 %r2, [%p0], %t, %r1;
    add.u64 %l1, %p1, %o; st.global.u32 [%l1], %r2;"""

    found, _ = run(kernel(body, 2), 1, 32, [np.zeros(1, "u4"), np.zeros(32, "u4")])

    assert [32] == found[0].tolist()
    assert list(range(32)) == found[1].tolist()


def test_reductions_without_a_result(run, kernel):
    """Red updates like atom, also for packed halves."""
    body = """
    red.global.add.u32 [%p0], 2; mov.b32 %r1, 0x3C004000;
    red.global.add.noftz.f16x2 [%p0+4], %r1;"""

    found, _ = run(kernel(body, 1), 1, 8, [np.zeros(2, "u4")])

    assert 16 == found[0][0]
    assert [16.0, 8.0] == found[0][1:].view("f2").tolist()


def test_module_variables_have_their_initial_values(run, kernel):
    """Constants, globals and pointers to them are set before the kernel runs."""
    head = """.const .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 3.5, 4};
    .global .align 4 .u32 zero; .global .align 8 .u64 pointer = table;
    .global .align 2 .u16 small[3] = {1, 2, 0xFFFF};"""
    body = """
    and.b32 %r1, %t, 3; mul.wide.u32 %l1, %r1, 4; mov.u64 %l2, table;
    add.u64 %l3, %l2, %l1; ld.const.f32 %f1, [%l3];
    ld.global.u64 %l4, [pointer]; ld.const.f32 %f2, [%l4+4]; add.f32 %f1, %f1, %f2;
    ld.global.u16 %s1, [small+4]; cvt.rn.f32.u16 %f3, %s1; add.f32 %f1, %f1, %f3;
    ld.global.u32 %r2, [zero]; cvt.rn.f32.u32 %f4, %r2; add.f32 %f1, %f1, %f4;
    add.u64 %l5, %p0, %o; st.global.f32 [%l5], %f1;"""

    found, reports = run(kernel(body, 1, head), 1, 4, [np.zeros(4, "f4")])

    assert [65538.0, 65539.0, 65540.5, 65541.0] == found[0].tolist()
    assert [] == reports


@pytest.mark.parametrize("lazy", [True, False])
def test_asynchronous_copies_arrive(run, kernel, lazy):
    """4, 8 and 16 bytes, groups, and a source that is shorter than the copy."""
    body = f"""{SHARED}
    mov.u32 %r1, buf; mul.lo.u32 %r2, %t, 16; add.u32 %r1, %r1, %r2;
    mul.wide.u32 %l1, %t, 16; add.u64 %l2, %p0, %l1; add.u64 %l3, %p1, %l1;
    cp.async.ca.shared.global [%r1], [%l2], 8;
    cp.async.ca.shared.global [%r1+8], [%l2+8], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r1+12], [%l2+12], 4, 2;
    cp.async.commit_group; cp.async.wait_group 1;
    ld.shared.v2.u32 {{%r3, %r4}}, [%r1]; ld.shared.u32 %r5, [%r1+8];
    cp.async.wait_all; ld.shared.u32 %r6, [%r1+12];
    cp.async.cg.shared.global [%r1], [%l2], 16, 0; cp.async.wait_all;
    ld.shared.u32 %r7, [%r1]; add.u32 %r3, %r3, %r7;
    st.global.v4.u32 [%l3], {{%r3, %r4, %r5, %r6}};"""
    x = np.arange(128, dtype=np.uint32) + 0x10001
    expected = x.copy()
    expected[3::4] &= 0xFFFF

    found, reports = run(kernel(body, 2), 1, 32, [x, x * 0], lazy=lazy)

    assert expected.tolist() == found[1].tolist()
    assert [] == reports


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.v3.f32 {%f1, %f2, %f3}, [%p0];",
        "ld.global.v2.f32 %f1, [%p0];",
        "ld.global.v2.f32 {%f1, %f2, %f3}, [%p0];",
        "ld.tex.f32 %f1, [%p0];",
        "ld.shared::cluster.f32 %f1, [%p0];",
        "ld.global.u64 %r1, [%p0];",
        "st.param.u32 [arg0], %r1;",
        "st.const.u32 [%p0], %r1;",
        "atom.global.add.s64.sat %l1, [%p0], %l2;",
        "atom.global.cas.b32 %r1, [%p0], %r2;",
        "cp.async.cg.shared.global [%r1], [%p0], 8;",
        "cp.async.ca.shared.global [%r1], [%p0], 3;",
        "cp.async.bulk.shared.global [%r1], [%p0], 16;",
        "mov.u32 %r1, nowhere;",
        "ld.global.f32 %f1, %p0;",
    ],
)
def test_what_is_not_there_is_refused(run, kernel, text):
    """Unknown forms of memory instructions are errors with a line."""
    with pytest.raises(PtxError) as caught:
        run(kernel(text, 1), 1, 32, [np.zeros(64, "f4")])

    assert caught.value.line > 0


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_of_several_places_take_turns_apart(run, kernel, space):
    """Each place is updated by its own threads, in their order."""
    place = {"global": "%p0", "shared": "buf"}[space]
    head = """mov.u64 %l1, buf; add.u64 %l1, %l1, %o; st.shared.u32 [%l1], 0;
    bar.sync 0;"""
    body = f"""{SHARED if space == "shared" else ""} {head if space == "shared" else ""}
    mov.u64 %l2, {place}; rem.u32 %r1, %t, 3; mul.wide.u32 %l3, %r1, 4;
    add.u64 %l2, %l2, %l3; atom.{space}.add.u32 %r2, [%l2], %t;
    add.u64 %l4, %p1, %o; st.global.u32 [%l4], %r2;"""

    found, reports = run(
        kernel(body, 2), 1, 40, [np.zeros(3, "u4"), np.zeros(40, "u4")]
    )

    assert [sum(range(t % 3, t, 3)) for t in range(40)] == found[1].tolist()
    assert [] == reports


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.nc.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%p0];",
        "ld.global.L1::no_allocate.L2::256B.f32 %f1, [%p0];",
        "ld.global.nc.L1::evict_last.u32 %r1, [%p0];",
        "ld.global.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%p0];",
        "ld.global.v4.b64 {%l1, %l2, %l3, %l4}, [%p0];",
        "ld.weak.global.ca.u32 %r1, [%p0];",
        "ld.relaxed.sys.global.L1::no_allocate.u32 %r1, [%p0];",
        "ld.acquire.gpu.global.b32 %r1, [%p0];",
        "ld.volatile.global.u32 %r1, [%p0];",
        "ldu.global.f32 %f1, [%p0];",
        "st.global.cs.f32 [%p0], 0f00000000;",
        "st.global.L1::no_allocate.v2.b64 [%p0], {0, 1};",
        "st.release.gpu.global.u32 [%p0], 1;",
        "st.weak.global.u32 [%p0], 1;",
        "atom.relaxed.gpu.global.add.f32 %f1, [%p0], 0f3F800000;",
        "atom.add.u32 %r1, [%p0], 1;",
        "atom.acq_rel.gpu.global.cas.b32 %r1, [%p0], 0, 1;",
        "red.relaxed.gpu.global.add.f64 [%p0], 0d3FF0000000000000;",
        "red.global.add.noftz.bf16x2 [%p0], 0x3F803F80;",
        "fence.acq_rel.gpu; fence.sc.cta; membar.gl; membar.cta;",
        "prefetch.global.L2 [%p0]; prefetchu.L1 [%p0];",
        "nanosleep.u32 20;",
        "ld.global.b32 %r1, [arg0_alias];",
    ],
)
def test_forms_of_all_targets_are_understood(run, kernel, text):
    """Hints, scopes, orders and wide vectors change no value and are accepted."""
    head = ".global .align 16 .b32 arg0_alias;"

    _, reports = run(kernel(text, 1, head), 1, 1, [np.zeros(64, "f4")])

    assert [] == reports
