"""`tilewise retune`: exit codes and what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tilewise.cli.app import app

MODULE = """
from tilewise import tuned_kernel

@tuned_kernel(axes={"n": lambda x: x.size}, budget_s=0.02, sizes=[{"n": 10}],
              make_inputs=lambda n: [1.0] * n)
def total(x):
    return sum(x)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a file with one kernel that states sizes, and no variants."""
    file = tmp_path / f"tuned_again_{abs(hash(tmp_path))}.py"
    file.write_text(MODULE.replace("x.size", "len(x)"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return str(file)


def run(*words: str) -> Any:
    """Run the command line in this process."""
    return CliRunner().invoke(app, ["retune", *words])


def test_a_module_is_retuned(place: str) -> None:
    """A kernel without variants is served by its function."""
    done = run(place, "--device", "cpu")
    assert 0 == done.exit_code, done.output
    assert "total on cpu: 1 problem, reference" in done.output


def test_json(place: str) -> None:
    """The same as data."""
    told = json.loads(run(place, "--device", "cpu", "--json").stdout)
    (row,) = told["kernels"]
    assert ("cpu", 1, ["reference"]) == (row["device"], row["problems"], row["winners"])


def test_a_failure_is_exit_code_1(place: str) -> None:
    """What fails is named last."""
    file = Path(place)
    file.write_text(file.read_text().replace("[1.0] * n", "1 / 0"))
    done = run(place, "--device", "cpu")
    assert 1 == done.exit_code
    assert done.stdout.splitlines()[-1].startswith("failed: ")
    assert "ZeroDivisionError" in done.output
