"""Reports count their occurrences and read well."""

from __future__ import annotations

from tilewise.device.emulator.report import KINDS, Faults
from tilewise.device.emulator.syntax import Instruction

LOAD = Instruction("ld.f32", (), None, False, 7, "ld.f32 %f1, [%r1]", "model.cu:3")


def test_one_kind_at_one_line_is_one_report():
    """The first occurrence is the example, the rest is counted."""
    faults = Faults("dense")
    faults.add(
        "misaligned", LOAD, 3, ((1, 0, 0), (5, 0, 0)), space="global", address=16
    )
    faults.add("misaligned", LOAD, 4, ((0, 0, 0), (0, 0, 0)), space="global", address=2)
    faults.add("race_raw", LOAD, 1, ((0, 0, 0), (0, 0, 0)), other="written by x")

    first, second = faults.reports

    assert ("misaligned", 7, 16, (1, 0, 0)) == (
        first.kind,
        first.count,
        first.address,
        first.block,
    )
    assert (
        "misaligned: an address that is no multiple of the access's size [7x]\n"
        "  dense, PTX line 7 (model.cu:3): ld.f32 %f1, [%r1]\n"
        "  first at block (1, 0, 0) thread (5, 0, 0) global 0x10"
    ) == str(first)
    assert str(second).endswith("thread (0, 0, 0); written by x")


def test_every_kind_has_a_sentence():
    """Each kind is explained in words without a full stop."""
    assert [] == [k for k, text in KINDS.items() if not text or text.endswith(".")]
