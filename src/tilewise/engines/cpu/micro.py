"""
The micro-kernels: a block of the product held in vector registers, as LLVM IR.

One step takes a row of w's panel (one or two vectors) and multiplies it with one
element of each row of x: the outer-product form of Goto and van de Geijn (Anatomy of
High-Performance Matrix Multiplication, 2008). Eight rows of two 64-byte vectors keep
16 accumulators; they reached the machine's peak (one 64-byte fused multiply-add a
cycle) from k=64 on a Zen 4. The text is linked behind what numba compiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewise.model.variant import Target

__all__ = ["PARAMETERS", "POINTERS", "Block", "block_of", "micro_ir"]

PRODUCT = (
    "x", "at", "row", "column", "rows", "w", "from", "step", "c", "depth", "again",
    "width",
)  # fmt: skip
"""
The parameters of a product: three pointers and integers, counted in elements.

Rows of x start at x[at + i * row] and step by `column`; those from `rows` on repeat
the last one. The panel's rows start at w[from + l * step], of which `width` columns
are read. The block goes to c, its rows a panel's columns apart, or is added to what
is there if `again`.
"""
PARAMETERS = {
    "wide": PRODUCT, "half": PRODUCT, "narrow": PRODUCT,
    "copy": ("w", "from", "step", "panels", "at", "depth"),
    "prefetch": ("array", "at", "row", "rows"),
}  # fmt: skip
"""By name: the products, what packs a panel of a w in C order, and what prefetches."""
POINTERS = ("x", "w", "c", "panels", "array")
LINE = 64
"""Bytes of a cache line."""
FOR_READING = "i32 0, i32 3, i32 1"
"""A prefetch to read, into every cache, of what is no code."""


@dataclass(frozen=True, slots=True)
class Block:
    """How a target's registers hold a block: `rows` x `vectors` of `lanes` elements."""

    dtype: str
    lanes: int
    rows: int
    vectors: int = 2

    @property
    def columns(self) -> int:
        """The columns of a panel of w."""
        return self.lanes * self.vectors

    @property
    def half(self) -> int:
        """The rows of the smaller block, for what is left over."""
        return self.rows // 2


