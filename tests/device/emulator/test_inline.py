"""Device calls are inlined; what can't be is refused with its line."""

from __future__ import annotations

import pytest

from tilewise.device.emulator.inline import flatten
from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.syntax import Instruction, PtxError

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
CALL = "{ .param .b32 a; call f, (a); }"


def module(functions, body):
    """Parse some functions and a kernel."""
    registers = ".reg .b32 %r<3>; .reg .pred %q;"
    return parse(f"{HEAD}{functions}\n.entry k() {{ {registers}\n{body}\nret; }}")


def test_each_call_has_its_own_registers_and_frame():
    """Names are prefixed per call; formal parameters become the caller's."""
    text = """.func f(.param .b32 x) { .reg .b32 %r<2>; .local .b8 y[4];
    ld.param.b32 %r1, [x]; L: st.local.b32 [y], %r1; bra L; ret; }"""

    flat = flatten(module(text, CALL * 2), "k")
    loads = [i for i in flat.items if isinstance(i, Instruction)][::4]

    assert ["a@1", "a@2", "f#1.y", "f#2.y"] == sorted(v.name for v in flat.variables)
    assert ["f#1.%r1", "f#2.%r1"] == [i.operands[0].name for i in loads[:2]]
    assert ["a@1", "a@2"] == [i.operands[1].base.name for i in loads[:2]]


@pytest.mark.parametrize(
    ("functions", "body", "word"),
    [
        (".func f(.param .b32 x);", CALL, "not defined"),
        ("", CALL, "not defined"),
        (".func f(.param .b32 x) { " + CALL + " ret; }", CALL, "calls itself"),
        (".func f() { ret; }", CALL, "takes 0 parameters, not 1"),
        (".func f(.param .b32 x) { ret; }", "call f, (%r1);", "no .param"),
        (".func f() { ret; }", "@%q call f;", "predicate"),
        (".func f() { ret; }", "call %r1;", "direct calls"),
        (".func f() { ret; }", "call.tail f;", "not understood"),
    ],
)
def test_what_cannot_be_inlined_is_named(functions, body, word):
    """Each refusal names the callee or the form, with its line."""
    with pytest.raises(PtxError) as caught:
        flatten(module(functions, body), "k")

    assert word in str(caught.value)
    assert caught.value.line > 0


def test_a_missing_kernel_is_named():
    """The error lists the entries; a device function is none."""
    with pytest.raises(PtxError, match="there are: k"):
        flatten(module(".func f() { ret; }", ""), "f")
