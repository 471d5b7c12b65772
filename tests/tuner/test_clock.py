"""The clock's grain and the share of the machine that others use."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tilewise.tuner.clock import busy_meter, cpu_seconds, grain_ns, others_share

STAT = "cpu  100 20 30 9999 50 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"


def test_finds_the_grain() -> None:
    """The grain is the smallest step that was seen."""
    steps = count(0, 250)
    assert 250 == grain_ns(lambda: next(steps) // 500 * 500 // 2)


def test_a_clock_that_stands_has_a_grain() -> None:
    """A clock that never moves is taken as one of 1 us."""
    assert 1000 == grain_ns(lambda: 5)


def test_reads_all_that_is_used(tmp_path: Path) -> None:
    """Used are user, nice, system, interrupts and stolen time, not idle and waiting."""
    (tmp_path / "stat").write_text(STAT)
    assert 1.71 == pytest.approx(cpu_seconds(tmp_path))


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    """On a system without /proc the share is 0."""
    assert 0.0 == busy_meter(tmp_path)()


def test_takes_off_the_own_time() -> None:
    """Of 2 s on two CPUs, 3 s used and 1 s by ourselves, others had a half."""
    assert 0.49 == pytest.approx(others_share(3, 1, 2, 2))


def test_single_steps_do_not_count() -> None:
    """A few of the kernel's 10 ms steps in a short race are not load."""
    assert 0.0 == others_share(0.04, 0.0, 0.05, 2)
