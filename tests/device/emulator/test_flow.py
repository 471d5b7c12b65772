"""Blocks are cut at labels, branches and warp operations; registers are followed."""

from __future__ import annotations

from tilewise.device.emulator.flow import follow
from tilewise.device.emulator.inline import flatten
from tilewise.device.emulator.parser import parse

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"


def flow(body):
    """Follow the registers of a body."""
    text = f"""{HEAD}.entry k() {{ .reg .b32 %r<9>; .reg .pred %q<3>; {body} }}"""
    return follow(flatten(parse(text), "k"))


def names(registers):
    """Return register names in order."""
    return sorted(r.name for r in registers)


def test_a_loop():
    """What the loop carries is live around it, what it does not is not."""
    found = flow("""mov.u32 %r1, 0; mov.u32 %r2, 5; mov.u32 %r3, 7;
    L: add.u32 %r4, %r1, %r2; mov.u32 %r1, %r4; setp.lt.u32 %q1, %r1, 9; @%q1 bra L;
    ret;""")

    assert [[1], [1, 2], []] == [b.successors for b in found.blocks]
    assert ["%r1", "%r2"] == names(found.blocks[0].live_out)
    assert ["%r1", "%r2"] == names(found.blocks[1].live_out)
    assert ["%r1", "%r2"] == names(found.blocks[1].uses)
    assert {"L": 1} == found.targets
    assert frozenset() == found.watched


def test_a_register_written_on_one_path_only_is_watched():
    """It may be read without a value; one written on both paths may not."""
    found = flow("""mov.u32 %r1, 0; setp.eq.u32 %q1, %r1, 0; @%q1 bra L;
    mov.u32 %r2, 1; mov.u32 %r3, 1; bra M;
    L: mov.u32 %r3, 2;
    M: add.u32 %r4, %r2, %r3; ret;""")

    assert ["%r2"] == names(found.watched)


def test_a_predicated_write_keeps_the_old_value():
    """It reads its own register, and alone it is no sure write."""
    found = flow("""mov.u32 %r1, 0; setp.eq.u32 %q1, %r1, 0; @%q1 mov.u32 %r2, 1;
    bra.uni L; L: add.u32 %r4, %r2, 1; ret;""")

    assert ["%r2"] == names(found.blocks[0].uses)
    assert ["%r2"] == names(found.watched)


def test_warp_operations_begin_a_block():
    """The machine sees their mask before it runs them."""
    found = flow("""mov.u32 %r1, 0; mov.u32 %r3, -1;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r3; add.u32 %r4, %r2, 1; bar.sync 0; ret;""")

    assert [None, "%r3", None] == [getattr(b.mask, "name", None) for b in found.blocks]
    assert [2, 3, 1] == [len(b.items) for b in found.blocks]
