"""The script for machines with a GPU goes through what it can without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilewise.device.driver import gpus

pytest.importorskip("numba.cuda")
pytest.importorskip("cuda.core")
SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu_check.py"
BLOCKED = ("diskcache", "msgspec", "platformdirs", "rich", "scipy", "typer")
"""What the script may not need: these are no part of the GPU stack."""
RUN = f"""
import runpy, sys
for name in {BLOCKED}:
    sys.modules[name] = None
sys.argv = ["gpu_check.py", *sys.argv[1:]]
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""


def checked(*args: str, timeout: int = 250) -> tuple[int, list[str]]:
    """Run the script without the blocked packages; returns its status and lines."""
    found = subprocess.run(
        [sys.executable, "-c", RUN, *args],
        capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    assert not found.stderr
    return found.returncode, found.stdout.splitlines()


@pytest.mark.emulate
def test_a_dry_run():
    """Every variant is built, loaded and held against float64, and nothing fails."""
    status, lines = checked("--dry-run")

    assert 0 == status, lines
    assert lines[-1].endswith(" checks, 0 failed")
    assert 32 == sum(line.startswith("ok   correctness") for line in lines)


def test_the_time_is_kept():
    """When the time is over what is left is told as not tried, and nothing stops."""
    status, lines = checked("--dry-run", "--minutes", "0")

    assert 1 == status
    assert "reason=not tried: the time is over" in lines[0]


def test_without_a_gpu(monkeypatch, tmp_path):
    """A real run without a GPU says so, and still writes its record."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    record = tmp_path / "record.jsonl"
    status, lines = checked("--out", str(record))

    assert (1, True) == (status, record.exists())
    assert "reason=there is no GPU: --dry-run" in lines[0]


@pytest.mark.gpu
@pytest.mark.skipif(not gpus(), reason="there is no CUDA driver or no GPU here")
@pytest.mark.timeout(600)
def test_on_a_gpu(tmp_path):
    """Every check passes on a GPU, and the record has a row for each."""
    record = tmp_path / "record.jsonl"
    status, lines = checked("--out", str(record), timeout=540)

    assert 0 == status, lines
    assert len(record.read_text().splitlines()) == len(lines) - 1
