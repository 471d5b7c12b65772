"""Versions read from names of metadata are those that the metadata state."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from tilewise.device.installed import installed_version


def test_every_distribution_has_its_version() -> None:
    """All that is installed here, however its name is written."""
    stated: dict[str, str] = {}
    for one in metadata.distributions():
        stated.setdefault(one.name, one.version)
    assert len(stated) > 10
    assert stated == {name: installed_version(name) for name in stated}


def test_names_are_compared_as_pip_does() -> None:
    """Case, dots, dashes and underscores do not count."""
    assert metadata.version("scikit-learn") == installed_version("Scikit_Learn")


def test_what_is_not_installed_has_none() -> None:
    """An unknown name, also one that begins like a known one."""
    assert ("", "") == (installed_version("nothing-such"), installed_version("num"))


def test_an_earlier_place_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two on sys.path is the one that an import finds."""
    (tmp_path / "numpy-99.1.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert "99.1" == installed_version("numpy")


def test_an_egg_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older installers name the Python behind the version."""
    (tmp_path / "olden-1.2.3-py3.12.egg-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert "1.2.3" == installed_version("olden")
