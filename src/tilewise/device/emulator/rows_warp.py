"""
List the opcodes by which the threads of a warp talk (notation: `rows_integer`).

`SYNCED` names those that wait for the threads of a mask: they begin a basic block, so
that the machine can wait before it runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tilewise.device.emulator.decoded import Decoded, Typed
from tilewise.device.emulator.syntax import Operand, PtxError, Vector
from tilewise.device.emulator.table import Action

if TYPE_CHECKING:
    from tilewise.device.emulator.codegen import BlockWriter

__all__ = ["ROWS", "mask_of"]


def mask_of(decoded: Decoded) -> Operand | None:
    """Return the membermask operand of an opcode that waits for a mask."""
    opcode = decoded.instruction.opcode
    masked = (
        ("shfl.sync", "vote.sync", "match.", "redux.sync", "bar.warp.sync")
        if not opcode.startswith(("mma", "ldmatrix"))
        else ()
    )
    return decoded.ins[-1].operand if opcode.startswith(masked) and masked else None


def _site(writer: BlockWriter, space: str = "none", count: int = 1) -> str:
    return writer.constant(writer.site(space, "b32", count))


def _shuffle(writer: BlockWriter, decoded: Decoded) -> None:
    value, lane, limit, mask = decoded.ins
    operands = ", ".join(writer.read(o.operand, o.type) for o in (value, lane, limit))
    result = writer.name()
    writer.line(
        f"{result} = m.warps.shuffle(L, {decoded.groups['mode']!r}, ({operands}),"
        f" {writer.read(mask.operand, 'u32')}, {writer.where}, {_site(writer)})"
    )
    for at, out in enumerate(decoded.outs):
        writer.write(out, f"{result}[{at}]")


def _vote(writer: BlockWriter, decoded: Decoded) -> None:
    value, mask = decoded.ins
    mode = decoded.groups["mode"]
    writer.write(
        decoded.outs[0],
        f"m.warps.vote(L, {mode!r}, {writer.read(value.operand, 'pred')},"
        f" {writer.read(mask.operand, 'u32')}, {writer.where}, {_site(writer)})",
    )


def _match(writer: BlockWriter, decoded: Decoded) -> None:
    value, mask = decoded.ins
    result = writer.name()
    writer.line(
        f"{result} = m.warps.match(L, {decoded.groups['mode']!r},"
        f" {writer.read(value.operand, value.type)},"
        f" {writer.read(mask.operand, 'u32')}, {writer.where}, {_site(writer)})"
    )
    for at, out in enumerate(decoded.outs):
        writer.write(out, f"{result}[{at}]")


def _reduce(writer: BlockWriter, decoded: Decoded) -> None:
    value, mask = decoded.ins
    writer.write(
        decoded.outs[0],
        f"m.warps.reduce(L, {decoded.groups['op']!r},"
        f" {writer.read(value.operand, value.type)},"
        f" {writer.read(mask.operand, 'u32')}, {writer.where}, {_site(writer)})",
    )


def _sync(writer: BlockWriter, decoded: Decoded) -> None:
    mask = writer.read(decoded.ins[0].operand, "u32")
    writer.line(f"m.warps.sync(L, {mask}, {writer.where}, {_site(writer)})")


def _active(writer: BlockWriter, decoded: Decoded) -> None:
    writer.write(decoded.outs[0], f"m.warps.active(L, {writer.where})")


def _items(decoded: Decoded, typed: Typed, count: int) -> tuple[Operand, ...]:
    operand = typed.operand
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != count:
        what = f"{typed.name} takes {count} registers, not {len(items)}"
        raise PtxError(what, decoded.instruction.line, decoded.instruction.text)
    return items


def _ldmatrix(writer: BlockWriter, decoded: Decoded) -> None:
    writer.refuse_guard(decoded)
    (target,), (address,) = decoded.outs, decoded.ins
    count = int(decoded.groups["num"][1:])
    items = _items(decoded, target, count)
    place = writer.address(address.operand, "shared")
    result = writer.name()
    transposed = "trans" in decoded.groups
    writer.line(
        f"{result} = m.matrices.load(L, {place}, {count}, {transposed},"
        f" {_site(writer, 'shared', 4)})"
    )
    for at, item in enumerate(items):
        writer.write(Typed("d", "b32", item), f"{result}[{at}]")


#: Registers of A, B and C by shape and type (PTX ISA, "Matrix Fragments").
_FRAGMENTS: Final = {
    ("m16n8k8", "tf32"): (4, 2),
    ("m16n8k4", "tf32"): (2, 1),
    ("m16n8k16", "f16"): (4, 2),
    ("m16n8k16", "bf16"): (4, 2),
    ("m16n8k8", "f16"): (2, 1),
    ("m16n8k8", "bf16"): (2, 1),
}


def _mma(writer: BlockWriter, decoded: Decoded) -> None:
    writer.refuse_guard(decoded)
    shape, kind = decoded.groups["shape"], decoded.groups["kind"]
    sizes = _FRAGMENTS.get((shape, kind))
    out = decoded.groups["out"]
    if sizes is None or decoded.groups.get("again", kind) != kind:
        raise PtxError(
            f"mma of {shape} with {kind} is not supported",
            decoded.instruction.line,
            decoded.instruction.text,
        )
    a, b, c = decoded.ins
    sums = 4 if out == "f32" else 2
    reads = []
    for typed, count, type_ in (
        (a, sizes[0], "b32"),
        (b, sizes[1], "b32"),
        (c, sums, "f32" if out == "f32" else "b32"),
    ):
        items = _items(decoded, typed, count)
        reads.append(f"({', '.join(writer.read(i, type_) for i in items)},)")
    result = writer.name()
    writer.line(
        f"{result} = m.matrices.multiply(L, {shape!r}, {kind!r}, ({', '.join(reads)}),"
        f" {_site(writer)})"
    )
    for at, item in enumerate(_items(decoded, decoded.outs[0], sums)):
        writer.write(
            Typed("d", "f32" if out == "f32" else "b32", item), f"{result}[{at}]"
        )


_SHAPES: Final = "<shape:m16n8k4|m16n8k8|m16n8k16>"

ROWS: Final = (
    Action(
        "shfl.sync<mode:up|down|bfly|idx><t:b32>",
        "d:t|p:pred = a:t b:u32 c:u32 e:u32",
        _shuffle,
    ),
    Action("vote.sync<mode:all|any|uni>.pred", "d:pred = a:pred e:u32", _vote),
    Action("vote.sync<mode:ballot>.b32", "d:b32 = a:pred e:u32", _vote),
    Action("match<mode:any>.sync<t:b32|b64>", "d:b32 = a:t e:u32", _match),
    Action("match<mode:all>.sync<t:b32|b64>", "d:b32|p:pred = a:t e:u32", _match),
    Action("redux.sync<op:add|min|max><t:u32|s32>", "d:t = a:t e:u32", _reduce),
    Action("redux.sync<op:and|or|xor><t:b32>", "d:t = a:t e:u32", _reduce),
    Action("bar.warp.sync", "= e:u32", _sync),
    Action("activemask<t:b32>", "d:t =", _active),
    Action(
        "ldmatrix.sync.aligned.m8n8<num:x1|x2|x4>[<trans:trans>].shared[::cta].b16",
        "d = a",
        _ldmatrix,
    ),
    Action(
        f"mma.sync.aligned{_SHAPES}.row.col<out:f32><kind:tf32|bf16|f16>"
        "<again:tf32|bf16|f16>.f32",
        "d = a b c",
        _mma,
    ),
    Action(
        f"mma.sync.aligned{_SHAPES}.row.col<out:f16><kind:f16><again:f16>.f16",
        "d = a b c",
        _mma,
    ),
)
