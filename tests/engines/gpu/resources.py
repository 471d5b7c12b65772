"""
Record what every variant takes on every arch: `python -m tests.engines.gpu.resources`.

The kernel is a dense layer of C-ordered float32 arrays. Registers are the compilers'
own choice, so the table names their versions.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from tests.engines.gpu.cases import ENGINES, KERNELS, Case, function_of, problem_at
from tilewise.api.build_ahead import ARCHS
from tilewise.device.arch import arch_of, cuda_target, occupancy
from tilewise.model.variant import Artifact, Variant

TABLE = Path(__file__).with_name("resources.csv")
TOOLS = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvrtc")
HEAD = ("kernel", "arch", "registers", "shared", "spilled", "occupancy")


def case(kernel: str, epilogue: str = "bias", dtype: str = "float32") -> Case:
    """Return the case that a kernel is compiled for."""
    return Case(kernel, epilogue, "C C", "tile", "exact", dtype, "lazy")


@cache
def artifact(kernel: str, arch: str, epilogue: str = "bias") -> Artifact:
    """Build a kernel for an arch."""
    one = case(kernel, epilogue)
    problem = problem_at(function_of(epilogue, False), one)
    return ENGINES[one.variant.engine].build(one.variant, problem, cuda_target(arch))


def threads(variant: Variant) -> int:
    """Return the threads of one block."""
    if variant.engine == "cuda_cpp" and variant.method == "simt":
        from tilewise.engines.cuda_cpp.source import tile_of

        return tile_of(variant).threads
    from tilewise.engines.numba_cuda.engine import threads_of

    return threads_of(variant)


def row(kernel: str, arch: str) -> list[str]:
    """Return the table's row for a kernel on an arch."""
    figures = dict(artifact(kernel, arch).resources)
    registers, shared = figures["registers"], figures["shared_bytes"]
    filled = occupancy(arch_of(arch), threads(Variant.parse(kernel)), registers, shared)
    spilled = str(figures["spill_bytes"])
    return [kernel, arch, str(registers), str(shared), spilled, f"{filled:.3f}"]


def rows() -> Iterator[list[str]]:
    """Yield the whole table."""
    for kernel in KERNELS:
        for arch in ARCHS:
            yield row(kernel, arch)


def versions() -> str:
    """Name the compilers with their exact versions."""
    return "; ".join(f"{tool} {metadata.version(tool)}" for tool in TOOLS)


def read() -> tuple[str, list[list[str]]]:
    """Return the committed compilers and rows."""
    with TABLE.open(newline="") as file:
        made_with = file.readline().removeprefix("# ").strip()
        return made_with, list(csv.reader(file))[1:]


def main() -> None:
    """Write the table."""
    with TABLE.open("w", newline="") as file:
        file.write(f"# {versions()}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(rows())


if __name__ == "__main__":
    main()
