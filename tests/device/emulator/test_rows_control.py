"""Barriers that reduce give every thread what its block said."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator.syntax import PtxError


@pytest.mark.parametrize("name", ["bar", "bar.cta", "barrier", "barrier.cta"])
def test_barriers_that_reduce(run, kernel, name):
    """Popc counts, or and and join the predicates of the whole block."""
    aligned = ".aligned" if name.startswith("barrier") else ""
    body = f"""
    rem.u32 %r1, %t, 3; setp.eq.u32 %q1, %r1, 1; setp.lt.u32 %q2, %b, 1;
    setp.gt.u32 %q5, %t, 62;
    {name}.red.popc{aligned}.u32 %r2, 0, %q1; {name}.red.and{aligned}.pred %q3, 0, %q2;
    {name}.red.or{aligned}.pred %q4, 0, 64, !%q5;
    selp.u32 %r3, 100, 0, %q3; selp.u32 %r4, 1000, 0, %q4;
    add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
    add.u64 %l1, %p0, %o; st.global.u32 [%l1], %r2;"""

    (found,), reports = run(kernel(body), 2, 64, [np.zeros(128, np.uint32)])

    assert [1121] * 64 + [1021] * 64 == found.tolist()
    assert [] == reports


@pytest.mark.parametrize(
    "text",
    [
        "bra %r1;",
        "brx.idx %r1, L;",
        "bar.arrive 1;",
        "bar.sync;",
        "bar.red.xor.pred %q1, 0, %q2;",
        "@%q1 bar.red.or.pred %q1, 0, %q2;",
        "ret.sync;",
        "call (%r1), printf, (%r2);",
        "mbarrier.init.shared.b64 [%r1], 1;",
    ],
)
def test_what_is_not_there_is_refused(run, kernel, text):
    """Unknown control flow is an error with its line."""
    with pytest.raises(PtxError) as caught:
        run(kernel("L: " + text), 1, 32, [np.zeros(32, "f4")])

    assert caught.value.line > 0
