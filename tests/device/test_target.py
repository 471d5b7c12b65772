"""The CPU's target names what native code depends on."""

from __future__ import annotations

import re
import sys

import pytest
from llvmlite import binding

from tilewise.device.target import abi, cpu_target


def test_names_are_llvms():
    """Processor, triple and features are the words that LLVM itself uses."""
    expected = (
        binding.get_host_cpu_name(),
        binding.get_process_triple(),
        binding.get_host_cpu_features().flatten(),
    )

    target = cpu_target()
    assert expected == (target.arch, target.triple, target.features)


def test_kind_is_the_cpu():
    """The target is a CPU's, with at least one thread."""
    assert ("cpu", True) == (cpu_target().kind, cpu_target().units >= 1)


def test_abi_names_python():
    """The ABI has this Python's version, so that another's code is never loaded."""
    assert f"{sys.version_info.major}{sys.version_info.minor}" in abi()


def test_abi_names_numpy():
    """The ABI has NumPy's C-API version."""
    assert re.search(r"-numpy2[0-9a-f]{6}$", abi())


def test_units_are_the_usable_threads(monkeypatch: pytest.MonkeyPatch):
    """The target's units follow the setting, also after the first call."""
    cpu_target()
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "1")

    assert 1 == cpu_target().units
