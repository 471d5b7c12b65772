"""What a tuning tells while it runs: lines for a log, two live ones for a person."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

from tilewise import tuned_kernel
from tilewise.tuner.watch import Step, tell, watching


class Terminal(io.StringIO):
    """Be a screen that somebody looks at."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


def tuned(**options: Any) -> Any:
    """Tune a small kernel at two sizes."""
    kernel = tuned_kernel(budget_s=0.05, name="small")(lambda x, w: np.tanh(x @ w))
    return kernel.tune(shapes=[(8, 8, 8), (64, 8, 8)], **options)


def test_a_log_has_a_line_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """With progress=True and nobody watching."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    tuned(progress=True)
    lines = log.getvalue().splitlines()
    assert ["small: problem 1 of 2", "small: problem 2 of 2"] == [
        line.split(",")[0] for line in lines
    ]


def test_a_log_is_silent_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library does not write to a program's log by itself."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    tuned()
    assert "" == log.getvalue()


def test_a_person_sees_problem_candidate_and_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which of how many, what is built, verified, measured, and the best so far."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    tuned()
    shown = screen.getvalue()
    for word in ("problem 1 of 2", "problem 2 of 2", "building cpu/", "verifying cpu/",
                 "measuring: best so far", "s left"):  # fmt: skip
        assert word in shown


def test_a_person_can_be_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """progress=False shows nothing on a terminal either."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    tuned(progress=False)
    assert "" == screen.getvalue()


def test_ctrl_c_keeps_what_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first problem stands in the report, which says that it was interrupted."""
    from tilewise.api import tuning

    settled, calls = tuning.settled, []

    def stopped(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return settled(*args, **options)

    monkeypatch.setattr(tuning, "settled", stopped)
    report = tuned()
    assert (True, 1) == (report.interrupted, len(report.resolutions))
    assert "small: 1 problem, then interrupted: what is decided is kept" in str(report)


def test_steps_are_told_inside_the_block_only() -> None:
    """A tuning of another context is not watched."""
    steps: list[Step] = []
    with watching(steps.append):
        tell("building", "v")  # type: ignore[arg-type]
    tell("building", "w")  # type: ignore[arg-type]
    assert ["v"] == [step.variant for step in steps]


@pytest.mark.parametrize("screen", [io.StringIO(), Terminal()], ids=("log", "live"))
def test_a_sweep_does_not_guess_how_many(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It probes as it goes, so that the number of its problems is not known."""
    monkeypatch.setattr(sys, "stderr", screen)
    kernel = tuned_kernel(name="small")(lambda x, w: np.tanh(x @ w))
    kernel.tune(ranges={"m": (1, 4), "n": 8, "k": 8}, budget_s=0.2, progress=True)
    assert "problem 2, " in screen.getvalue()
    assert " of " not in screen.getvalue().replace("best so far", "")
