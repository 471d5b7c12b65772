"""Run single instructions and recorded kernels on the emulated device."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilewise.device.emulator.device import EmulatedDevice
from tilewise.device.emulator.machine import Options
from tilewise.device.emulator.report import Report
from tilewise.device.emulator.types import DTYPES
from tilewise.device.seam import launch_shape

KERNELS = Path(__file__).parent / "kernels"
#: How a type is declared and moved where PTX has no register or load of its own.
_HELD = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32", "tf32": "b32"}


def _declared(type_: str) -> str:
    return "b16" if type_ in ("u8", "s8", "b8") else _HELD.get(type_, type_)


def instruction_kernel(text: str, outs: dict[str, str], ins: dict[str, str]) -> str:
    """Return PTX that runs some instructions on one element of each array."""
    names = [*outs, *ins]
    params = ", ".join(f".param .u64 p_{name}" for name in names)
    lines = [".reg .u32 %i0, %i1, %i2, %flag;", ".reg .u64 %at, %base;"]
    lines += [f".reg .{_declared(t)} %{n};" for n, t in {**outs, **ins}.items()]
    lines += ["mov.u32 %i0, %ctaid.x;", "mov.u32 %i1, %tid.x;", "mov.u32 %i2, %ntid.x;"]
    lines += ["mad.lo.u32 %i0, %i0, %i2, %i1;"]
    for name, type_ in ins.items():
        lines += _address(name, DTYPES[type_].itemsize)
        if type_ == "pred":
            lines += [f"ld.global.u8 %flag, [%base]; setp.ne.u32 %{name}, %flag, 0;"]
        else:
            lines += [f"ld.global.{_HELD.get(type_, type_)} %{name}, [%base];"]
    lines.append(text)
    for name, type_ in outs.items():
        lines += _address(name, DTYPES[type_].itemsize)
        if type_ == "pred":
            lines += [f"selp.u32 %flag, 1, 0, %{name}; st.global.u8 [%base], %flag;"]
        else:
            lines += [f"st.global.{_HELD.get(type_, type_)} [%base], %{name};"]
    body = "\n".join(lines)
    return (
        ".version 8.7\n.target sm_90\n.address_size 64\n"
        f".visible .entry one({params})\n{{\n{body}\nret;\n}}\n"
    )


def _address(name: str, size: int) -> list[str]:
    return [
        f"ld.param.u64 %base, [p_{name}];",
        f"mul.wide.u32 %at, %i0, {size};",
        "add.u64 %base, %base, %at;",
    ]


def run_instruction(
    text: str, out: str | dict[str, str], **ins: tuple[str, Any]
) -> Any:
    """
    Run instructions with one thread an element and return %d, or all outputs.

    `out` is the type of %d, or the types of several outputs by name; the inputs are
    (type, array) by register name.
    """
    outs = {"d": out} if isinstance(out, str) else out
    arrays = {
        name: np.ascontiguousarray(np.asarray(values, DTYPES[type_]).ravel())
        for name, (type_, values) in ins.items()
    }
    size = max((len(a) for a in arrays.values()), default=32)
    padded = -(-size // 64) * 64
    device = EmulatedDevice(memory_bytes=4 << 20, check="collect")
    buffers = [
        device.allocate(padded * DTYPES[type_].itemsize) for type_ in outs.values()
    ]
    for array in arrays.values():
        buffer = device.allocate(padded * array.itemsize)
        device.copy_in(buffer, np.resize(array, padded))
        buffers.append(buffer)
    types = {name: type_ for name, (type_, _) in ins.items()}
    module = device.load(instruction_kernel(text, outs, types))
    device.launch(module.kernel("one"), launch_shape(padded // 64, 64), buffers)
    assert not device.reports, "\n".join(map(str, device.reports))
    results = []
    for buffer, type_ in zip(buffers, outs.values(), strict=False):
        result = np.empty(padded, DTYPES[type_])
        device.copy_out(result, buffer)
        results.append(result[:size])
    return results[0] if isinstance(out, str) else tuple(results)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Let arithmetic overflow silently, as the machine does while it runs."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """Return the module that rounds by other means than the emulator."""
    path = Path(__file__).parent / "oracle.py"
    spec = importlib.util.spec_from_file_location("emulator_oracle", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError:
        pytest.skip("there is no libm to compare with")
    return module


@pytest.fixture
def apply() -> Callable[..., Any]:
    """Return the function that runs single instructions."""
    return run_instruction


def launch(
    ptx: str,
    grid: Any,
    block: Any,
    args: list[Any],
    *,
    shared_bytes: int = 0,
    lazy: bool = True,
    global_races: bool = False,
) -> tuple[list[Any], list[Report]]:
    """Run PTX with one entry; return the arrays after it and the reports."""
    device = EmulatedDevice(memory_bytes=8 << 20, check="collect")
    device.options = Options(lazy=lazy, global_races=global_races, max_steps=20_000)
    module = device.load(ptx)
    buffers = []
    for at, value in enumerate(args):
        if isinstance(value, np.ndarray):
            buffer = device.allocate(value.nbytes, f"argument {at}")
            device.copy_in(buffer, np.ascontiguousarray(value))
            buffers.append(buffer)
        else:
            buffers.append(value)
    kernel = module.kernel(module.entries[0])
    device.launch(kernel, launch_shape(grid, block, shared_bytes), buffers)
    results = []
    for value, buffer in zip(args, buffers, strict=True):
        if isinstance(value, np.ndarray):
            result = np.empty_like(value)
            device.copy_out(result, buffer)
            results.append(result)
    return results, device.reports


@pytest.fixture
def run() -> Callable[..., Any]:
    """Return the function that runs whole kernels."""
    return launch


def assemble(body: str, params: int = 1, head: str = "") -> str:
    """
    Return PTX of a kernel with `params` pointers, loaded into %p0, %p1, ...

    Ready for use: %t (tid.x), %b (ctaid.x), %lane, %i (global index), %o (4 * %i, 64
    bits), registers %r<40> (b32), %s<9> (b16), %l<20> (b64), %f<20>, %d<9>, %q<9>.
    """
    pointers = "\n".join(
        f"ld.param.u64 %p{at}, [arg{at}]; cvta.to.global.u64 %p{at}, %p{at};"
        for at in range(params)
    )
    listed = ", ".join(f".param .u64 arg{at}" for at in range(params))
    return f""".version 8.7
.target sm_90
.address_size 64
{head}
.visible .entry kernel({listed})
{{
.reg .b32 %t, %b, %n, %lane, %i, %r<40>;
.reg .b16 %s<9>;
.reg .b64 %o, %l<20>, %p<9>;
.reg .f32 %f<20>;
.reg .f64 %d<9>;
.reg .pred %q<9>;
mov.u32 %t, %tid.x;
mov.u32 %b, %ctaid.x;
mov.u32 %n, %ntid.x;
mov.u32 %lane, %laneid;
mad.lo.u32 %i, %b, %n, %t;
mul.wide.u32 %o, %i, 4;
{pointers}
{body}
ret;
}}
"""


@pytest.fixture
def kernel() -> Callable[..., str]:
    """Return the function that writes a kernel around a body."""
    return assemble


@pytest.fixture
def recorded() -> Callable[[str], str]:
    """Return the function that reads a recorded kernel, such as "tiled_sm90"."""
    return lambda name: (KERNELS / f"{name}.ptx").read_text()
