"""PTX modules are parsed whole or refused by name with their line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.program import compile_entry
from tilewise.device.emulator.syntax import (
    Address,
    Immediate,
    Instruction,
    PtxError,
    Register,
    Symbol,
)

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.ptx"))
HEAD = ".version 8.7\n.target sm_90, debug\n.address_size 64\n"


def test_a_module():
    """Targets, variables, parameters, registers and source lines are kept."""
    text = (
        HEAD
        + """
    .visible .const .align 4 .b8 table[8] = {1, 2, 3, 0xff};
    .entry k(.param .u64 .ptr .global .align 8 x, .param .align 4 .b8 s[12])
    .maxntid 256, 1, 1
    .minnctapersm 2
    {
    .reg .f32 %f<3>; .reg .b64 %l;
    .loc 1 7 3
    ld.param.u64 %l, [x]; // comment
    .loc 1 8 1, function_name $info, inlined_at 1 9 2
    @!%q add.f32 %f1, 0f3F800000, -1.5;
    ret;
    }
    .file 1 "model.cu", 1, 2
    .section .debug { .b8 1,2 { } }
    """
    )
    text = text.replace(".reg .b64 %l;", ".reg .b64 %l; .reg .pred %q;")

    module = parse(text)
    kernel = module.functions["k"]
    load, add, _ = kernel.body

    assert ("sm_90", ("k",)) == (module.target, module.entries)
    assert [("table", "const", 8, b"\1\2\3\xff\0\0\0\0")] == [
        (v.name, v.space, v.nbytes, v.initial) for v in module.variables
    ]
    assert [("x", 8, 8), ("s", 12, 4)] == [
        (p.name, p.nbytes, p.align) for p in kernel.params
    ]
    assert (Register("%l", "b64"), Address(Symbol("x"), 0)) == load.operands
    assert ("model.cu:7", "model.cu:8") == (load.source, add.source)
    assert (Register("%q", "pred"), True) == (add.guard, add.negated)
    minus = Immediate(0xBFF8000000000000, "f64")
    assert (Register("%f1", "f32"), Immediate(0x3F800000, "f32"), minus) == add.operands
    assert "@!%q add.f32 %f1, 0f3F800000, -1.5" == add.text


def test_inner_scopes_hide_outer_names():
    """Inline assembly may declare registers and labels again."""
    body = "{ .reg .u32 %r1; L: mov.u32 %r1, 1; bra L; } L: mov.u32 %r1, 2; bra L;"
    text = f"{HEAD}.entry k() {{ .reg .u32 %r<2>; {body} }}"

    items = [i for i in parse(text).functions["k"].body if isinstance(i, Instruction)]
    names = [i.operands[0].name for i in items]

    assert ["%r1@1", "L@1", "%r1", "L"] == names


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_recorded_kernels_parse_and_compile(path):
    """What numba and NVRTC emit for sm_75 to sm_120 is understood."""
    module = parse(path.read_text())

    places = {variable.name: 4096 for variable in module.variables}
    for entry in module.entries:
        assert compile_entry(module, entry, places).steps


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "no .entry"),
        (".version 8.7\n.target sm_90\n.address_size 32", 3, "64"),
        (".version 8.7\nhello", 2, "hello"),
        (HEAD + ".entry k() {\nadd.u32 %r1, 1, 2;\n}", 5, "declared nowhere"),
        (HEAD + ".entry k() {\n", 5, "not closed"),
        (HEAD + ".entry k() { ret\n}", 5, "unexpected '}'"),
        (HEAD + ".entry k() {\n.reg .q32 %r1;\n}", 5, ".q32"),
        (HEAD + ".entry k() {\nL:\nL: ret;\n}", 6, "twice"),
        (HEAD + ".entry k() {\n@%p ret;\n}", 5, "not a predicate"),
        (HEAD + ".entry k(.param .u64 x[]) { ret; }", 4, "no size"),
        (HEAD + ".global .u32 x[2] = {1, 2, 3};", 4, "more initial values"),
        (HEAD + ".extern .global .u32 x;", 4, "defined nowhere"),
        (HEAD + ".entry k() { ret; }\n.entry k() { ret; }", 5, "twice"),
        (HEAD + ".entry k()\n.cluster 1\n{ ret; }", 5, ".cluster"),
        (HEAD + ".section .debug {", 4, "not closed"),
        (HEAD + ".entry k() { mov.u32 %r1, [; }", 4, "unexpected"),
        (HEAD + ".entry k() { ret 0x" + "f" * 100 + "; }", 4, "too long"),
        (HEAD + ".entry k() {" + "{" * 100, 4, "deeper"),
        (HEAD + ".global .b8 x[0xFFFFFFFFFF];", 4, "no possible size"),
    ],
)
def test_what_is_not_understood_is_named(text, line, word):
    """Each refusal says what and where."""
    with pytest.raises(PtxError) as caught:
        parse(text)

    assert (line, True) == (caught.value.line, word in str(caught.value))


def survives(text: str) -> None:
    """Parse and compile; PtxError is the one allowed failure."""
    try:
        module = parse(text)
        for entry in module.entries:
            compile_entry(module, entry, {})
    except PtxError as error:
        assert str(error)


@settings(max_examples=150, deadline=2000, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mutated_kernels_end_in_a_kernel_or_a_named_error(data):
    """Deleted, doubled and swapped pieces of real PTX crash nothing."""
    text = data.draw(st.sampled_from(SHORT))
    tokens = text.split(" ")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(tokens) - 1))
        other = data.draw(st.integers(0, len(tokens) - 1))
        action = data.draw(st.sampled_from(["drop", "copy", "swap", "char"]))
        if action == "drop":
            del tokens[at : at + 1]
        elif action == "copy":
            tokens.insert(at, tokens[other])
        elif action == "swap":
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            word = tokens[at]
            place = data.draw(st.integers(0, len(word)))
            letter = data.draw(st.sampled_from(list('.,;{}[]()%@!:<>=+-0fx \n"|_$aZ')))
            tokens[at] = word[:place] + letter + word[place + 1 :]
        if not tokens:
            break

    survives(" ".join(tokens))


@settings(max_examples=150, deadline=2000)
@given(st.text(alphabet='.,;{}[]()%@!:<>=+-0123fxdR \nregparmbs_$|/*"', max_size=80))
def test_noise_ends_in_a_named_error(noise):
    """Noise inside and outside a function crashes nothing."""
    survives(noise)
    survives(f"{HEAD}.entry k(.param .u64 p) {{ .reg .b32 %r<3>; {noise} ret; }}")


@settings(max_examples=150, deadline=2000)
@given(st.data())
def test_any_opcode_with_any_operands_is_run_or_refused(data):
    """Opcodes with foreign modifiers and operands are compiled or named."""
    opcode = data.draw(st.sampled_from(OPCODES))
    parts = opcode.split(".")
    for _ in range(data.draw(st.integers(0, 2))):
        extra = data.draw(
            st.sampled_from(["f32", "s8", "sat", "v2", "sync", "cc", "b64"])
        )
        parts.insert(data.draw(st.integers(1, len(parts))), extra)
    operand = st.sampled_from(
        [
            "%r1",
            "%f1",
            "%l1",
            "%q1",
            "{%r1, %r2}",
            "[%l1]",
            "7",
            "-1.5",
            "_",
            "%r1|%q1",
            "x",
            "L",
            "!%q1",
            "%tid.x",
            "[p+4]",
            "0f3F800000",
            "(%r1)",
            "k",
        ]
    )
    operands = data.draw(st.lists(operand, max_size=5))
    guard = data.draw(st.sampled_from(["", "@%q1 ", "@!%q1 "]))
    text = f"""{HEAD}.global .u32 x; .entry k(.param .u64 p) {{
    .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %l<3>; .reg .pred %q<3>;
    L: {guard}{".".join(parts)} {", ".join(operands)}; ret; }}"""

    survives(text)


def _opcodes() -> list[str]:
    found = set()
    for path in KERNELS:
        for function in parse(path.read_text()).functions.values():
            found |= {
                i.opcode for i in function.body or () if isinstance(i, Instruction)
            }
    return sorted(found)


def _short() -> list[str]:
    return [p.read_text() for p in KERNELS if p.stat().st_size < 4500]


OPCODES = _opcodes()
SHORT = _short()


@pytest.mark.emulate
def test_long_fuzz():
    """Ten thousand random mutations of all recorded kernels crash nothing."""
    generator = random.Random(0)
    texts = [p.read_text() for p in KERNELS]
    for _ in range(10_000):
        text = list(generator.choice(texts))
        for _ in range(generator.randint(1, 6)):
            at = generator.randrange(len(text))
            text[at] = generator.choice([*'.,;{}[]()%@!:<>=+-0fx \n"|_$aZ', ""])
        survives("".join(text))
