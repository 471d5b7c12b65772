"""
CUDA C++ to CUBIN and PTX with NVRTC, with no GPU and no driver.

One compilation gives both. It goes through NVRTC's own interface: cuda.core hands out
one of them, and asks for a driver before it compiles to PTX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tilewise.errors import EngineError

__all__ = ["Image", "Session", "compiled_both"]


class Image:
    """A CUBIN with its compiler's log and the mangled names of the expressions."""

    __slots__ = ("code", "log", "names")

    def __init__(self, code: bytes, log: str, names: dict[str, str]) -> None:
        self.code, self.log, self.names = code, log, names


def text(value: Any) -> str:
    """Return bytes or text as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def compiled_both(
    source: str,
    arch: str,
    flags: Sequence[str],
    names: Sequence[str] = (),
    name: str = "kernel.cu",
) -> tuple[Image, bytes]:
    """
    Compile under flags of NVRTC; returns the CUBIN and the PTX.

    `names` are C++ name expressions of kernels. Raises EngineError with NVRTC's log,
    which names the user's line, also for flags that it does not know.
    """
    with Session(source, name, names) as session:
        session.compile(arch, flags)
        image = Image(session.result("CUBIN"), session.log(), session.lowered())
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

    def compile(self, arch: str, flags: Sequence[str]) -> None:
        """Compile for an arch, or to PTX alone for compute_NN."""
        encoded = [f"--gpu-architecture={arch}".encode(), *map(str.encode, flags)]
        (status,) = self.nvrtc.nvrtcCompileProgram(self.program, len(encoded), encoded)
        if int(status):
            log = self.log() or str(status)
            asked = arch.replace("compute_", "sm_")
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
