"""
List the opcodes of memory, one row each (operand notation: `rows_integer`).

`emit` is a function of the block writer, the decoded instruction and its groups. What
the ISA calls cache operators and eviction priorities are hints and change no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tilewise.device.emulator.decoded import Decoded, Typed
from tilewise.device.emulator.layout import WINDOWS
from tilewise.device.emulator.site import Site
from tilewise.device.emulator.syntax import PtxError, Sink, Symbol, Vector
from tilewise.device.emulator.table import Action
from tilewise.device.emulator.types import size_of

if TYPE_CHECKING:
    from tilewise.device.emulator.codegen import BlockWriter

__all__ = ["ROWS"]

_HINTS: Final = "[<l1>][<l2>][<fetch>]"
_STRONG: Final = ("relaxed", "acquire", "release", "acq_rel")


def _items(writer: BlockWriter, decoded: Decoded, typed: Typed) -> list[Typed]:
    """Return the elements of a vector operand, or the operand alone."""
    count = int(decoded.groups.get("vec", "v1")[1:])
    operand = typed.operand
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != count or (isinstance(operand, Vector)) != (
        "vec" in decoded.groups
    ):
        what = f"{decoded.instruction.opcode} takes {count} elements"
        raise PtxError(what, decoded.instruction.line, decoded.instruction.text)
    return [Typed(typed.name, typed.type, item) for item in items]


def _space(writer: BlockWriter, decoded: Decoded, address: Typed) -> str:
    space = decoded.groups.get("space", "generic")
    if space == "param":
        return writer.param_space(address.operand)
    return "global" if space == "const" else space


def _site(writer: BlockWriter, decoded: Decoded, space: str, count: int) -> Site:
    strong = decoded.groups.get("sem") in _STRONG
    return writer.site(space, decoded.groups["t"], count, strong=strong)


def _load(writer: BlockWriter, decoded: Decoded) -> None:
    (target,), (address,) = decoded.outs, decoded.ins
    items = _items(writer, decoded, target)
    space = _space(writer, decoded, address)
    if space == "kernel":
        offset = writer.param_offset(address.operand)
        for at, item in enumerate(items):
            where = offset + at * size_of(item.type)
            writer.write(item, f"m.param({where}, {writer.dtype(item.type)})")
        return
    site = writer.constant(_site(writer, decoded, space, len(items)))
    place = writer.address(address.operand, space)
    loaded = writer.name()
    writer.line(f"{loaded} = m.load_{space}(L, {place}, {writer.where}, {site})")
    for at, item in enumerate(items):
        if not isinstance(item.operand, Sink):
            writer.write(item, f"{loaded}[..., {at}]" if len(items) > 1 else loaded)


def _store(writer: BlockWriter, decoded: Decoded) -> None:
    address, value = decoded.ins
    items = _items(writer, decoded, value)
    space = _space(writer, decoded, address)
    if space == "kernel" or decoded.groups.get("space") == "const":
        raise PtxError(
            "kernel parameters and constants can't be written",
            decoded.instruction.line,
            decoded.instruction.text,
        )
    site = writer.constant(_site(writer, decoded, space, len(items)))
    place = writer.address(address.operand, space)
    values = ", ".join(writer.read(item.operand, item.type) for item in items)
    writer.line(f"m.store_{space}(L, {place}, ({values},), {writer.where}, {site})")


def _atomic(writer: BlockWriter, decoded: Decoded) -> None:
    groups = decoded.groups
    address, *operands = decoded.ins
    space = _space(writer, decoded, address)
    if (groups["op"] == "cas") != (len(operands) == 2):
        what = f"{decoded.instruction.opcode} takes other operands"
        raise PtxError(what, decoded.instruction.line, decoded.instruction.text)
    site = writer.site(space, groups["t"], 1, strong=True, atomic=groups["op"])
    place = writer.address(address.operand, space)
    values = ", ".join(writer.read(o.operand, o.type) for o in operands)
    call = f"m.atomic(L, {place}, ({values},), {writer.where}, {writer.constant(site)})"
    if decoded.outs and not isinstance(decoded.outs[0].operand, Sink):
        writer.write(decoded.outs[0], call)
    else:
        writer.line(call)


def _mov(writer: BlockWriter, decoded: Decoded) -> None:
    (target,), (source,) = decoded.outs, decoded.ins
    bits = 8 * size_of(target.type)
    if isinstance(target.operand, Vector):
        items = target.operand.items
        part = bits // len(items)
        whole = writer.read(source.operand, f"u{bits}")
        for at, item in enumerate(items):
            if isinstance(item, Sink):
                continue
            shifted = f"({whole} >> np.uint{bits}({part * at})).astype(np.uint{part})"
            writer.write(Typed("d", f"u{part}", item), shifted)
    elif isinstance(source.operand, Vector):
        items = source.operand.items
        part = bits // len(items)
        parts = [
            f"({writer.read(item, f'u{part}')}.astype(np.uint{bits})"
            f" << np.uint{bits}({part * at}))"
            for at, item in enumerate(items)
        ]
        joined = Typed("d", f"u{bits}", target.operand)
        writer.write(joined, " | ".join(parts))
    else:
        writer.write(target, writer.read(source.operand, source.type))


def _cvta(writer: BlockWriter, decoded: Decoded) -> None:
    (target,), (source,) = decoded.outs, decoded.ins
    base = WINDOWS.get(decoded.groups["space"], 0)
    value = writer.read(source.operand, "u64")
    if base:
        sign = "-" if "to" in decoded.groups else "+"
        value = f"{value} {sign} np.uint64({base})"
    elif isinstance(source.operand, Symbol):
        value = f"{value} + np.uint64(0)"
    writer.write(target, value)


def _isspacep(writer: BlockWriter, decoded: Decoded) -> None:
    (target,), (source,) = decoded.outs, decoded.ins
    value = writer.read(source.operand, "u64")
    space = {"const": "none", "param": "none"}.get(
        decoded.groups["space"], decoded.groups["space"]
    )
    writer.write(target, f"m.is_space({value}, {space!r})")


def _cp_async(writer: BlockWriter, decoded: Decoded) -> None:
    target, source, *rest = decoded.ins
    size = writer.immediate(rest[0].operand)
    if size not in ((16,) if decoded.groups["cop"] == "cg" else (4, 8, 16)):
        what = f"cp.async.{decoded.groups['cop']} can't copy {size} bytes"
        raise PtxError(what, decoded.instruction.line, decoded.instruction.text)
    site = writer.site("shared", "b32", size // 4, async_copy=True)
    to = writer.address(target.operand, "shared")
    start = writer.address(source.operand, "global")
    length = "None"
    if len(rest) == 2:
        length = writer.read(rest[1].operand, "u32")
    writer.line(
        f"m.copy_async(L, {to}, {start}, {length}, {writer.where},"
        f" {writer.constant(site)})"
    )


def _commit(writer: BlockWriter, decoded: Decoded) -> None:
    writer.refuse_guard(decoded)
    writer.line("m.commit_async(L)")


def _wait(writer: BlockWriter, decoded: Decoded) -> None:
    writer.refuse_guard(decoded)
    count = writer.immediate(decoded.ins[0].operand) if decoded.ins else -1
    writer.line(f"m.wait_async(L, {count})")


def _nothing(writer: BlockWriter, decoded: Decoded) -> None:
    """Emit nothing: fences and prefetches change no value here."""


_ANY: Final = "<t:memory>"
_ATOMIC_OPS: Final = (
    "<op:add><t:u32|s32|u64|s64|f32|f64>",
    "<op:add>.noftz<t:f16|f16x2|bf16|bf16x2>",
    "<op:min|max><t:u32|s32|u64|s64>",
    "<op:min|max>.noftz<t:f16|f16x2|bf16|bf16x2>",
    "<op:inc|dec><t:u32>",
    "<op:and|or|xor><t:b32|b64>",
)
_ATOM: Final = (
    "[<sem:relaxed|acquire|release|acq_rel>][<scope>][<space:global|shared>][::cta]"
)

ROWS: Final = (
    Action(
        f"ld[<sem>][<scope>][<space>][::cta]{_HINTS}[<vec>]{_ANY}", "d:t = a", _load
    ),
    Action(
        f"ld[<sem:weak>]<space:global><cop:ca|cg|cs|lu|cv>[<nc:nc>]{_HINTS}[<vec>]{_ANY}",
        "d:t = a",
        _load,
    ),
    Action(f"ld<space:global><nc:nc>{_HINTS}[<vec>]{_ANY}", "d:t = a", _load),
    Action(f"ldu<space:global>[<vec>]{_ANY}", "d:t = a", _load),
    Action(
        f"st[<sem>][<scope>][<space>][::cta]{_HINTS}[<vec>]{_ANY}", "= a b:t", _store
    ),
    Action(
        f"st[<sem:weak>]<space:global><cop:wb|cg|cs|wt>{_HINTS}[<vec>]{_ANY}",
        "= a b:t",
        _store,
    ),
    *(Action(f"atom{_ATOM}{op}", "d:t = a b:t", _atomic) for op in _ATOMIC_OPS),
    *(Action(f"red{_ATOM}{op}", "= a b:t", _atomic) for op in _ATOMIC_OPS),
    Action(f"atom{_ATOM}<op:exch><t:b32|b64|u32|u64>", "d:t = a b:t", _atomic),
    Action(f"atom{_ATOM}<op:cas><t:b16|b32|b64|u32|u64>", "d:t = a b:t c:t", _atomic),
    Action("mov<t:pred|scalar>", "d:t = a:t", _mov),
    Action("cvta[<to:to>]<space>[::cta].u64", "d:u64 = a:u64", _cvta),
    Action("isspacep<space>[::cta]", "d:pred = a:u64", _isspacep),
    Action(
        "cp.async<cop:ca|cg>.shared[::cta].global[<fetch>]",
        "= a b c e:u32?",
        _cp_async,
    ),
    Action("cp.async.commit_group", "=", _commit),
    Action("cp.async.wait_group", "= a", _wait),
    Action("cp.async.wait_all", "=", _wait),
    Action("fence[<sem:sc|acq_rel>]<scope>", "=", _nothing),
    Action("membar<level:cta|gl|sys>", "=", _nothing),
    Action("prefetch[<space:global|local>]<level:L1|L2>", "= a", _nothing),
    Action("prefetchu.L1", "= a", _nothing),
)
