"""Instructions are joined with their rows: results, sources and types."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.decode import decode
from tilewise.device.emulator.decoded import CARRY
from tilewise.device.emulator.syntax import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Pair,
    PtxError,
    Register,
    Vector,
)

R = [Register(f"%r{n}", "b32") for n in range(6)]
P = [Register(f"%p{n}", "pred") for n in range(4)]


def made(opcode, *operands, guard=None):
    """Decode an instruction."""
    return decode(Instruction(opcode, operands, guard, False, 3, opcode, ""))


def test_what_is_written_and_read():
    """Addresses, vectors, negations and guards are reads; pairs are writes."""
    load = made("ld.global.v2.u32", Vector((R[0], R[1])), Address(R[2], 4), guard=P[0])
    store = made("st.global.u32", Address(R[2], 0), R[3])
    compare = made("setp.lt.and.s32", Pair(P[1], P[2]), R[0], R[1], Negated(P[3]))

    assert ((R[0], R[1]), (R[2], P[0])) == (load.writes, load.reads)
    assert ((), (R[2], R[3])) == (store.writes, store.reads)
    assert ((P[1], P[2]), (R[0], R[1], P[3])) == (compare.writes, compare.reads)


def test_types_come_from_the_opcode():
    """Wide products have wide results, conversions two types."""
    wide = made("mul.wide.s32", R[0], R[1], R[2])
    convert = made("cvt.rn.f32.s64", R[0], R[1])

    assert (["s64"], ["s32", "s32"]) == (
        [t.type for t in wide.outs],
        [t.type for t in wide.ins],
    )
    assert ("f32", "s64") == (convert.outs[0].type, convert.ins[0].type)


def test_the_carry_is_an_operand_that_is_not_written_down():
    """addc.cc reads and writes it."""
    found = made("addc.cc.u32", R[0], R[1], R[2])

    assert ((R[0], CARRY), (R[1], R[2], CARRY)) == (found.writes, found.reads)


@pytest.mark.parametrize(
    ("opcode", "operands"),
    [
        ("add.u32", (R[0], R[1])),
        ("add.u32", (R[0], R[1], R[2], R[3])),
        ("add.u32", (Pair(R[0], P[0]), R[1], R[2])),
        ("bar.sync", ()),
        ("ret", (Immediate(1, "int"),)),
    ],
)
def test_other_operand_counts_are_refused(opcode, operands):
    """The error names the opcode and what it takes."""
    with pytest.raises(PtxError, match=f"line 3: {opcode} takes other operands"):
        made(opcode, *operands)
