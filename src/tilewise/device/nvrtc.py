"""
CUDA C++ to CUBIN and PTX with NVRTC, with no GPU and no driver.

The CUBIN comes through cuda.core, whose objects are left at once: without a driver
their second `repr` deadlocks. Its way to PTX asks for a driver, so the PTX comes from
NVRTC's own interface, from the same source under the same options.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Self

from tilewise.errors import EngineError

__all__ = ["Image", "Session", "compiled_both", "compiled_cubin", "compiled_ptx"]

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
    flags = [f"-std={STANDARD}"]
    flags += [f"--include-path={path}" for path in includes]
    flags += [f"--define-macro={define}" for define in defines]
    compute = arch.replace("sm_", "compute_")
    with Session(source, name, names) as session:
        session.compile(compute, flags, arch)
        return session.result("PTX")


def compiled_both(
    source: str, arch: str, flags: Sequence[str], names: Sequence[str], name: str
) -> tuple[Image, bytes]:
    """
    Compile under a user's own flags; returns the CUBIN and the PTX.

    Raises EngineError with NVRTC's log, also for flags that it does not know.
    """
    with Session(source, name, names) as session:
        session.compile(arch, flags, arch)
        cubin = session.result("CUBIN")
        image = Image(cubin, session.log(), session.lowered())
    with Session(source, name, names) as session:
        session.compile(arch.replace("sm_", "compute_"), flags, arch)
        return image, session.result("PTX")


class Session:
    """One program of NVRTC's own interface, destroyed at the end."""

    def __init__(self, source: str, name: str, names: Sequence[str]) -> None:
        try:
            from cuda.bindings import nvrtc
        except ImportError as error:
            raise EngineError("CUDA C++ needs the package cuda-bindings") from error
        self.nvrtc, self.name, self.names = nvrtc, name, names
        _, self.program = nvrtc.nvrtcCreateProgram(
            source.encode(), name.encode(), 0, [], []
        )
        for expression in names:
            nvrtc.nvrtcAddNameExpression(self.program, expression.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.nvrtc.nvrtcDestroyProgram(self.program)

    def compile(self, arch: str, flags: Sequence[str], asked: str) -> None:
        """Compile for an arch as NVRTC names it."""
        encoded = [f"--gpu-architecture={arch}".encode(), *map(str.encode, flags)]
        (status,) = self.nvrtc.nvrtcCompileProgram(self.program, len(encoded), encoded)
        if int(status):
            log = self.log() or str(status)
            raise EngineError(f"{self.name} does not compile for {asked}:\n{log}")

    def log(self) -> str:
        """Return the compiler's log."""
        _, size = self.nvrtc.nvrtcGetProgramLogSize(self.program)
        log = bytearray(size)  # Written to: bytes of size 1 are one for the process.
        self.nvrtc.nvrtcGetProgramLog(self.program, log)
        return log.rstrip(b"\0 ").decode(errors="replace")

    def result(self, form: str) -> bytes:
        """Return the "PTX" or the "CUBIN"."""
        _, size = getattr(self.nvrtc, f"nvrtcGet{form}Size")(self.program)
        data = bytearray(size)
        getattr(self.nvrtc, f"nvrtcGet{form}")(self.program, data)
        return bytes(data.rstrip(b"\0") if form == "PTX" else data)

    def lowered(self) -> dict[str, str]:
        """Return the mangled names of the expressions."""
        found = {}
        for expression in self.names:
            _, name = self.nvrtc.nvrtcGetLoweredName(self.program, expression.encode())
            found[expression] = text(name)
        return found
