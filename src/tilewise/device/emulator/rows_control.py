"""
List the opcodes of control flow and barriers (operand notation: `rows_integer`).

A row here ends a basic block; `emit` calls `writer.leave` with where threads go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tilewise.device.emulator.decoded import Decoded
from tilewise.device.emulator.syntax import Label, PtxError, Vector
from tilewise.device.emulator.table import Action

if TYPE_CHECKING:
    from tilewise.device.emulator.codegen import BlockWriter

__all__ = ["ENDS", "ROWS", "VOTED"]

#: Opcodes that end a basic block.
ENDS: Final = frozenset(("bra", "brx", "ret", "exit", "trap", "bar", "barrier"))


def _branch(writer: BlockWriter, decoded: Decoded) -> None:
    label = decoded.ins[0].operand
    if not isinstance(label, Label):
        raise PtxError(
            "a branch needs a label",
            decoded.instruction.line,
            decoded.instruction.text,
        )
    writer.leave(str(writer.target(label)))


def _branch_indexed(writer: BlockWriter, decoded: Decoded) -> None:
    index, table = decoded.ins
    if not isinstance(table.operand, Vector):
        raise PtxError(
            "brx.idx needs a list of labels",
            decoded.instruction.line,
            decoded.instruction.text,
        )
    targets = tuple(writer.target(label) for label in table.operand.items)
    writer.refuse_guard(decoded)
    writer.leave(
        f"m.indexed({writer.read(index.operand, 'u32')}, {writer.constant(targets)})"
    )


def _exit(writer: BlockWriter, decoded: Decoded) -> None:
    writer.leave("EXIT")


def _trap(writer: BlockWriter, decoded: Decoded) -> None:
    site = writer.constant(writer.site("none", "b32", 1))
    writer.line(f"m.trap(L, {writer.where}, {site})")
    writer.leave("EXIT")


def _barrier(writer: BlockWriter, decoded: Decoded) -> None:
    barrier, *count = decoded.ins
    arrive = "arrive" in decoded.groups
    if arrive and not count:
        raise PtxError(
            "bar.arrive needs a thread count",
            decoded.instruction.line,
            decoded.instruction.text,
        )
    site = writer.constant(writer.site("none", "b32", 1))
    number = writer.read(barrier.operand, "u32")
    threads = writer.read(count[0].operand, "u32") if count else "None"
    method = "arrive" if arrive else "wait"
    writer.line(f"m.barriers.{method}(L, {number}, {threads}, {writer.where}, {site})")
    writer.leave(f"{writer.after}" if arrive else f"WAIT + {writer.after}")


def _vote(writer: BlockWriter, decoded: Decoded) -> None:
    """Wait with a predicate; `VOTED` reads the result in the block that follows."""
    writer.refuse_guard(decoded)
    barrier, *count, flag = decoded.ins
    writer.line(f"m.barriers.vote(L, {writer.read(flag.operand, 'pred')})")
    site = writer.constant(writer.site("none", "b32", 1))
    number = writer.read(barrier.operand, "u32")
    threads = writer.read(count[0].operand, "u32") if count else "None"
    writer.line(f"m.barriers.wait(L, {number}, {threads}, None, {site})")
    writer.leave(f"WAIT + {writer.after}")


def _voted(writer: BlockWriter, decoded: Decoded) -> None:
    writer.write(decoded.outs[0], f"m.barriers.result(L, {decoded.groups['op']!r})")


#: The second half of bar.red, which `flow` puts at the start of the next block.
VOTED: Final = Action("bar.red.result", "d =", _voted)
_VOTE: Final = "d:t = a:u32 b:u32? c:pred"

ROWS: Final = (
    Action("bra[.uni]", "= a", _branch),
    Action("brx.idx[.uni]", "= a:u32 b", _branch_indexed),
    Action("ret[.uni]", "=", _exit),
    Action("exit", "=", _exit),
    Action("trap", "=", _trap),
    Action("bar[.cta].sync", "= a:u32 b:u32?", _barrier),
    Action("bar[.cta]<arrive:arrive>", "= a:u32 b:u32", _barrier),
    Action("barrier[.cta].sync[.aligned]", "= a:u32 b:u32?", _barrier),
    Action("barrier[.cta]<arrive:arrive>[.aligned]", "= a:u32 b:u32", _barrier),
    Action("bar[.cta].red<op:popc><t:u32>", _VOTE, _vote),
    Action("bar[.cta].red<op:and|or><t:pred>", _VOTE, _vote),
    Action("barrier[.cta].red<op:popc>[.aligned]<t:u32>", _VOTE, _vote),
    Action("barrier[.cta].red<op:and|or>[.aligned]<t:pred>", _VOTE, _vote),
    Action("nanosleep.u32", "= a", lambda writer, decoded: None),
)
