"""What is told once is told again in each test, and no thread outlives it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewise.store import database
from tilewise.store.warn import forget_warnings
from tilewise.store.worker import WORKERS


@pytest.fixture(autouse=True)
def _fresh_store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """
    Forget what was told, and close what the test opened.

    On a busy machine opening may take longer than a call waits for; only tests of
    that wait have the real bound, by the mark `usefixtures("impatient")`.
    """
    if "impatient" not in request.fixturenames:
        monkeypatch.setattr(database, "PATIENCE_S", 60)
    forget_warnings()
    yield
    for worker in list(WORKERS):
        worker.stop(1)


@pytest.fixture
def impatient() -> None:
    """Wait for a held database only as long as a call does."""


@pytest.fixture
def shared() -> Iterator[Path]:
    """Make a directory that another user may look into."""
    path = Path(tempfile.mkdtemp(prefix="tilewise-"))
    path.chmod(0o755)
    yield path
    for folder in [path, *path.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)
    shutil.rmtree(path)
