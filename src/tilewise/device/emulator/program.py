"""Compile one kernel of a PTX module to Python functions, one per basic block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewise.device.emulator.codegen import BlockWriter
from tilewise.device.emulator.flow import Block, follow
from tilewise.device.emulator.inline import flatten
from tilewise.device.emulator.layout import Frame, lay_out, param_offsets
from tilewise.device.emulator.names import Names
from tilewise.device.emulator.site import Site
from tilewise.device.emulator.syntax import (
    Immediate,
    Module,
    Operand,
    Register,
    Variable,
)

__all__ = ["Program", "Step", "compile_entry"]


@dataclass(frozen=True, slots=True)
class Step:
    """A block's function, the registers it takes and gives, and its warp mask."""

    run: Callable[..., tuple[Any, tuple[Any, ...]]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mask: str | int | None
    line: int


@dataclass(frozen=True, slots=True)
class Program:
    """
    A kernel ready to run.

    `granule` is its smallest access to shared memory in bytes, `global_granule` to
    global memory; `partial` tells that it has barriers that don't take the whole
    block, `asynchronous` that it has cp.async; `source` is the generated Python.
    """

    name: str
    steps: tuple[Step, ...]
    types: dict[str, str]
    params: tuple[Variable, ...]
    offsets: dict[str, int]
    param_bytes: int
    shared: Frame
    local: Frame
    granule: int
    global_granule: int
    partial: bool
    asynchronous: bool
    source: str


def compile_entry(module: Module, entry: str, addresses: dict[str, int]) -> Program:
    """
    Compile an entry; `addresses` are those of module variables and "params".

    Raises PtxError for anything that is not understood, with its line.
    """
    flat = flatten(module, entry)
    flow = follow(flat)
    blocks = flow.blocks
    everything = flat.variables + list(module.variables)
    shared = lay_out(everything, ("shared",))
    local = lay_out(flat.variables, ("local", "param"))
    offsets, nbytes = param_offsets(flat.kernel.params)
    start = addresses.get("params", 0)
    places = addresses | {name: start + at for name, at in offsets.items()}
    names = Names(shared, local, offsets, places, flow)
    written = [_written(names, block) for block in blocks]
    source = "\n".join(text for text, _, _ in written)
    exec(compile(source, f"<{entry}>", "exec"), names.space)
    steps = tuple(
        _step(block, names, inputs, outputs)
        for block, (_, inputs, outputs) in zip(blocks, written, strict=True)
    )
    registers = {r for _, i, o in written for r in (*i, *o)}
    sites = [s for s in names.space.values() if isinstance(s, Site)]
    return Program(
        entry,
        steps,
        {r.name: r.type for r in registers},
        flat.kernel.params,
        offsets,
        nbytes,
        shared,
        local,
        _granule(sites, ("shared", "generic")),
        _granule(sites, ("global", "generic")),
        _partial(blocks),
        any(site.async_copy for site in sites),
        source,
    )


def _written(names: Names, block: Block) -> tuple[str, list[Register], list[Register]]:
    return BlockWriter(names, block).function()


def _step(
    block: Block, names: Names, inputs: list[Register], outputs: list[Register]
) -> Step:
    return Step(
        names.space[f"block_{block.index}"],
        tuple(r.name for r in inputs),
        tuple(r.name for r in outputs),
        _mask(block.mask),
        block.items[0].instruction.line if block.items else 0,
    )


def _mask(operand: Operand | None) -> str | int | None:
    if isinstance(operand, Register):
        return operand.name
    if isinstance(operand, Immediate):
        return operand.value & 0xFFFFFFFF
    return None


def _granule(sites: list[Site], spaces: tuple[str, ...]) -> int:
    """Return the smallest element size of all accesses to some spaces."""
    sizes = [s.dtype.itemsize for s in sites if s.space in spaces]
    return min([4, *sizes])


def _partial(blocks: list[Block]) -> bool:
    for block in blocks:
        for decoded in block.items:
            opcode = decoded.instruction.opcode
            if opcode == "bar.warp.sync":
                return True
            if opcode.startswith(("bar.", "barrier.")):
                number, *count = decoded.ins
                zero = number.operand == Immediate(0, "int")
                if count or not zero:
                    return True
    return False
