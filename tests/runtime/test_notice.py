"""Who waits at a terminal is told what a first call does."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import numpy as np
import pytest

from tilewise import tuned_kernel
from tilewise.runtime import notice


class Terminal(io.StringIO):
    """A text file that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def first_call(monkeypatch: pytest.MonkeyPatch, error: Any, after_s: float) -> str:
    """Return what a kernel's first calls write, where the line comes after a time."""
    monkeypatch.setattr(notice, "AFTER_S", after_s)
    monkeypatch.setattr(sys, "stderr", error)

    def dense(x: Any, w: Any) -> Any:
        return np.maximum(x @ w, 0)

    kernel = tuned_kernel(budget_s=0.05)(dense)
    x, w = np.ones((3, 4), "f4"), np.ones((4, 5), "f4")
    kernel(x, w), kernel(x, w), kernel(x, w)
    time.sleep(0.05)
    return str(error.getvalue())


def test_a_slow_first_call_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names the kernel; later calls write nothing."""
    text = first_call(monkeypatch, Terminal(), 0.001)
    assert 1 == text.count("\n")
    assert "dense builds and measures" in text


def test_a_quick_one_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends before the time writes nothing."""
    assert "" == first_call(monkeypatch, Terminal(), 100.0)


def test_nobody_watching_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe or a file gets no line."""
    assert "" == first_call(monkeypatch, io.StringIO(), 0.001)
