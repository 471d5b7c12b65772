"""
Write one Python function per basic block, straight-line NumPy over all threads.

    def block_3(m, L, i0, i1):
        v1 = i0 + C4
        return 7, (v1,)

`m` is the running machine, `L` the threads that run; inputs and results are arrays
with one element per thread, or scalars where all threads have the same value. A
register may be used as any type of its size, so each value is kept with the types
that it was seen as.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.device.emulator.decoded import Decoded, Typed
from tilewise.device.emulator.flow import Block
from tilewise.device.emulator.names import EXIT, Names
from tilewise.device.emulator.site import Site
from tilewise.device.emulator.syntax import (
    Address,
    Immediate,
    Label,
    Negated,
    Operand,
    PtxError,
    Register,
    Sink,
    Special,
    Symbol,
)
from tilewise.device.emulator.table import Action
from tilewise.device.emulator.types import DTYPES, is_float, is_signed, size_of

__all__ = ["BlockWriter"]


class BlockWriter:
    """Write the function of one block."""

    def __init__(self, names: Names, block: Block) -> None:
        self.names, self.block = names, block
        self.lines: list[str] = []
        self.inputs: list[Register] = []
        self._values: dict[str, dict[str, str]] = {}
        self._count = 0
        self._now: Decoded | None = None
        self._guard: str | None = None
        self._next = ""

    def function(self) -> tuple[str, list[Register], list[Register]]:
        """Return the function's source, its inputs and its outputs."""
        self._next = str(self.after)
        for decoded in self.block.items:
            self._write_one(decoded)
        outputs = sorted(
            (r for r in self.block.writes & self.block.live_out if self._known(r)),
            key=lambda r: r.name,
        )
        results = "".join(f"{self.read(r, r.type)}, " for r in outputs)
        outputs += (flags := self._flags())
        results += "".join(f"{self.read(r, 'pred')}, " for r in flags)
        head = "".join(f", i{at}" for at in range(len(self.inputs)))
        body = "".join(f"    {line}\n" for line in self.lines)
        source = f"def block_{self.block.index}(m, L{head}):\n{body}"
        return f"{source}    return {self._next}, ({results})\n", self.inputs, outputs

    def _known(self, register: Register) -> bool:
        return register.name in self._values

    def _flags(self) -> list[Register]:
        written = {r for r in self.block.writes if r in self.names.watched}
        return sorted((_flag(r) for r in written), key=lambda r: r.name)

    def _write_one(self, decoded: Decoded) -> None:
        self._now = decoded
        guard = decoded.instruction.guard
        self._guard = None
        if guard is not None:
            truth = self.read(guard, "pred")
            self._guard = f"(~{truth})" if decoded.instruction.negated else truth
        self._check_reads(decoded)
        if isinstance(decoded.row, Action):
            decoded.row.emit(self, decoded)
        else:
            self._value(decoded)
        self._mark_written(decoded)

    def _value(self, decoded: Decoded) -> None:
        sources = [self.read(t.operand, t.type) for t in decoded.ins]
        emit = decoded.row.emit
        if isinstance(emit, str):
            named = {t.name: s for t, s in zip(decoded.ins, sources, strict=True)}
            self.write(decoded.outs[0], emit.format(**named))
            return
        function = emit(decoded.groups)
        if isinstance(function, str):
            raise self.refusal(f"{decoded.instruction.opcode}: {function}")
        call = f"{self.constant(function)}({', '.join(sources)})"
        if len(decoded.outs) == 1:
            self.write(decoded.outs[0], call)
            return
        result = self.name()
        self.line(f"{result} = {call}")
        for at, out in enumerate(decoded.outs):
            self.write(out, f"{result}[{at}]")

    # What rows use.

    @property
    def where(self) -> str:
        """Return the predicate of the instruction, or None."""
        return self._guard or "None"

    @property
    def after(self) -> int:
        """Return the block that follows this one."""
        return self.block.index + 1 if not self.block.last else EXIT

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(text)

    def name(self) -> str:
        """Return a fresh variable."""
        self._count += 1
        return f"v{self._count}"

    def constant(self, value: Any, key: Any = None) -> str:
        """Return the name of a constant."""
        return self.names.constant(value, key)

    def dtype(self, type_: str) -> str:
        """Return the name of a type's dtype."""
        return self.constant(DTYPES[type_], ("dtype", type_))

    def refusal(self, what: str) -> PtxError:
        """Return the error that refuses the present instruction."""
        assert self._now is not None
        return PtxError(what, self._now.instruction.line, self._now.instruction.text)

    def refuse_guard(self, decoded: Decoded) -> None:
        """Refuse a predicate where the machine needs all threads."""
        if decoded.instruction.guard is not None:
            raise self.refusal(f"a predicate on {decoded.instruction.opcode}")

    def site(self, space: str, type_: str, count: int, **more: Any) -> Site:
        """Describe the present instruction."""
        assert self._now is not None
        dtype = DTYPES[type_]
        return Site(self._now.instruction, space, dtype, count, type=type_, **more)

    def leave(self, target: str) -> None:
        """End the block: all threads, or those of the guard, go to a target."""
        if self._guard is not None:
            target = f"({self._guard}, {target}, {self.after})"
        self._next = target

    def target(self, operand: Operand) -> int:
        """Return the block of a label, EXIT for one at the very end."""
        assert isinstance(operand, Label)
        index = self.names.targets[operand.name]
        return index if index < self.names.blocks else EXIT

    def immediate(self, operand: Operand) -> int:
        """Return an operand that has to be a plain integer."""
        if not isinstance(operand, Immediate) or operand.kind != "int":
            raise self.refusal("an integer constant is needed")
        return operand.value

    def param_space(self, operand: Operand) -> str:
        """Tell kernel parameters ("kernel") from call parameters ("local")."""
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return "kernel" if operand.base.name in self.names.params else "local"
        return "global"

    def param_offset(self, operand: Operand) -> int:
        """Return the offset of a kernel parameter's address."""
        assert isinstance(operand, Address) and isinstance(operand.base, Symbol)
        return self.names.params[operand.base.name] + operand.offset

    def address(self, operand: Operand, space: str) -> str:
        """Return the expression of an address."""
        if not isinstance(operand, Address):
            raise self.refusal("an address in brackets is needed")
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            wide = size_of(base.type) == 8
            value = self.read(base, "u64" if wide else "u32")
            if not offset:
                return value
            return f"{value} + {self._integer(offset, 'u64' if wide else 'u32')}"
        if isinstance(base, Symbol):
            return self.read(Symbol(base.name, base.offset + offset), "u64")
        return self._integer(base.value + offset, "u64")

    # Reading and writing values.

    def read(self, operand: Operand, type_: str) -> str:
        """Return the expression of an operand as a type."""
        match operand:
            case Register():
                return self._register(operand, type_)
            case Negated(register):
                return f"(~{self._register(register, type_)})"
            case Immediate(value, kind):
                return self._immediate(value, kind, type_)
            case Special(name):
                return self._special(name, type_)
            case Symbol(name, offset):
                address = self.names.address_of(name)
                if address is None:
                    raise self.refusal(f"{name} has no address here")
                return self._integer(address + offset, type_)
        raise self.refusal(f"{type(operand).__name__.lower()} can't be a value here")

    def _register(self, register: Register, type_: str) -> str:
        values = self._values.setdefault(register.name, {})
        if not values:
            self.inputs.append(register)
            values[register.type] = f"i{len(self.inputs) - 1}"
        if type_ not in values:
            values[type_] = self._recast(register, values, type_)
        return values[type_]

    def _recast(self, register: Register, values: dict[str, str], type_: str) -> str:
        wanted, have = size_of(type_), size_of(register.type)
        predicates = (type_ == "pred", register.type == "pred")
        if predicates[0] != predicates[1] or wanted > have:
            raise self.refusal(f"{register.name} is .{register.type}, not .{type_}")
        value = next(iter(values.values()))
        for same, other in values.items():
            if DTYPES[same] == DTYPES[type_]:
                return other
        name = self.name()
        if wanted < have:
            bits = self._register(register, f"u{8 * have}")
            self.line(f"{name} = {bits}.astype(np.uint{8 * wanted})")
            if DTYPES[type_].kind != "u":
                self.line(f"{name} = {name}.view({self.dtype(type_)})")
        else:
            self.line(f"{name} = {value}.view({self.dtype(type_)})")
        return name

    def _immediate(self, value: int, kind: str, type_: str) -> str:
        if type_ == "pred":
            return self.constant(np.bool_(value != 0), ("pred", value != 0))
        if kind == "int" and not (is_float(type_) and DTYPES[type_].kind == "f"):
            return self._integer(value, type_)
        number: Any = float(value)
        if kind != "int":
            bits = np.uint32(value) if kind == "f32" else np.uint64(value)
            number = bits.view(np.float32 if kind == "f32" else np.float64)
        if DTYPES[type_].kind != "f":
            return self._integer(value, type_)
        scalar = DTYPES[type_].type(number)
        return self.constant(scalar, (type_, scalar.tobytes()))

    def _integer(self, value: int, type_: str) -> str:
        bits = 8 * size_of(type_)
        scalar = np.array(value & ((1 << bits) - 1), f"u{bits // 8}").view(
            DTYPES[type_]
        )
        return self.constant(scalar[()], (type_, scalar.tobytes()))

    def _special(self, name: str, type_: str) -> str:
        value = f"m.special(L, {name!r})"
        natural = 8 if name in ("clock64", "globaltimer") else 4
        if size_of(type_) != natural or type_ == "pred":
            raise self.refusal(f"%{name} is .u{8 * natural}, not .{type_}")
        result = self.name()
        self.line(f"{result} = {value}")
        if DTYPES[type_].kind != "u":
            self.line(f"{result} = {result}.view({self.dtype(type_)})")
        return result

    def write(self, target: Typed, expression: str) -> None:
        """Assign an expression of the target's type, under the guard."""
        register = target.operand
        name = self.name()
        if isinstance(register, Sink):
            self.line(f"{name} = {expression}")
            return
        if not isinstance(register, Register):
            raise self.refusal("a register is needed for the result")
        type_ = target.type
        if (type_ == "pred") != (register.type == "pred"):
            raise self.refusal(f"{register.name} is .{register.type}, not .{type_}")
        if size_of(type_) > size_of(register.type):
            raise self.refusal(f"{register.name} is too small for .{type_}")
        if size_of(type_) < size_of(register.type):
            expression, type_ = self._extended(expression, type_, register)
        if self._guard is not None:
            old = self._register(register, type_)
            expression = f"np.where({self._guard}, {expression}, {old})"
        self.line(f"{name} = {expression}")
        self._values[register.name] = {type_: name}

    def _extended(
        self, expression: str, type_: str, register: Register
    ) -> tuple[str, str]:
        bits = 8 * size_of(register.type)
        if is_signed(type_):
            return f"({expression}).astype(np.int{bits})", f"s{bits}"
        if DTYPES[type_].kind == "f":
            expression = f"({expression}).view(np.uint{8 * size_of(type_)})"
        return f"({expression}).astype(np.uint{bits})", f"u{bits}"

    # Registers that some path reads before it writes them.

    def _check_reads(self, decoded: Decoded) -> None:
        for register in dict.fromkeys(decoded.reads):
            if register in self.names.watched:
                flag = self._register(_flag(register), "pred")
                where = self.where
                if register == decoded.instruction.guard:
                    where = "None"
                site = self.constant(self.site("register", "b32", 1))
                self.line(
                    f"m.check_register(L, {flag}, {where}, {register.name!r}, {site})"
                )

    def _mark_written(self, decoded: Decoded) -> None:
        for register in decoded.writes:
            if register in self.names.watched:
                flag = _flag(register)
                if self._guard is None:
                    value = self.constant(np.True_, ("pred", True))
                else:
                    value = f"({self._register(flag, 'pred')} | {self._guard})"
                name = self.name()
                self.line(f"{name} = {value}")
                self._values[flag.name] = {"pred": name}


def _flag(register: Register) -> Register:
    """Return the pseudo register that tells whether a register was written."""
    return Register(register.name + "?", "pred")
