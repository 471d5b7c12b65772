"""
Run one CUDA kernel on the CPU, checked: `tilewise.emulate`.

A kernel is a numba.cuda function, CUDA C++ source, or PTX; it is compiled to the very
PTX that a GPU would get, and that text is run. No GPU and no driver are needed; numba
functions need numba-cuda, CUDA C++ needs NVRTC (both are packages).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tilewise.api.kernel_text import KernelText, kernel_text
from tilewise.device.emulator.device import EmulatedDevice, EmulatedModule
from tilewise.device.emulator.machine import Options
from tilewise.device.emulator.report import Report
from tilewise.device.seam import LaunchShape, launch_shape
from tilewise.errors import ArgumentError

__all__ = ["Emulation", "emulate"]

Array: TypeAlias = np.ndarray[Any, Any]
_SLACK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Emulation:
    """
    What a run of a kernel found.

    `reports` is empty for a clean run. `landings` lists how asynchronous copies
    landed: kernels with cp.async run once with each, since hardware may do either.
    It says nothing about speed, bank conflicts, weak memory order or the driver.
    """

    kernel: str
    shape: LaunchShape
    reports: list[Report]
    landings: tuple[str, ...]
    ptx: str

    def __bool__(self) -> bool:
        return not self.reports

    def __str__(self) -> str:
        launch = f"grid {self.shape.grid} block {self.shape.block}"
        count = len(self.reports)
        head = f"{self.kernel}, {launch}: {count} finding{'s' * (count != 1)}"
        return "\n".join([head, *(str(report) for report in self.reports)])


def emulate(
    kernel_or_ptx: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    shared_bytes: int = 0,
    entry: str | None = None,
    arch: str = "sm_90",
    global_races: bool = False,
) -> Emulation:
    """
    Run a kernel over a whole grid and report every fault that it shows.

    The kernel is a numba.cuda function (decorated or not), CUDA C++ source, PTX text
    or the path of a .cu or .ptx file; `entry` chooses one of several. Sizes are in
    CUDA's order (x, y, z), `shared_bytes` is the dynamic shared memory.

    `args` are NumPy arrays, updated in place, and numbers. CUDA C++ and PTX take an
    array as a pointer, C-contiguous, and a Python number in its parameter's type.
    `arch` ("sm_75" to "sm_121") is what numba and NVRTC compile for;
    `global_races` also reports races between blocks in global memory.

    Raises EngineError for PTX that is not supported (with its line), compile errors
    and endless loops, and ArgumentError for arguments that do not fit the kernel.
    """
    shape = launch_shape(grid, block, shared_bytes)
    text = kernel_text(kernel_or_ptx, args, arch, entry)
    return _Run(text, shape, args, global_races).emulation()


class _Run:
    """One emulation: a device of its own, sized to the arguments."""

    def __init__(
        self,
        text: KernelText,
        shape: LaunchShape,
        args: Sequence[Any],
        global_races: bool,
    ) -> None:
        self.text, self.shape, self.global_races = text, shape, global_races
        self.args = list(args)
        self.arrays = [a for a in self.args if isinstance(a, np.ndarray)]
        room = sum(a.nbytes + 1024 for a in self.arrays) + len(text.ptx)
        self.device = EmulatedDevice(memory_bytes=room + _SLACK_BYTES, check="collect")

    def emulation(self) -> Emulation:
        """Run with each landing of asynchronous copies."""
        module = self.device.load(self.text.ptx)
        kernel = module.kernel(self.text.entry or _only_entry(module))
        landings = ("eager", "lazy") if kernel.program.asynchronous else ("lazy",)
        found: dict[tuple[str, int], Report] = {}
        results: list[Array] = []
        for landing in landings:
            self.device.options = Options(
                lazy=landing == "lazy", global_races=self.global_races
            )
            results = self._once(kernel)
            for report in self.device.reports:
                found.setdefault((report.kind, report.line), report)
            self.device.reports.clear()
        for array, result in zip(self.arrays, results, strict=True):
            array[...] = result
        reports = sorted(found.values(), key=lambda r: (r.line, r.kind))
        return Emulation(
            self.text.label or kernel.name,
            self.shape,
            [replace(r, kernel=self.text.label or r.kernel) for r in reports],
            landings,
            self.text.ptx,
        )

    def _once(self, kernel: Any) -> list[Array]:
        buffers, values = [], []
        for at, value in enumerate(self.args):
            if not isinstance(value, np.ndarray):
                values.append(value)
                continue
            buffer = self.device.allocate(value.nbytes, f"argument {at}")
            self.device.copy_in(buffer, np.asarray(value, order="C"))
            buffers.append(buffer)
            values.append(buffer)
        packed = self.text.pack(self.args, values, kernel.program.params)
        self.device.launch(kernel, self.shape, packed)
        results = []
        for array, buffer in zip(self.arrays, buffers, strict=True):
            result = np.empty(array.shape, array.dtype)
            self.device.copy_out(result, buffer)
            buffer.free()
            results.append(result)
        return results


def _only_entry(module: EmulatedModule) -> str:
    if len(module.entries) != 1:
        known = ", ".join(module.entries) or "none"
        raise ArgumentError(f"choose one kernel with entry=; there are: {known}")
    return module.entries[0]
