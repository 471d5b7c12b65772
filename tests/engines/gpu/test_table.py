"""Every CUDA kernel gives NumPy's values on the emulated device, without a report."""

from __future__ import annotations

import itertools
from dataclasses import astuple

import pytest

from tests.engines.gpu.cases import (
    DTYPES,
    EPILOGUES,
    KERNELS,
    LANDINGS,
    LAYOUTS,
    SIZES,
    VALUES,
    Case,
    difference,
)
from tests.engines.gpu.pairwise import COLUMNS, HEAVY, INEXACT, pairs, read, wanted

pytest.importorskip("numba.cuda")
pytest.importorskip("cuda.core")


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device, which raises what it finds."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


@pytest.mark.parametrize("case", read(), ids=lambda case: "-".join(astuple(case)))
def test_a_row_equals_numpy(case: Case):
    """One row of the pairwise table: the user's function, run by one kernel."""
    assert "" == difference(case)


def test_every_pair_of_values_meets():
    """The committed table has all pairs, so each kernel has each single value."""
    met = set().union(*(pairs(astuple(case)) for case in read()))

    assert set() == wanted() - met


def test_the_columns_are_the_fields():
    """The table's columns stand in the order of a case's fields."""
    found = [set(column) for column in zip(*map(astuple, read()), strict=True)]

    assert [set(column) for column in COLUMNS] == found


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_100", "sm_120"])
@pytest.mark.parametrize(
    "kernel", ["numba_cuda/shared tile=16 rows=2", "cuda_cpp/simt tile=64x64x16"]
)
def test_other_architectures(kernel, arch):
    """The PTX of each architecture runs right, sm_75 without cp.async too."""
    case = Case(kernel, "bias", "C C", "vector", "random", "float32", "eager")

    assert "" == difference(case, arch)


def product() -> list[tuple[str, str, str]]:
    """Return what is compiled apart: kernel, epilogue, dtype."""
    return list(itertools.product(KERNELS, EPILOGUES, DTYPES))


@pytest.mark.emulate
@pytest.mark.parametrize(("kernel", "epilogue", "dtype"), product())
def test_the_full_product(kernel, epilogue, dtype):
    """Every layout, size, kind of values and landing of one kernel and epilogue."""
    values = VALUES if epilogue in INEXACT else VALUES[:2]
    landings = LANDINGS if "simt" in kernel else LANDINGS[:1]
    rows = itertools.product(LAYOUTS, SIZES, values, [dtype], landings)
    cases = [Case(kernel, epilogue, *row) for row in rows]

    assert {} == {case: text for case in cases if (text := difference(case))}


@pytest.mark.parametrize("epilogue", HEAVY)
@pytest.mark.parametrize("kernel", ["numba_cuda/global", "cuda_cpp/naive"])
def test_heavy_functions_in_float64(kernel, epilogue):
    """The table has them in float32 alone; one kernel of each engine has both."""
    case = Case(kernel, epilogue, "C C", "primes", "special", "float64", "lazy")

    assert "" == difference(case)
