"""
Plant faults in recorded kernels and see whether the emulated device finds them.

A fault is an edit of the PTX: a barrier taken out, a guard off by one, a vector moved
by one element. Each kernel runs at a shape that exercises all its faults: sizes that
the tiles do not divide, and several tiles along k.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.device.emulator.device import EmulatedDevice, EmulatedKernel
from tilewise.device.emulator.machine import Options
from tilewise.device.seam import launch_shape

KERNELS = Path(__file__).parents[1] / "tests" / "device" / "emulator" / "kernels"


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel at one shape: its inputs, its output's reference and its launch."""

    label: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: tuple[Any, ...]
    expected: Any
    scalars: tuple[Any, ...]
    accumulates: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """One planted fault of one kernel; the clean kernel has kind "none"."""

    kernel: str
    kind: str
    name: str
    ptx: str


def text_of(kernel: str, arch: str = "90") -> str:
    """Return a recorded kernel."""
    return (KERNELS / f"{kernel}_sm{arch}.ptx").read_text()


def cases(kernel: str) -> tuple[Case, ...]:
    """Return the shapes that together exercise all faults of a kernel."""
    random = np.random.default_rng(29)
    make, shapes = _SHAPES[kernel]
    return tuple(make(random, *shape) for shape in shapes)


def _product(random: np.random.Generator, m: int, n: int, k: int) -> tuple[Any, ...]:
    x = random.standard_normal((m, k)).astype(np.float32)
    w = random.standard_normal((k, n)).astype(np.float32)
    return x, w, x.astype(np.float64) @ w


