"""
CUDA C++ to CUBIN and PTX with NVRTC, with no GPU and no driver.

The CUBIN comes through cuda.core, whose objects are left at once: without a driver
their second `repr` deadlocks. Its way to PTX asks for a driver, so the PTX comes from
NVRTC's own interface, from the same source under the same options.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from tilewise.errors import EngineError

__all__ = ["Image", "compiled_cubin", "compiled_ptx", "known_archs"]

STANDARD = "c++17"


class Image:
    """A CUBIN with its compiler's log and the mangled names of the expressions."""

    __slots__ = ("code", "log", "names")

    def __init__(self, code: bytes, log: str, names: dict[str, str]) -> None:
        self.code, self.log, self.names = code, log, names


def compiled_cubin(
    source: str,
    arch: str,
    *,
    name: str = "kernel.cu",
    names: Sequence[str] = (),
    includes: Sequence[str] = (),
    defines: Sequence[str] = (),
) -> Image:
    """
    Compile to a CUBIN; `names` are C++ name expressions of kernels.

    Raises EngineError with the compiler's log, which names the user's line.
    """
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise EngineError("CUDA C++ needs the package cuda-core") from error
    options = ProgramOptions(
        std=STANDARD,
        arch=arch,
        name=name,
        include_path=list(includes) or None,
        define_macro=list(defines) or None,
        ptxas_options=["-v"],
    )
    log = io.StringIO()
    try:
        made = Program(source, "c++", options).compile(
            "cubin", name_expressions=tuple(names), logs=log
        )
        code, mapping = bytes(made.code), dict(made.symbol_mapping)
    except Exception as error:
        raise EngineError(f"{name} does not compile for {arch}:\n{error}") from error
    lowered = {text(key): text(value) for key, value in mapping.items()}
    return Image(code, log.getvalue(), lowered)


def text(value: Any) -> str:
    """Return bytes or text as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def compiled_ptx(
    source: str,
    arch: str,
    *,
    name: str = "kernel.cu",
    names: Sequence[str] = (),
    includes: Sequence[str] = (),
    defines: Sequence[str] = (),
) -> bytes:
    """Compile to PTX under the options of `compiled_cubin`; the same errors."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise EngineError("CUDA C++ needs the package cuda-bindings") from error
    flags = [f"--gpu-architecture={arch.replace('sm_', 'compute_')}"]
    flags += [f"-std={STANDARD}"]
    flags += [f"--include-path={path}" for path in includes]
    flags += [f"--define-macro={define}" for define in defines]
    encoded = [flag.encode() for flag in flags]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    try:
        for expression in names:
            nvrtc.nvrtcAddNameExpression(program, expression.encode())
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if int(status):
            log = log_of(nvrtc, program)
            raise EngineError(f"{name} does not compile for {arch}:\n{log}")
        _, size = nvrtc.nvrtcGetPTXSize(program)
        ptx = b" " * size
        nvrtc.nvrtcGetPTX(program, ptx)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return bytes(ptx.rstrip(b"\0"))


def log_of(nvrtc: Any, program: Any) -> str:
    """Return a failed compilation's log."""
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    return str(log.rstrip(b"\0 ").decode(errors="replace"))


def known_archs() -> tuple[str, ...]:
    """Return the architectures that the installed NVRTC compiles for."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise EngineError("CUDA C++ needs the package cuda-bindings") from error
    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    if not count:
        return ()
    _, archs = nvrtc.nvrtcGetSupportedArchs()
    return tuple(f"sm_{int(arch)}" for arch in archs)
