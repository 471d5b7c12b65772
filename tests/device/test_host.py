"""The host as it is, and where arrays live."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewise.device import host
from tilewise.device.host import array_location, blas, threads, usable_threads
from tilewise.errors import SettingError


class DeviceArray:
    """An array as CuPy, numba and PyTorch show theirs."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Say where the array is."""
        return {"shape": (1,), "typestr": "<f4", "data": (0, False), "version": 3}


@pytest.mark.parametrize("x", [np.ones(2), [1, 2], 3.0, None, np.float32(1), "text"])
def test_host_values_are_on_the_host(x: object):
    """Arrays, numbers and sequences of the host are on the host."""
    assert "host" == array_location(x)


def test_device_arrays_are_on_the_device():
    """Whatever has CUDA's array interface is on the device."""
    assert "device" == array_location(DeviceArray())


@pytest.mark.parametrize(
    ("affinity", "quota", "wanted", "expected"),
    [
        (64, None, 0, 64),
        (64, 2.0, 0, 2),
        (64, 1.5, 0, 2),
        (64, 0.1, 0, 1),
        (4, 16.0, 0, 4),
        (64, 8.0, 3, 3),
        (2, None, 16, 2),
    ],
)
def test_smallest_limit_holds(
    affinity: int, quota: float | None, wanted: int, expected: int
):
    """Threads are bounded by affinity, quota (rounded up) and the setting."""
    assert expected == threads(affinity, quota, wanted)


def test_setting_bounds_the_threads(monkeypatch: pytest.MonkeyPatch):
    """TILEWISE_NUM_THREADS=1 leaves one thread."""
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "1")

    assert 1 == usable_threads()


def test_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch):
    """A number of threads that is none is refused with its variable."""
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "many")

    with pytest.raises(SettingError, match="TILEWISE_NUM_THREADS='many'"):
        usable_threads()


def test_first_processor_is_read_only(tmp_path: Path):
    """Of a long cpuinfo only the first processor is read."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name : a\n\nmodel name : b\n")

    assert "model name : a\n" == host.cpu_text(tmp_path, "linux")


def test_missing_cpuinfo_is_no_error(tmp_path: Path):
    """A system without /proc gives no text."""
    assert "" == host.cpu_text(tmp_path, "linux")


def test_blas_is_numpys():
    """The BLAS is the one that NumPy's build names."""
    names = np.show_config(mode="dicts")["Build Dependencies"]["blas"]

    assert (names["name"], names["version"]) == (blas().name, blas().version)


@pytest.mark.parametrize(
    ("name", "environment", "expected"),
    [
        ("openblas", {}, 8),
        ("scipy-openblas", {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "4"}, 2),
        ("scipy-openblas", {"OPENBLAS_NUM_THREADS": "", "OMP_NUM_THREADS": "4"}, 4),
        ("openblas", {"OMP_NUM_THREADS": "64"}, 8),
        ("mkl-dynamic", {"MKL_NUM_THREADS": "3"}, 3),
        ("accelerate", {"OMP_NUM_THREADS": "4"}, 8),
        ("unheard-of", {"OMP_NUM_THREADS": "4"}, 0),
    ],
)
def test_blas_threads_follow_its_variables(
    name: str, environment: dict[str, str], expected: int
):
    """Each BLAS obeys its own variables, in its own order, within the affinity."""
    assert expected == host.threads_by_environment(name, environment, 8)


def test_blas_threads_are_those_of_now():
    """A change of OpenBLAS's threads at run time is seen."""
    library = host.openblas()
    if library is None:
        pytest.skip("NumPy brings no OpenBLAS here")
    before = blas().threads
    library.scipy_openblas_set_num_threads64_(before + 1)
    after = blas().threads
    library.scipy_openblas_set_num_threads64_(before)

    assert before + 1 == after
