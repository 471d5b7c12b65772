"""Provenance says what something was made with, and what has changed since."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import tilewise
from tilewise import provenance, provenance_changed
from tilewise.device.provenance import CODE

OLD = (("cupy", "14.2.0"), ("driver", "13.0 (580.65)"), ("numpy", "2.4.6"))


def test_numpy_is_the_installed_one():
    """A library's field is its distribution's version."""
    assert metadata.version("numpy") == dict(provenance())["numpy"]


def test_fields_are_all_there():
    """The fields are those that a measurement can depend on."""
    expected = (
        "blas cupy driver gpu llvmlite numba numba-cuda numpy python runtime tilewise"
    )

    assert expected == " ".join(name for name, _ in provenance())


def test_every_file_of_code_counts():
    """Kernels are also made of texts that are not Python."""
    root = Path(tilewise.__file__).parent
    made = "__pycache__"  # By Python, and by numba for an example.
    files = [p for p in root.rglob("*") if p.is_file() and made not in p.parts]
    endings = {p.suffix for p in files}

    assert {".typed"} >= endings - set(CODE)


def test_imports_nothing():
    """No library is imported to learn its version."""
    code = (
        "import sys, tilewise; tilewise.provenance(); "
        "print({'numba', 'cupy', 'cuda', 'llvmlite'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "set()" == done.stdout.strip()


def test_no_gpu_has_no_driver(monkeypatch: pytest.MonkeyPatch):
    """Where no GPU is used, its driver takes no part."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    fields = dict(provenance())

    assert ("", "") == (fields["driver"], fields["gpu"])


def test_equal_is_unchanged():
    """The same provenance has no changed field."""
    assert {} == provenance_changed(provenance(), provenance())


def test_change_names_field_and_values():
    """A changed field comes with what it was and what it is."""
    new = dict(OLD) | {"driver": "13.1 (590.1)"}

    assert {"driver": ("13.0 (580.65)", "13.1 (590.1)")} == provenance_changed(OLD, new)


@pytest.mark.parametrize("missing", [{}, {"cupy": None}])
def test_unknown_on_one_side_is_a_change(missing: dict[str, str | None]):
    """Not knowing a version is not the same as having the same version."""
    new = {name: value for name, value in OLD if name != "cupy"} | missing

    assert {"cupy": ("14.2.0", None)} == provenance_changed(OLD, new)


def test_no_provenance_changes_every_field():
    """A record without provenance differs in all fields."""
    assert ["cupy", "driver", "numpy"] == list(provenance_changed(None, OLD))
