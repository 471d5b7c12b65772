"""Every test has a store and settings of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the TILEWISE_* variables of whoever runs the tests."""
    for name in os.environ:
        if name.startswith("TILEWISE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "store"))
