"""`tilewise show NAME --script`: a program that measures again what is decided."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tilewise import ArgumentError
from tilewise.cli.script import script_of
from tilewise.model.decision import Decision, DecisionTable, TableKey, cell
from tilewise.model.resolution import REFERENCE

MODULE = """
import numpy as np
from tilewise import tuned_kernel

@tuned_kernel(axes={"n": lambda x: x.size}, budget_s=0.02,
              make_inputs=lambda n: np.arange(float(n)))
def total(x):
    return x.sum()

@total.variant
def dot(x):
    return np.dot(x, np.ones(x.size))
"""


def run(where: Path, *words: str) -> str:
    """Run Python in a folder and return what it prints."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=120,
        check=False, cwd=where,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_the_script_measures_the_stored_points_again(tmp_path: Path) -> None:
    """It prints the report of a forced tuning at the sizes that were called."""
    (tmp_path / "mine.py").write_text(MODULE)
    call = "import numpy as np, mine; [mine.total(np.arange(n)) for n in (9.0, 700.0)]"
    run(tmp_path, "-c", call)
    told = run(tmp_path, "-m", "tilewise", "show", "total", "--script")
    assert "{'n': 9}" in told
    (tmp_path / "again.py").write_text(told)
    report = run(tmp_path, "again.py")
    assert "total: 2 problems" in report
    assert "user/dot" in report


def test_a_script_of_a_script_names_its_file(tmp_path: Path) -> None:
    """A kernel of __main__ is found by the path of the program."""
    program = tmp_path / "program.py"
    program.write_text(MODULE + '\nif __name__ == "__main__":\n    total(np.ones(5))\n')
    run(tmp_path, "program.py")
    told = run(tmp_path, "-m", "tilewise", "show", "total", "--script")
    assert "program.py:total" in told
    (tmp_path / "again.py").write_text(told)
    assert "total: 1 problem" in run(tmp_path, "again.py")


def table(place: str = "mine:dense") -> DecisionTable:
    """Return a table of one point, and a region beyond it."""
    point = (("m", 8), ("n", 6), ("k", 4))
    made = Decision(cell(point), REFERENCE, point, (), made_utc="2026-01-01T00:00:00")
    far = replace(made, point=(("m", 1), ("n", 1), ("k", 1)), origin="extrapolated")
    key = TableKey("cpu_x_2t_no-gpu", "digest", "t", "device", "float64", "x; told")
    return DecisionTable(key, "dense", (made, far), place)


def test_what_was_measured_is_in_the_script() -> None:
    """Sizes, dtype and residency are those of the table; nothing extrapolated."""
    told = script_of([table()])
    assert "kernels_of('mine:dense')" in told
    assert "{'m': 8, 'n': 6, 'k': 4}" in told
    assert "{'m': 1" not in told
    assert "dtype='float64', residency='device', force=True" in told
    compile(told, "again.py", "exec")


@pytest.mark.parametrize(
    ("tables", "word"),
    [
        ([table(), table("other:dense")], "there are: mine:dense, other:dense"),
        ([table("mine:make.<locals>.dense")], "a program can't import it"),
        ([table("")], "a program can't import it"),
    ],
    ids=("two", "local", "unknown"),
)
def test_what_can_have_no_script(tables: list[DecisionTable], word: str) -> None:
    """The error says why."""
    with pytest.raises(ArgumentError, match=word):
        script_of(tables)
