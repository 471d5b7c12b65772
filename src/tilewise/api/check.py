"""
Check a user's CUDA kernels on the CPU: what `tilewise check` runs.

A target is MODULE:NAME (a module's name or the path of a .py file) or the path of a
.ptx or .cu file, with :ENTRY where it has several kernels. NAME is a *case*: a function
of the sizes that returns (kernel, grid, block, args); or a kernel, and then grid, block
and args are given as texts over the names m, n and k.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tilewise.api.emulate import Emulation, emulate
from tilewise.api.kernel import TunedKernel
from tilewise.api.launch_text import argument, sizes
from tilewise.api.modules import imported
from tilewise.device.emulator.report import Report
from tilewise.errors import ArgumentError

__all__ = ["Check", "check"]

_DEFAULT_SHAPE: Final = (33, 17, 9)


@dataclass(frozen=True, slots=True)
class Check:
    """The emulations of one target, one per shape; true when nothing was found."""

    target: str
    runs: tuple[tuple[tuple[int, ...], Emulation], ...]

    @property
    def reports(self) -> tuple[Report, ...]:
        """List the findings of all shapes."""
        return tuple(report for _, run in self.runs for report in run.reports)

    def __bool__(self) -> bool:
        return not self.reports

    def __str__(self) -> str:
        lines = []
        for shape, run in self.runs:
            at = "x".join(map(str, shape))
            lines.append(f"[{at}] {run}" if at else str(run))
        found = len(self.reports)
        lines.append(f"{found or 'no'} finding{'s' * (found != 1)}")
        return "\n".join(lines)


def check(
    target: str,
    *,
    shapes: Sequence[tuple[int, ...]] = (),
    grid: str | None = None,
    block: str | None = None,
    args: Sequence[str] = (),
    shared_bytes: int = 0,
    arch: str = "sm_90",
    global_races: bool = False,
) -> Check:
    """
    Run a target at each shape and collect what the sanitizer finds.

    Without `shapes` a case that takes nothing runs once, all else at 33x17x9, which no
    tile divides; a launch that names no size has no shape. For a kernel, `grid` and
    `block` are texts such as "cdiv(n,16)", and `args` one per parameter:
    "float32[m*k]", "float32[m,n]=0" (filled), "int32=m".

    Raises ArgumentError for a target or launch that is not there, EngineError for
    kernels that do not compile or are not supported.
    """
    place, name = _split(target)
    is_file = place.endswith((".ptx", ".cu"))
    kernel = Path(place) if is_file else _find(imported(place), name, target)
    case = None if is_file else _case(kernel)
    runs, sized = [], shapes or case or _names_a_size(grid, block, *args)
    for shape in shapes or [() if _takes_nothing(case) else _DEFAULT_SHAPE]:
        if case is None:
            launch = _launch(kernel, shape, (grid, block, args), target)
        else:
            launch = _call(case, shape, target)
        run = emulate(
            *launch,
            shared_bytes=shared_bytes, entry=(is_file and name) or None,
            arch=arch, global_races=global_races,
        )  # fmt: skip
        runs.append((tuple(shape) if sized else (), run))
    return Check(target, tuple(runs))


def _names_a_size(*texts: str | None) -> bool:
    return any(text and re.search(r"\b[mnk]\b", text) for text in texts)


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    if not colon or (len(place) == 1 and name[:1] in "\\/"):  # C:\kernel.ptx
        return target, ""
    return place, name


def _find(module: ModuleType, name: str, target: str) -> Any:
    if not name:
        raise ArgumentError(f"{target!r} names no kernel: write MODULE:NAME")
    if not hasattr(module, name):
        raise ArgumentError(f"{module.__name__} has no {name!r}")
    found = getattr(module, name)
    if isinstance(found, TunedKernel):
        raise ArgumentError(
            f"{target} is a tuned kernel: check takes CUDA kernels, or a function that "
            "returns (kernel, grid, block, args)"
        )
    return found


def _case(kernel: Any) -> Any:
    """Return a plain function that is no kernel, None for kernels."""
    plain = callable(kernel) and not hasattr(kernel, "py_func")
    return kernel if plain else None


def _takes_nothing(case: Any) -> bool:
    if case is None:
        return False
    code = getattr(case, "__code__", None)
    return code is not None and code.co_argcount == 0


def _call(case: Any, shape: Sequence[int], target: str) -> tuple[Any, Any, Any, Any]:
    found = case(*shape)
    if not isinstance(found, tuple) or len(found) != 4:
        raise ArgumentError(f"{target} did not return (kernel, grid, block, args)")
    return found


def _launch(
    kernel: Any,
    shape: Sequence[int],
    texts: tuple[str | None, str | None, Sequence[str]],
    target: str,
) -> tuple[Any, Any, Any, Any]:
    grid, block, args = texts
    if grid is None or block is None:
        raise ArgumentError(f"{target} is a kernel: give its grid, block and args")
    names = dict(zip("mnk", shape, strict=False))
    values = [argument(text, names, at) for at, text in enumerate(args)]
    return kernel, sizes(grid, names), sizes(block, names), values
