"""The fused multiply-add is a ufunc: of any strides, scalars too, rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator import fused as module
from tilewise.device.emulator.fused import fused


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_operands_of_any_strides(oracle, kind):
    """A number, a reversed row and a column meet as in NumPy's own arithmetic."""
    row, column = np.arange(5, dtype=kind)[::-1], np.arange(14, dtype=kind)[::2, None]

    found = fused()(kind(3), row, column)

    assert "" == oracle.same(found.ravel(), (kind(3) * row + column).ravel())


def test_a_host_without_the_instruction(oracle, monkeypatch):
    """The C library's function gives what the instruction gives."""
    import llvmlite.binding as llvm

    a, b, c = oracle.triples(np.float64, 500)
    with np.errstate(all="ignore"):
        expected = fused()(a, b, c)
        monkeypatch.setattr(llvm, "get_host_cpu_features", dict)
        found = module.fused.__wrapped__()(a, b, c)

    assert "" == oracle.same(found, expected)
