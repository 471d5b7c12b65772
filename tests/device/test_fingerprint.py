"""The fingerprint tells machines apart, and is never another machine's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewise import ArgumentError, hw_fingerprint
from tilewise.device import fingerprint as module
from tilewise.device.cpu_text import Cpu, parse_cpu
from tilewise.device.driver import Gpu, parse_gpus
from tilewise.device.fingerprint import fingerprint
from tilewise.device.host import Blas

RECORDED = Path(__file__).parent / "recorded"
EPYC = Cpu("AMD EPYC 7763 64-Core Processor")


def gpus(name: str) -> tuple[Gpu, ...]:
    """Return the devices of a recorded machine."""
    return parse_gpus((RECORDED / f"gpus_{name}.txt").read_text())


def from_a_new_process(**environment: str) -> str:
    """Return the fingerprint that a new process finds."""
    code = "import tilewise; print(tilewise.hw_fingerprint())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make this host one with 4 threads and the two recorded GPUs."""
    monkeypatch.setattr(module, "cpu", lambda: EPYC)
    monkeypatch.setattr(module, "usable_threads", lambda: 4)
    monkeypatch.setattr(module, "blas", lambda: Blas("openblas", "0.3", 4))
    monkeypatch.setattr(module, "gpus", lambda: gpus("two"))
    return monkeypatch


def test_cpu_alone():
    """Without a GPU the fingerprint says so."""
    assert "cpu_amd-epyc-7763_2t_no-gpu" == fingerprint(EPYC, 2)


def test_cpu_and_gpu():
    """With a GPU it stands behind the CPU."""
    expected = "cpu_intel-xeon-platinum-8481c_8t_gpu_nvidia-h200_cc9.0_132sm"
    text = (RECORDED / "cpuinfo_intel_xeon_8481c.txt").read_text()

    assert expected == fingerprint(parse_cpu(text), 8, 8, gpus("h200")[0])


def test_blas_threads_count_where_they_differ():
    """A BLAS with its own number of threads is another machine to measure on."""
    assert "cpu_amd-epyc-7763_8t-blas1_no-gpu" == fingerprint(EPYC, 8, 1)


def test_first_gpu_is_the_default(machine: pytest.MonkeyPatch):
    """Without a device the first that the process sees counts."""
    assert hw_fingerprint(0) == hw_fingerprint()


def test_each_gpu_has_its_own(machine: pytest.MonkeyPatch):
    """Two different GPUs in one host give two fingerprints."""
    expected = "cpu_amd-epyc-7763_4t_gpu_nvidia-geforce-gtx-1660-ti_cc7.5_24sm"

    assert expected == hw_fingerprint(1)


def test_missing_device_is_named(machine: pytest.MonkeyPatch):
    """A device that isn't there is refused with those that are."""
    with pytest.raises(ArgumentError, match=r"device=2: .* the devices 0 to 1"):
        hw_fingerprint(2)


def test_none_looks_for_no_gpu(machine: pytest.MonkeyPatch):
    """TILEWISE_DEVICE=none asks no driver."""
    machine.setattr(module, "gpus", lambda: pytest.fail("the driver was asked"))
    machine.setenv("TILEWISE_DEVICE", "none")

    assert "cpu_amd-epyc-7763_4t_no-gpu" == hw_fingerprint()


def test_emulated_device_has_its_own(machine: pytest.MonkeyPatch):
    """What was found on the emulated device is never taken for a GPU's."""
    machine.setenv("TILEWISE_DEVICE", "emulated")

    assert "cpu_amd-epyc-7763_4t_gpu_emulated" == hw_fingerprint()


def test_this_host_has_the_form():
    """The fingerprint of any host has the documented form."""
    form = r"cpu_[a-z0-9.-]+_\d+t(-blas\d+)?_(no-gpu|gpu_[a-z0-9.-]+_cc\d+\.\d+_\d+sm)"

    assert re.fullmatch(form, hw_fingerprint())


def test_new_process_finds_the_same():
    """Two processes on one host agree."""
    assert hw_fingerprint() == from_a_new_process()


def test_nothing_is_kept_in_the_home(tmp_path: Path):
    """A home that several machines share gets no file that another would read."""
    from_a_new_process(
        HOME=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        TILEWISE_CACHE_DIR=str(tmp_path / "store"),
    )

    assert [] == list(tmp_path.iterdir())


def test_thread_setting_counts():
    """Fewer threads are another fingerprint, in any new process."""
    alone = from_a_new_process(TILEWISE_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    assert "_1t_" in alone
