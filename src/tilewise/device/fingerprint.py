"""The identity of the hardware and thread counts that a decision is valid for."""

from __future__ import annotations

from tilewise.device.cpu_text import Cpu
from tilewise.device.driver import Gpu, gpus
from tilewise.device.host import blas, cpu, usable_threads
from tilewise.errors import ArgumentError
from tilewise.settings import current

__all__ = ["fingerprint", "hw_fingerprint", "visible_gpus"]


def hw_fingerprint(device: int | None = None) -> str:
    """
    Return the fingerprint of this host with one of its GPUs.

    It reads `cpu_amd-epyc-7763_2t_gpu_nvidia-h200_cc9.0_132sm`, or ends in `no-gpu`.
    `device` counts the devices that this process sees; None is the first. Where BLAS
    runs another number of threads than tilewise, that stands beside it (`2t-blas1`),
    since it changes which variant wins. TILEWISE_DEVICE=none looks for no GPU, and
    TILEWISE_DEVICE=emulated has a fingerprint of its own.

    Costs 0.2 ms when warm and is never kept on disk. Raises ArgumentError when there
    is no such device.
    """
    counts = usable_threads(), blas().threads
    if current().device == "emulated":
        return fingerprint(cpu(), *counts).replace("no-gpu", "gpu_emulated")
    present = visible_gpus()
    if device is None:
        return fingerprint(cpu(), *counts, present[0] if present else None)
    if not 0 <= device < len(present):
        seen = f"the devices 0 to {len(present) - 1}" if present else "no GPU"
        raise ArgumentError(f"device={device}: this process sees {seen}")
    return fingerprint(cpu(), *counts, present[device])


def visible_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that the settings allow: none unless TILEWISE_DEVICE is auto."""
    return gpus() if current().device == "auto" else ()


def fingerprint(
    cpu: Cpu, threads: int, blas_threads: int = 0, gpu: Gpu | None = None
) -> str:
    """
    Write the fingerprint of a machine; `blas_threads` of 0 are not known.

    The letters are lower case, digits, ".", "-" and "_": it can name a file.
    """
    count = f"{threads}t"
    if blas_threads not in (0, threads):
        count += f"-blas{blas_threads}"
    return f"cpu_{cpu.slug}_{count}_{f'gpu_{gpu.slug}' if gpu else 'no-gpu'}"
