"""Arguments are packed at their parameters' offsets."""

from __future__ import annotations

import struct

import numpy as np

from tilewise.device.emulator.launch import parameter_block
from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.program import compile_entry


def test_pointers_scalars_and_structures():
    """Padding is zero, structures are taken as bytes."""
    text = """.version 8.7
    .target sm_90
    .address_size 64
    .entry k(.param .u32 n, .param .u64 p, .param .align 4 .b8 s[6], .param .f64 a)
    { ret; }"""
    program = compile_entry(parse(text), "k", {})
    args = [np.int32(7), "here", b"abcdef", np.float64(1.5)]

    block = parameter_block(program, args, lambda x: 256 if x == "here" else None)

    expected = struct.pack("<i4xQ6s2xd", 7, 256, b"abcdef", 1.5)
    assert expected == block
