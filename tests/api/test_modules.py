"""Modules named on the command line: by name, by path, and wrongly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewise import ArgumentError
from tilewise.api.modules import imported


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a test a module path of its own, and forget what it imports."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_file_is_imported_under_its_own_name(tmp_path: Path) -> None:
    """Another process can import it again, and it may import its neighbours."""
    (tmp_path / "neighbour_of_it.py").write_text("VALUE = 3")
    (tmp_path / "named_by_path.py").write_text("from neighbour_of_it import VALUE")
    module = imported(str(tmp_path / "named_by_path.py"))
    assert (3, "named_by_path") == (module.VALUE, module.__name__)


def test_a_file_named_twice_is_one_module(tmp_path: Path) -> None:
    """Its kernels are not made a second time."""
    (tmp_path / "named_twice.py").write_text("")
    place = str(tmp_path / "named_twice.py")
    assert imported(place) is imported(place)


@pytest.mark.parametrize("name", ["json", "pytest"])
def test_a_file_that_hides_another_module_is_refused(tmp_path: Path, name: str) -> None:
    """Neither a module of Python's nor one that is loaded is replaced."""
    (tmp_path / f"{name}.py").write_text("")
    with pytest.raises(ArgumentError, match="rename the file"):
        imported(str(tmp_path / f"{name}.py"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", r"ZeroDivisionError\('division by zero'\)"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("raise SystemExit(7)", r"SystemExit\(7\)"),
    ],
)
def test_a_module_that_fails_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    """The error names the module and what happened in it."""
    (tmp_path / "fails_on_import.py").write_text(text)
    with pytest.raises(ArgumentError, match=f"can't import .*fails_on.*: .*{told}"):
        imported(str(tmp_path / "fails_on_import.py"))


def test_a_file_that_is_not_there_is_named() -> None:
    """The error is not Python's."""
    with pytest.raises(ArgumentError, match=r"there is no file nowhere\.py"):
        imported("nowhere.py")


def test_a_syntax_error_is_told_by_file_and_line(tmp_path: Path) -> None:
    """As an editor finds it, with Python's own words."""
    path = tmp_path / "torn_in_line_2.py"
    path.write_text("import os\ndef")
    with pytest.raises(ArgumentError, match=r"torn_in_line_2\.py:2: invalid syntax$"):
        imported(str(path))
