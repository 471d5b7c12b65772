"""Patterns of the ISA's notation match whole opcodes or nothing."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.decode import TABLE
from tilewise.device.emulator.syntax import Instruction, PtxError
from tilewise.device.emulator.table import Row, Table, compile_pattern


def test_groups_and_options():
    """Classes are named by their group; what is in brackets may be missing."""
    pattern = compile_pattern("fma<rnd>[<ftz>][.sat]<t:f32|int>")

    full = pattern.match("fma.rz.ftz.sat.f32").groupdict()
    short = pattern.match("fma.rn.u16").groupdict()

    assert {"rnd": "rz", "ftz": "ftz", "t": "f32"} == full
    assert {"rnd": "rn", "ftz": None, "t": "u16"} == short
    assert [None] * 3 == [
        pattern.match(x) for x in ("fma.rn.sat.ftz.f32", "fma.rn.f32.x", "fma.f32")
    ]


def test_an_unknown_opcode_is_told_from_an_unknown_form():
    """The error names the opcode alone, or the whole form."""
    table = Table((Row("add<t:int>", "d:t = a:t b:t", "{a}"),))

    for opcode, word in (("mul.u32", "opcode 'mul'"), ("add.f32", "add.f32 is not")):
        with pytest.raises(PtxError, match=word):
            table.find(Instruction(opcode, (), None, False, 1, "", ""))


def test_no_pattern_stands_twice():
    """Each form has one row."""
    patterns = TABLE.patterns

    assert len(set(patterns)) == len(patterns)
    assert len(patterns) > 150
