"""
Native code behind a Python call: wrappers made in LLVM IR, objects loaded alone.

A wrapper is a METH_FASTCALL function. It reads the fields of its NumPy arguments
(PyArrayObject: data at byte 16, dimensions at 32, strides at 40), converts numbers,
and calls the kernel. It checks nothing: callers hand it what it was made for. Wrapper
and kernel are compiled once, into one object; loading it needs llvmlite alone.
"""

from __future__ import annotations

import ctypes
import struct
import sysconfig
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilewise.device.forking import watch_forks
from tilewise.device.functions import function
from tilewise.errors import EngineError

__all__ = [
    "ENTRY",
    "Parameter",
    "code_address",
    "from_ir",
    "is_gil_build",
    "load",
    "sealed",
    "undefined",
    "wrapper_ir",
]

ENTRY = "tilewise_call"
SYMBOLS = (
    "PyFloat_AsDouble", "PyLong_AsLongLong", "PyErr_Occurred", "Py_IncRef",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyObject_IsTrue",
    "PyBytes_FromStringAndSize", "PyObject_Vectorcall", "PyErr_ExceptionMatches",
    "PyErr_Clear", "Py_DecRef",
)  # fmt: skip


LLVM_TYPES = {
    "data": "ptr", "room": "ptr", "grid": "ptr", "double": "double", "float": "float",
    "bool": "i8", "int32": "i32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    One parameter of a kernel and where its value comes from.

    `kind` is "data", "dim", "stride" (in elements of 2^`shift` bytes), "double",
    "float", "int", "int32", "bool" (from the argument at `arg`), "const" (`value`),
    "room" (`value` bytes on the stack) or "grid" (room on the stack for a copy of the
    array at `arg`, its elements of `value` bytes, both axes longer by `shift`).
    """

    kind: str
    arg: int = 0
    axis: int = 0
    shift: int = 0
    value: int = 0

    @property
    def type(self) -> str:
        """The parameter's LLVM type."""
        return LLVM_TYPES.get(self.kind, "i64")


def is_gil_build() -> bool:
    """Say whether this Python has a GIL, as the wrappers assume."""
    return not sysconfig.get_config_var("Py_GIL_DISABLED")


WRAPPER = """
declare i32 @"{kernel}"(ptr, ptr, {types})
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyErr_Occurred()
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define ptr @{entry}(ptr %self, ptr %args, i64 %count) {{
  %slot = alloca [8 x i64], align 16
  {body}
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %fail, label %go
fail:
  ret ptr null
go:
  %large = icmp sgt i64 %w{last}, {release}
  br i1 %large, label %long, label %short
short:
  call i32 @"{kernel}"(ptr %slot, ptr %slot, {values})
  br label %done
long:
  %state = call ptr @PyEval_SaveThread()
  call i32 @"{kernel}"(ptr %slot, ptr %slot, {values})
  call void @PyEval_RestoreThread(ptr %state)
  br label %done
done:
  %rp = getelementptr ptr, ptr %args, i64 {result}
  %r = load ptr, ptr %rp
  call void @Py_IncRef(ptr %r)
  ret ptr %r
}}
"""


def wrapper_ir(
    kernel: str,
    parameters: Sequence[Parameter],
    result: int,
    work: Sequence[int],
    release: int,
) -> str:
    """
    Write the IR of a wrapper that calls `kernel` and returns argument `result`.

    The kernel has numba's convention: two pointers for a result and an error that it
    does not use, then its parameters. `work` are the places of the parameters whose
    product is the amount of work; over `release` other threads may run meanwhile.
    """
    lines, types = [], ", ".join(p.type for p in parameters)
    for number, parameter in enumerate(parameters):
        lines += VALUES[parameter.kind](number, parameter)
    values = ", ".join(f"{p.type} %v{i}" for i, p in enumerate(parameters))
    product = ["%w0 = add i64 1, 0"]
    for step, place in enumerate(work):
        product.append(f"%w{step + 1} = mul i64 %w{step}, %v{place}")
    body = "\n  ".join([*lines, *product])
    return WRAPPER.format(
        kernel=kernel, types=types, entry=ENTRY, body=body, last=len(work),
        release=release, values=values, result=result,
    )  # fmt: skip


def argument(number: int, place: int) -> list[str]:
    """Load the pointer of an argument."""
    return [
        f"%a{number} = getelementptr ptr, ptr %args, i64 {place}",
        f"%p{number} = load ptr, ptr %a{number}",
    ]


def field(number: int, p: Parameter, offset: int) -> list[str]:
    """Load a pointer field of an array argument into %f."""
    return [
        *argument(number, p.arg),
        f"%g{number} = getelementptr i8, ptr %p{number}, i64 {offset}",
        f"%f{number} = load ptr, ptr %g{number}",
    ]


def data(number: int, p: Parameter) -> list[str]:
    """Load an array's data pointer."""
    return [*field(number, p, 16), f"%v{number} = bitcast ptr %f{number} to ptr"]


def integer(offset: int) -> Callable[[int, Parameter], list[str]]:
    """Make the loader of an entry of the dimensions or strides."""

    def lines(number: int, p: Parameter) -> list[str]:
        return [
            *field(number, p, offset),
            f"%e{number} = getelementptr i64, ptr %f{number}, i64 {p.axis}",
            f"%i{number} = load i64, ptr %e{number}",
            f"%v{number} = ashr i64 %i{number}, {p.shift}",
        ]

    return lines


def constant(number: int, p: Parameter) -> list[str]:
    """Write a constant."""
    return [f"%v{number} = add i64 0, {p.value}"]


def real(number: int, p: Parameter) -> list[str]:
    """Convert a Python number to double, or on to float."""
    call = f"call double @PyFloat_AsDouble(ptr %p{number})"
    if p.kind == "double":
        return [*argument(number, p.arg), f"%v{number} = {call}"]
    return [
        *argument(number, p.arg),
        f"%d{number} = {call}",
        f"%v{number} = fptrunc double %d{number} to float",
    ]


def whole(number: int, p: Parameter) -> list[str]:
    """Convert a Python int."""
    call = f"call i64 @PyLong_AsLongLong(ptr %p{number})"
    return [*argument(number, p.arg), f"%v{number} = {call}"]


def truth(number: int, p: Parameter) -> list[str]:
    """Convert a Python bool."""
    return [
        *argument(number, p.arg),
        f"%t{number} = call i32 @PyObject_IsTrue(ptr %p{number})",
        f"%v{number} = trunc i32 %t{number} to i8",
    ]


def whole32(number: int, p: Parameter) -> list[str]:
    """Convert a Python int to 32 bits."""
    *lines, last = whole(number, p)
    wide = last.replace(f"%v{number}", f"%l{number}")
    return [*lines, wide, f"%v{number} = trunc i64 %l{number} to i32"]


def room(number: int, p: Parameter) -> list[str]:
    """Take scratch from the stack."""
    return [f"%v{number} = alloca i8, i64 {p.value}, align 64"]


def grid(number: int, p: Parameter) -> list[str]:
    """Take room for a copy of a matrix from the stack, both axes longer by `shift`."""
    lines = field(number, p, 32)
    for axis in (0, 1):
        lines += [
            f"%e{number}.{axis} = getelementptr i64, ptr %f{number}, i64 {axis}",
            f"%d{number}.{axis} = load i64, ptr %e{number}.{axis}",
            f"%m{number}.{axis} = add i64 %d{number}.{axis}, {p.shift}",
        ]
    return [
        *lines,
        f"%n{number} = mul i64 %m{number}.0, %m{number}.1",
        f"%b{number} = mul i64 %n{number}, {p.value}",
        f"%v{number} = alloca i8, i64 %b{number}, align 64",
    ]


VALUES: dict[str, Callable[[int, Parameter], list[str]]] = {
    "data": data, "dim": integer(32), "stride": integer(40), "const": constant,
    "double": real, "float": real, "int": whole, "int32": whole32, "bool": truth,
    "room": room, "grid": grid,
}  # fmt: skip


MAGIC = b"tilewise object 1\n"


def sealed(code: bytes, symbols: Sequence[str] = ()) -> bytes:
    """
    Put an object behind its checksum and the symbols that it takes from outside.

    LLVM ends the process over a damaged object or a missing symbol, so both are
    looked at before it sees them.
    """
    names = "\n".join(symbols).encode()
    body = struct.pack("<I", len(names)) + names + code
    return MAGIC + struct.pack("<QI", len(body), zlib.crc32(body)) + body


def unsealed(code: bytes) -> tuple[bytes, list[str]]:
    """Return an object and its symbols; EngineError where it is not as it was made."""
    start = len(MAGIC) + 12
    if not code.startswith(MAGIC) or len(code) < start + 4:
        raise EngineError("the native code is no sealed object")
    size, check = struct.unpack_from("<QI", code, len(MAGIC))
    body = code[start:]
    if (len(body), zlib.crc32(body)) != (size, check):
        raise EngineError("the native code is damaged: its checksum differs")
    (count,) = struct.unpack_from("<I", body)
    return body[4 + count :], body[4 : 4 + count].decode().split()


def undefined(code: bytes) -> list[str]:
    """Return the names that an ELF object takes from outside; [] for other kinds."""
    import llvmlite.binding as llvm

    if not code.startswith(b"\x7fELF"):
        return []
    parts = {s.name(): s.data() for s in llvm.ObjectFileRef.from_data(code).sections()}
    texts, names = parts[b".strtab"], []
    for at, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", parts[b".symtab"]):
        if at and section == 0:
            names.append(texts[at : texts.index(b"\0", at)].decode())
    return names


KEPT: list[Any] = []
"""What loaded code needs to stay alive for as long as the process."""


def load(code: bytes) -> Callable[..., Any]:
    """
    Make a sealed object with a wrapper callable.

    Raises EngineError when it is damaged, has no wrapper or lacks a symbol.
    """
    import llvmlite.binding as llvm

    plain, symbols = unsealed(code)
    engine = execution_engine("")
    for name in symbols:
        if not (llvm.address_of_symbol(name) or named_in_libm(name)):
            raise EngineError(f"the native code needs {name}, which is not here")
    engine.add_object_file(llvm.ObjectFileRef.from_data(plain))
    return builtin(engine, ENTRY)


def named_in_libm(name: str) -> bool:
    """Tell LLVM where a function of the C mathematics library is, if it is there."""
    import llvmlite.binding as llvm

    try:
        found = getattr(ctypes.CDLL("libm.so.6"), name)
    except (OSError, AttributeError):
        return False
    llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
    return True


def from_ir(ir: str, entry: str) -> Callable[..., Any]:
    """Compile IR in this process and make its METH_FASTCALL function callable."""
    return builtin(execution_engine(ir), entry)


def execution_engine(ir: str) -> Any:
    """
    Return an LLVM engine with a module; Python's functions are known to it.

    The module is not optimised: its first use would cost a process 10 ms.
    """
    import llvmlite.binding as llvm

    prepare_llvm()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(ir), machine)


@cache
def prepare_llvm() -> None:
    """Initialise LLVM and name Python's functions, once a process."""
    import llvmlite.binding as llvm

    watch_forks()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in SYMBOLS:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        llvm.add_symbol(name, address)


def builtin(engine: Any, entry: str) -> Callable[..., Any]:
    """Make a Python function of an entry; EngineError where there is none."""
    return function(address_of(engine, entry))


def address_of(engine: Any, entry: str) -> int:
    """Return where an entry is for as long as the process lives."""
    engine.finalize_object()
    address: int = engine.get_function_address(entry)
    if not address:
        raise EngineError(f"the native code has no entry {entry}")
    KEPT.append(engine)
    return address


def code_address(ir: str, entry: str) -> int:
    """Compile IR in this process and return where its function is."""
    return address_of(execution_engine(ir), entry)
