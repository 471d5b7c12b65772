"""Every test has a store and settings of its own."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest


def pytest_configure() -> None:
    """Let kernels that outlive their tests write nothing when the process ends."""
    os.environ["TILEWISE_READONLY"] = "1"


@pytest.fixture(autouse=True)
def _own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Forget the variables of whoever runs the tests, and what others decided."""
    for name in os.environ:
        if name.startswith("TILEWISE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "store"))
    once = sys.modules.get("tilewise.runtime.once")
    if once is not None:
        once.resolver().tables.clear()
    if "impatient" not in request.fixturenames:
        # A slow disk may take longer than a call would wait.
        monkeypatch.setattr("tilewise.store.database.PATIENCE_S", 60)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many drawn cases each engine's methods really served."""
    served: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, counts in report.user_properties:
            if name == "served":
                served.update(counts)
    if served:
        told = ", ".join(f"{name} {count}" for name, count in sorted(served.items()))
        terminalreporter.write_line(f"drawn cases served: {told}")