def block_of(target: Target, dtype: str) -> Block:
    """Return the block for a target: it fills 16 or 32 vector registers."""
    features = target.features.split(",")
    many = "+avx512f" in features or target.triple.startswith(("aarch64", "arm64"))
    vector_bytes = 64 if "+avx512f" in features else 32 if "+avx2" in features else 16
    return Block(dtype, vector_bytes // np.dtype(dtype).itemsize, 8 if many else 6)


def micro_ir(block: Block) -> str:
    """Write the micro-kernels: wide, wide with half of the rows, and narrow."""
    half, narrow = replace(block, rows=block.half), replace(block, vectors=1)
    wide = Writer(block, "wide", block.columns)
    masked = Writer(narrow, "narrow", block.columns)
    lines = [*wide.head(), *masked.head()]
    for writer in (wide, Writer(half, "half", block.columns), masked):
        lines.extend(writer.lines())
    return "\n".join((*lines, *wide.copy(), *wide.prefetch()))


def opening(name: str) -> str:
    """Open a function's definition; `PARAMETERS` has its parameters."""
    told = (f"{'ptr' if p in POINTERS else 'i64'} %{p}" for p in PARAMETERS[name])
    return f"define void @tilewise_{name}({', '.join(told)}) {{\nentry:"


class Writer:
    """Writes one micro-kernel, in which %row.column names a vector."""

    def __init__(self, block: Block, name: str, stride: int) -> None:
        self.block, self.name, self.stride = block, name, stride
        self.masked = block.columns < stride
        self.element = {"float32": "float", "float64": "double"}[block.dtype]
        self.size = np.dtype(block.dtype).itemsize
        self.vector = f"<{block.lanes} x {self.element}>"
        self.suffix = f"v{block.lanes}f{8 * self.size}"
        self.places = [(r, v) for r in range(block.rows) for v in range(block.vectors)]

    def head(self) -> Iterator[str]:
        """Declare the intrinsics, once for all micro-kernels."""
        v, name = self.vector, f"@llvm.masked.load.{self.suffix}.p0"
        if self.masked:
            yield f"declare {v} {name}(ptr, i32, <{self.block.lanes} x i1>, {v})"
        else:
            yield f"declare {v} @llvm.fmuladd.{self.suffix}({v}, {v}, {v})"
            yield "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"

    def lines(self) -> Iterator[str]:
        """Write the function."""
        yield opening(self.name)
        yield from self.row_pointers()
        yield from self.mask()
        yield "  %empty = icmp sle i64 %depth, 0"
        yield "  br i1 %empty, label %done, label %loop"
        yield from self.loop()
        yield from self.stores()
        yield "  ret void\n}"

    def copy(self) -> Iterator[str]:
        """Write `tilewise_copy`: `depth` whole rows of a panel, moved as vectors."""
        yield opening("copy")
        yield "  %empty = icmp sle i64 %depth, 0"
        yield "  br i1 %empty, label %done, label %loop"
        yield "loop:"
        for name, first in (("l", "0"), ("in", "%from"), ("to", "%at")):
            yield f"  %{name} = phi i64 [{first}, %entry], [%{name}.next, %loop]"
        for v in range(self.block.vectors):
            for name, array in (("in", "w"), ("to", "panels")):
                place = f"{name}{v}"
                yield f"  %{place}.o = add i64 %{name}, {v * self.block.lanes}"
                yield (
                    f"  %{place} = getelementptr {self.element}, ptr %{array}, "
                    f"i64 %{place}.o"
                )
            yield f"  %v{v} = load {self.vector}, ptr %in{v}, align {self.size}"
            yield f"  store {self.vector} %v{v}, ptr %to{v}, align {self.size}"
        yield "  %l.next = add i64 %l, 1"
        yield "  %in.next = add i64 %in, %step"
        yield f"  %to.next = add i64 %to, {self.block.columns}"
        yield "  %more = icmp slt i64 %l.next, %depth"
        yield "  br i1 %more, label %loop, label %done"
        yield "done:\n  ret void\n}"

    def prefetch(self) -> Iterator[str]:
        """Write `tilewise_prefetch`: ask for the cache lines of a block of an array."""
        yield opening("prefetch")
        yield "  br label %loop\nloop:"
        yield "  %i = phi i64 [0, %entry], [%next, %loop]"
        yield "  %place = phi i64 [%at, %entry], [%below, %loop]"
        yield f"  %first = getelementptr {self.element}, ptr %array, i64 %place"
        length = self.block.columns * self.size
        for number, byte in enumerate((*range(0, length, LINE), length - 1)):
            yield f"  %p{number} = getelementptr i8, ptr %first, i64 {byte}"
            yield f"  call void @llvm.prefetch.p0(ptr %p{number}, {FOR_READING})"
        yield "  %next = add i64 %i, 1"
        yield "  %below = add i64 %place, %row"
        yield "  %more = icmp slt i64 %next, %rows"
        yield "  br i1 %more, label %loop, label %done"
        yield "done:\n  ret void\n}"

    def row_pointers(self) -> Iterator[str]:
        """Point to the rows of x, the last one again for those that are not there."""
        yield "  %last = sub i64 %rows, 1"
        yield f"  %block = getelementptr {self.element}, ptr %x, i64 %at"
        yield f"  %panel = getelementptr {self.element}, ptr %w, i64 %from"
        for r in range(self.block.rows):
            yield f"  %in{r} = icmp ult i64 {r}, %rows"
            yield f"  %index{r} = select i1 %in{r}, i64 {r}, i64 %last"
            yield f"  %offset{r} = mul i64 %index{r}, %row"
            yield (
                f"  %x{r} = getelementptr {self.element}, ptr %block, i64 %offset{r}"
            )

    def mask(self) -> Iterator[str]:
        """Make the mask of the columns that are there."""
        if not self.masked:
            return
        lanes = self.block.lanes
        numbers = ", ".join(f"i64 {i}" for i in range(lanes))
        wide = f"<{lanes} x i64>"
        yield f"  %one = insertelement {wide} poison, i64 %width, i32 0"
        yield (
            f"  %all = shufflevector {wide} %one, {wide} poison, "
            f"<{lanes} x i32> zeroinitializer"
        )
        yield f"  %mask = icmp ult {wide} <{numbers}>, %all"

    def loop(self) -> Iterator[str]:
        """Write one step of the product."""
        vector, lanes = self.vector, self.block.lanes
        yield "loop:"
        for name in ("l", "xo", "wo"):
            yield f"  %{name} = phi i64 [0, %entry], [%{name}.next, %loop]"
        for r, v in self.places:
            value = f"[zeroinitializer, %entry], [%sum{r}.{v}, %loop]"
            yield f"  %part{r}.{v} = phi {vector} {value}"
        yield f"  %wp = getelementptr {self.element}, ptr %panel, i64 %wo"
        for v in range(self.block.vectors):
            yield f"  %wp{v} = getelementptr {self.element}, ptr %wp, i64 {v * lanes}"
            yield f"  %w{v} = {self.panel_load(f'%wp{v}')}"
        for r in range(self.block.rows):
            yield f"  %xp{r} = getelementptr {self.element}, ptr %x{r}, i64 %xo"
            yield f"  %e{r} = load {self.element}, ptr %xp{r}, align {self.size}"
            first = f"{self.element} %e{r}, i32 0"
            yield f"  %i{r} = insertelement {vector} poison, {first}"
            yield (
                f"  %b{r} = shufflevector {vector} %i{r}, {vector} poison, "
                f"<{lanes} x i32> zeroinitializer"
            )
            for v in range(self.block.vectors):
                terms = f"{vector} %b{r}, {vector} %w{v}, {vector} %part{r}.{v}"
                yield (
                    f"  %sum{r}.{v} = call {vector} "
                    f"@llvm.fmuladd.{self.suffix}({terms})"
                )
        yield "  %l.next = add i64 %l, 1"
        yield "  %xo.next = add i64 %xo, %column"
        yield "  %wo.next = add i64 %wo, %step"
        yield "  %more = icmp slt i64 %l.next, %depth"
        yield "  br i1 %more, label %loop, label %done"

    def panel_load(self, pointer: str) -> str:
        """Load a vector of w, under the mask where there is one."""
        if not self.masked:
            return f"load {self.vector}, ptr {pointer}, align {self.size}"
        return (
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {pointer}, "
            f"i32 {self.size}, <{self.block.lanes} x i1> %mask, "
            f"{self.vector} zeroinitializer)"
        )

    def stores(self) -> Iterator[str]:
        """Store the block, or add it to what is stored."""
        yield "done:"
        for r, v in self.places:
            value = f"[zeroinitializer, %entry], [%sum{r}.{v}, %loop]"
            yield f"  %end{r}.{v} = phi {self.vector} {value}"
        for r, v in self.places:
            place = r * self.stride + v * self.block.lanes
            yield f"  %to{r}.{v} = getelementptr {self.element}, ptr %c, i64 {place}"
        yield "  %fresh = icmp eq i64 %again, 0"
        yield "  br i1 %fresh, label %store, label %add\nadd:"
        for r, v in self.places:
            old = f"load {self.vector}, ptr %to{r}.{v}, align {self.size}"
            yield f"  %old{r}.{v} = {old}"
            yield f"  %all{r}.{v} = fadd {self.vector} %old{r}.{v}, %end{r}.{v}"
        yield "  br label %store\nstore:"
        for r, v in self.places:
            value = f"[%end{r}.{v}, %done], [%all{r}.{v}, %add]"
            yield f"  %is{r}.{v} = phi {self.vector} {value}"
        for r, v in self.places:
            yield (
                f"  store {self.vector} %is{r}.{v}, ptr %to{r}.{v}, align {self.size}"
            )
