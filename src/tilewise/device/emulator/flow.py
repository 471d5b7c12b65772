"""
Cut a flat kernel into basic blocks and follow its registers through them.

Liveness says which registers a block hands on; definite assignment says which reads
may come before any write, so only those are watched while the kernel runs. Source:
A. Aho, M. Lam, R. Sethi, J. Ullman, "Compilers", 2nd edition, 9.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tilewise.device.emulator.decode import decode
from tilewise.device.emulator.decoded import Decoded
from tilewise.device.emulator.inline import Flat
from tilewise.device.emulator.rows_control import ENDS, VOTED
from tilewise.device.emulator.rows_warp import mask_of
from tilewise.device.emulator.syntax import (
    Label,
    Mark,
    Operand,
    PtxError,
    Register,
    Vector,
)

__all__ = ["Block", "Flow", "follow"]


@dataclass(slots=True)
class Block:
    """
    A straight run of instructions.

    `inputs` are read before they are written here, `outputs` are written here and
    read later; `mask` is the membermask of the warp operation that begins it.
    """

    index: int
    items: list[Decoded] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    uses: set[Register] = field(default_factory=set)
    writes: set[Register] = field(default_factory=set)
    live_out: set[Register] = field(default_factory=set)
    mask: Operand | None = None
    last: bool = False


@dataclass(slots=True)
class Flow:
    """The blocks of a kernel, where its labels lead, and the registers to watch."""

    blocks: list[Block]
    targets: dict[str, int]
    watched: frozenset[Register]


def follow(flat: Flat) -> Flow:
    """Decode a flat kernel and analyse its flow; PtxError for what is refused."""
    blocks, targets = _cut(flat)
    for block in blocks:
        _link(block, blocks, targets)
        _uses(block)
    _live(blocks)
    return Flow(blocks, targets, frozenset(_watched(blocks)))


def _cut(flat: Flat) -> tuple[list[Block], dict[str, int]]:
    blocks, targets = [Block(0)], {}

    def begin() -> Block:
        if blocks[-1].items:
            blocks.append(Block(len(blocks)))
        return blocks[-1]

    for item in flat.items:
        if isinstance(item, Mark):
            targets[item.name] = begin().index
            continue
        decoded = decode(item)
        mask = mask_of(decoded)
        block = begin() if mask is not None else blocks[-1]
        block.mask = mask if mask is not None else block.mask
        if ".red." in item.opcode and item.opcode.startswith("bar"):
            block.items.append(replace(decoded, outs=()))
            begin().items.append(replace(decoded, row=VOTED, ins=()))
            continue
        block.items.append(decoded)
        if item.opcode.split(".")[0] in ENDS:
            begin()
    if not blocks[-1].items and len(blocks) > 1:
        blocks.pop()
    blocks[-1].last = True
    return blocks, targets


def _link(block: Block, blocks: list[Block], targets: dict[str, int]) -> None:
    last = block.items[-1] if block.items else None
    falls = True
    if last is not None:
        name = last.instruction.opcode.split(".")[0]
        labels = [o for typed in last.ins for o in _labels(typed.operand)]
        for label in labels:
            if label.name not in targets:
                what = f"label {label.name} is nowhere"
                raise PtxError(what, last.instruction.line, last.instruction.text)
            block.successors.append(targets[label.name])
        guarded = last.instruction.guard is not None
        falls = guarded or name not in ("bra", "brx", "ret", "exit", "trap")
    if falls:
        block.successors.append(block.index + 1)
    block.successors = [s for s in block.successors if s < len(blocks)]


def _labels(operand: Operand) -> Iterable[Label]:
    if isinstance(operand, Label):
        yield operand
    elif isinstance(operand, Vector):
        yield from (o for o in operand.items if isinstance(o, Label))


def _uses(block: Block) -> None:
    for decoded in block.items:
        reads = set(decoded.reads)
        if decoded.instruction.guard is not None:
            reads |= set(decoded.writes)  # what a false guard keeps
        block.uses |= reads - block.writes
        block.writes |= set(decoded.writes)


def _live(blocks: list[Block]) -> None:
    live_in: list[set[Register]] = [set(b.uses) for b in blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            out = set().union(*(live_in[s] for s in block.successors))
            if out == block.live_out and live_in[block.index] >= out - block.writes:
                continue
            block.live_out = out
            live_in[block.index] = block.uses | (out - block.writes)
            changed = True


def _watched(blocks: list[Block]) -> set[Register]:
    """Return the registers that some path reads before any write."""
    everything = set().union(*(b.writes | b.uses for b in blocks))
    assigned: list[set[Register] | None] = [None] * len(blocks)
    assigned[0] = set()
    todo = [0]
    while todo:
        block = blocks[todo.pop()]
        out = (assigned[block.index] or set()) | _surely_written(block)
        for successor in block.successors:
            known = assigned[successor]
            merged = set(out) if known is None else known & out
            if merged != known:
                assigned[successor] = merged
                todo.append(successor)
    watched: set[Register] = set()
    for block in blocks:
        have = set(everything if assigned[block.index] is None else ())
        have |= assigned[block.index] or set()
        for decoded in block.items:
            watched |= set(decoded.reads) - have
            if decoded.instruction.guard is None:
                have |= set(decoded.writes)
    return watched


def _surely_written(block: Block) -> set[Register]:
    unguarded = (d for d in block.items if d.instruction.guard is None)
    return set().union(*(set(d.writes) for d in unguarded))
