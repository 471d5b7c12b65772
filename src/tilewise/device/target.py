"""What native code for this host's CPU is built for."""

from __future__ import annotations

import importlib.machinery
from dataclasses import replace
from functools import cache

import numpy as np

from tilewise.device.host import usable_threads
from tilewise.model.variant import Target

__all__ = ["abi", "cpu_target"]


def cpu_target() -> Target:
    """
    Return the target of this host's CPU, named as LLVM names it.

    The first call imports llvmlite (34-110 ms), which any process that loads native
    code needs anyway: LLVM's own names can't be told from the system's texts.
    """
    return replace(llvm_target(), units=usable_threads())


@cache
def llvm_target() -> Target:
    """Ask LLVM for the host's triple, processor and features, once a process."""
    from llvmlite import binding

    return Target(
        kind="cpu",
        arch=str(binding.get_host_cpu_name()),
        triple=str(binding.get_process_triple()),
        features=str(binding.get_host_cpu_features().flatten()),
        abi=abi(),
    )


@cache
def abi() -> str:
    """
    Return Python's ABI tag and NumPy's C-API version: `cpython-312-...-numpy2000000`.

    Both lay out the structures that compiled wrappers read. Where NumPy does not
    tell its number its whole version stands in, which is too strict, never too lax.
    """
    tag = importlib.machinery.EXTENSION_SUFFIXES[0].split(".")[1]
    core = getattr(np, "_core", None)
    version = getattr(
        getattr(core, "_multiarray_umath", None), "_get_ndarray_c_version", None
    )
    return f"{tag}-numpy{version():x}" if version else f"{tag}-numpy{np.__version__}"
