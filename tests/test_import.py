"""What importing tilewise brings, and which names its modules show."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

import pytest

import tilewise


def modules() -> Iterator[str]:
    """Yield the names of all modules of the package."""
    yield "tilewise"
    for found in pkgutil.walk_packages(tilewise.__path__, "tilewise."):
        if not found.name.endswith("__main__"):
            yield found.name


def rank(name: str) -> tuple[int, str]:
    """Return how names are ordered: constants, classes (and C), then the others."""
    constant = name.isupper() and len(name) > 1
    return (0 if constant else 1 if name[0].isupper() else 2, name)


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh process has after a statement."""
    code = statement + "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_brings_no_compiler_and_no_gpu_library():
    """A program that imports tilewise has not imported numba, CuPy or CUDA."""
    heavy = {"numba", "cupy", "cuda", "llvmlite", "moderngl"}

    assert set() == heavy & loaded_by("import tilewise")


def test_public_names_bring_no_compiler_and_no_gpu_library():
    """Nor has one that took every public name from it."""
    heavy = {"numba", "cupy", "cuda", "llvmlite", "moderngl"}

    assert set() == heavy & loaded_by("from tilewise import *")


@pytest.mark.parametrize("name", sorted(modules()))
def test_names_are_sorted_and_there(name: str):
    """A module's __all__ is in order, without doubles, and all of it exists."""
    module = importlib.import_module(name)
    listed = list(getattr(module, "__all__", []))

    assert sorted(set(listed), key=rank) == listed
    assert [] == [one for one in listed if not hasattr(module, one)]


def test_errors_list_what_they_show():
    """What the public module of errors shows and what it lists are the same."""
    shown = {name for name in dir(tilewise.errors) if not name.startswith("_")}

    assert set(tilewise.errors.__all__) == shown - {"annotations"}


def test_public_names_are_those_that_have_a_home():
    """Every name that tilewise can load is public, and the other way round."""
    expected = {"errors", *tilewise.errors.__all__, *tilewise.HOMES}

    assert expected == set(tilewise.__all__)


def test_unknown_name_is_an_attribute_error():
    """A name that is not there fails as in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'tuned_kernal'"):
        _ = tilewise.tuned_kernal


def test_version_is_that_of_the_distribution():
    """A text, also where only the source is at hand."""
    try:
        expected = metadata.version("tilewise")
    except metadata.PackageNotFoundError:
        expected = "unknown"

    assert expected == tilewise.__version__