def _shared(random: np.random.Generator, m: int, n: int, k: int) -> Case:
    x, w, expected = _product(random, m, n, k)
    grid = (-(-n // 16), -(-m // 16))
    sizes = (np.int64(m), np.int64(n), np.int64(k))
    return Case(f"{m}x{n}x{k}", grid, (16, 16), (x, w), expected, sizes)


def _tiled(random: np.random.Generator, m: int, n: int, k: int) -> Case:
    x, w, expected = _product(random, m, n, k)
    grid = (-(-n // 64), -(-m // 64))
    sizes = (np.int32(m), np.int32(n), np.int32(k))
    return Case(f"{m}x{n}x{k}", grid, (256,), (x, w), expected, sizes)


def _mma(random: np.random.Generator, m: int, n: int, k: int) -> Case:
    x, w, _ = _product(random, m, n, k)
    raw = [(a.view(np.uint32) >> 16).astype(np.uint16) for a in (x, w)]
    wide = [(a.astype(np.uint32) << 16).view(np.float32) for a in raw]
    expected = wide[0].astype(np.float64) @ wide[1]
    sizes = (np.int32(m), np.int32(n), np.int32(k))
    grid = (n // 64, m // 64)
    return Case(f"{m}x{n}x{k}", grid, (128,), tuple(raw), expected, sizes)


def _reduction(random: np.random.Generator, n: int) -> Case:
    x = random.standard_normal(n).astype(np.float32)
    index = np.arange(n) % (3 * 128) // 128
    expected = np.array([x[index == block].sum(dtype=np.float64) for block in range(3)])
    return Case(f"{n}", (3,), (128,), (x,), expected, (np.int32(n),))


def _transpose(random: np.random.Generator, rows: int, cols: int) -> Case:
    x = random.standard_normal((rows, cols)).astype(np.float32)
    grid = (-(-cols // 32), -(-rows // 32))
    sizes = (np.int32(rows), np.int32(cols))
    return Case(f"{rows}x{cols}", grid, (32, 8), (x,), x.T.astype(np.float64), sizes)


def _histogram(random: np.random.Generator, n: int, block: int) -> Case:
    x = random.integers(0, 256, n).astype(np.uint8)
    expected = np.bincount(x, minlength=256).astype(np.float64)
    label = f"{n} in blocks of {block}"
    return Case(label, (3,), (block,), (x,), expected, (np.int32(n),), True)


#: Sizes are past the tile by each remainder that a guard looks at, and there are
#: several tiles along k; a guard that is only wrong before its loop needs few elements.
_SHAPES: dict[str, tuple[Callable[..., Case], tuple[tuple[int, ...], ...]]] = {
    "shared": (_shared, ((33, 18, 41),)),
    "tiled": (_tiled, ((66, 68, 52), (65, 68, 8), (67, 4, 36), (68, 12, 20))),
    "mma": (_mma, ((64, 64, 112), (64, 64, 16))),
    "reduction": (_reduction, ((2001,), (200,))),
    "transpose": (_transpose, ((33, 34), (41, 42), (49, 50), (57, 58))),
    "histogram": (_histogram, ((3001, 128), (700, 288))),
}


def outcome(fault: Fault) -> tuple[list[str], str]:
    """
    Return what was found, and at which shape.

    Kinds of reports, "unwritten" (bytes of the output), or "wrong values" against the
    reference. Shapes are tried until one gives a report.
    """
    best: tuple[list[str], str] = ([], "")
    for setting in cases(fault.kernel):
        found = _found(fault.ptx, setting)
        if set(found) - {"wrong values"}:
            return found, setting.label
        best = (found, setting.label) if found and not best[0] else best
    return best


def _found(ptx: str, setting: Case) -> list[str]:
    device = EmulatedDevice(memory_bytes=4 << 20, check="collect")
    module = device.load(ptx)
    kernel = module.kernel(module.entries[0])
    found: set[str] = set()
    for lazy in (True, False) if kernel.program.asynchronous else (True,):
        device.options = Options(lazy=lazy, max_steps=20_000)
        found |= _once(device, kernel, setting)
    return sorted(found)


def _once(device: EmulatedDevice, kernel: EmulatedKernel, setting: Case) -> set[str]:
    buffers = []
    for array in setting.inputs:
        buffers.append(device.allocate(array.nbytes))
        device.copy_in(buffers[-1], array)
    kind = np.uint32 if setting.accumulates else np.float32
    out = np.zeros(setting.expected.shape, kind)
    target = device.allocate(out.nbytes)
    if setting.accumulates:
        device.copy_in(target, out)
    shape = launch_shape(setting.grid, setting.block)
    device.launch(kernel, shape, [*buffers, target, *setting.scalars])
    found = {report.kind for report in device.reports}
    device.reports.clear()
    if device.unwritten_bytes(target):
        found.add("unwritten")
    device.copy_out(out, target)
    if not np.allclose(out, setting.expected, rtol=1e-4, atol=1e-3):
        found.add("wrong values")
    return found


# The faults.


def faults(kernel: str) -> Iterator[Fault]:
    """Yield the clean kernel and everything that is planted in it."""
    ptx = text_of(kernel)
    yield Fault(kernel, "none", "clean", ptx)
    for kind, pattern, edit in _EDITS:
        for number, match in enumerate(re.finditer(pattern, ptx), 1):
            line = ptx.count("\n", 0, match.start()) + 1
            changed = edit(match)
            if changed is None or (kernel, line) in _EQUIVALENT:
                continue
            text = ptx[: match.start()] + changed + ptx[match.end() :]
            yield Fault(kernel, kind, f"{kind} {number}, PTX line {line}", text)


def _swap(match: re.Match[str]) -> str | None:
    loose = {"ge": "gt", "lt": "le", "gt": "ge", "le": "lt"}
    return match[1] + loose[match[2]] + match[3]


def _moved(match: re.Match[str]) -> str:
    return f"{match[1]}+{int(match[2] or 0) + 4}]"


def _plain(match: re.Match[str]) -> str:
    target, place = match[1], match[2]
    return (
        f"ld.shared.u32 {target}, {place}; add.s32 {target}, {target}, 1; "
        f"st.shared.u32 {place}, {target};"
    )


_VECTOR = (
    r"((?:ld|st)\.(?:global|shared)(?:\.nc)?\.v4\.\w+\s+(?:\{[^}]*\}, )?"
    r"\[%rd?\d+)(?:\+(\d+))?\]"
)
_EDITS: tuple[tuple[str, str, Callable[[re.Match[str]], str | None]], ...] = (
    ("barrier removed", r"bar\.sync\s+0;", lambda m: ""),
    ("wait removed", r"cp\.async\.wait_group \d;", lambda m: ""),
    (
        "wait off by one",
        r"cp\.async\.wait_group (\d);",
        lambda m: f"cp.async.wait_group {int(m[1]) + 1};",
    ),
    ("commit removed", r"cp\.async\.commit_group;", lambda m: ""),
    (
        "guard off by one",
        r"(setp\.)(ge|lt|gt|le)(\.[su]\d\d\s+%p\d+, %rd?\d+, (?:%rd?\d+|25[56]);)",
        _swap,
    ),
    (
        "misaligned vector",
        _VECTOR,
        _moved,
    ),
    (
        "misaligned copy",
        r"(cp\.async\.cg\.shared\.global \[%r\d+\], \[%rd\d+)(\+\d+)?\]",
        _moved,
    ),
    ("shared not written", r"st\.shared[^;]*;", lambda m: ""),
    ("copy left out", r"cp\.async\.cg[^;]*;", lambda m: ""),
    ("output not written", r"st\.global[^;]*;", lambda m: ""),
    (
        "mask lacks lanes",
        r"mov\.u32\s+(%r\d+), -1;",
        lambda m: f"mov.u32 {m[1]}, 65535;",
    ),
    (
        "atomic made plain",
        r"atom\.shared\.add\.u32\s+(%r\d+), (\[[^]]*\]), 1;",
        _plain,
    ),
)

#: What a fault of each kind is found by: one of these at least. A store left out of a
#: later round of an unrolled loop leaves the round before in place: only the values
#: tell, and so they do for a guard that leaves an element out.
_READS = {"uninitialised", "unwritten", "wrong values"}
EXPECTED: dict[str, set[str]] = {
    "none": set(),
    "barrier removed": {"race_raw", "race_war"},
    "wait removed": {"async_unwaited"},
    "wait off by one": {"async_unwaited"},
    "commit removed": {"async_unwaited", "async_never_waited"},
    "guard off by one": {"out_of_bounds", "uninitialised", "wrong values"},
    "misaligned vector": {"misaligned"},
    "misaligned copy": {"misaligned"},
    "shared not written": _READS,
    "copy left out": _READS,
    "output not written": _READS,
    "mask lacks lanes": {"membermask"},
    "atomic made plain": {"race_raw", "race_waw"},
}
KERNEL_NAMES = tuple(_SHAPES)


def matrix(kernel: str) -> Iterator[dict[str, Any]]:
    """Yield one row for each fault of a kernel, the clean one first."""
    for fault in faults(kernel):
        found, shape = outcome(fault)
        yield {
            "kernel": kernel,
            "fault": fault.kind,
            "name": fault.name,
            "found_by": found,
            "expected": bool(set(found) & EXPECTED[fault.kind]) or not found,
            "shape": shape,
        }


def answered(kernel: str) -> Case:
    """Return the shape for which another emulator's answers are recorded."""
    if kernel == "tiled":
        return _tiled(np.random.default_rng(0), 64, 64, 48)
    return cases(kernel)[0]


#: Edits that plant no fault, with the reason.
_EQUIVALENT: dict[tuple[str, int], str] = {
    ("tiled", 170): "one more tile of zeros is fetched, waited for and added",
}
