"""
Compile the kernels of this folder to the PTX files beside them.

Run by hand when a kernel or the compilers change: `python record.py`. The tests read
the PTX, so they need neither numba nor NVRTC.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ARCHES = {
    "shared": ("75", "80", "90", "100", "120"),
    "tiled": ("80", "90", "100", "120"),
    "mma": ("80", "90", "120"),
    "reduction": ("75", "90", "120"),
    "transpose": ("75", "90", "120"),
    "histogram": ("75", "90", "120"),
    "math": ("75", "90", "120"),
}


def cuda_ptx(source: str, name: str, arch: str, *options: str) -> str:
    """Compile CUDA C++ with NVRTC, with line information."""
    from cuda.bindings import nvrtc

    flags = (f"--gpu-architecture=compute_{arch}", "-lineinfo", *options)
    encoded = [flag.encode() for flag in flags]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if int(status):
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    text = ptx.rstrip(b"\0").decode()
    return re.sub(r'(\.file\s+\d+\s+)"[^"]*/', r'\1"', text)


def numba_ptx(arch: str) -> str:
    """Compile the numba kernel; its long name becomes `shared`."""
    sys.path.insert(0, str(HERE))
    from numba import cuda
    from shared import SIGNATURE, shared

    cc = (int(arch[:-1]), int(arch[-1]))
    ptx, _ = cuda.compile(
        shared, SIGNATURE, cc=cc, device=False, abi="numba", lineinfo=True
    )
    entry = re.search(r"\.entry\s+(\S+)\(", ptx)
    assert entry is not None
    text = re.sub(r'(\.file\s+\d+\s+)"[^"]*/', r'\1"', ptx)
    return text.replace(entry[1], "shared")


def main() -> None:
    """Write all PTX files."""
    for name, arches in ARCHES.items():
        source = HERE / f"{name}.cu"
        for arch in arches:
            if source.exists():
                text = cuda_ptx(source.read_text(), source.name, arch, "-std=c++17")
            else:
                text = numba_ptx(arch)
            (HERE / f"{name}_sm{arch}.ptx").write_text(text)


if __name__ == "__main__":
    main()
