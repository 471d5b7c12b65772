"""
Make the host's own fused multiply-add a NumPy ufunc, which NumPy lacks.

NumPy calls a loop of native code, made here with LLVM, over the strides of any
operands. Source: NumPy's C API, "PyUFunc_FromFuncAndData". A host without the
instruction takes `fma` and `fmaf` of its C library, which round once as well.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from tilewise.device.native import code_address

__all__ = ["fused"]

_LOOP: Final = """
declare {type} @llvm.fma.{suffix}({type}, {type}, {type})
define void @loop(ptr %operands, ptr %sizes, ptr %steps, ptr %unused) {attributes} {{
start:
  %size = load i64, ptr %sizes
  {starts}
  br label %check
check:
  %at = phi i64 [ 0, %start ], [ %after, %body ]
  {places}
  %more = icmp slt i64 %at, %size
  br i1 %more, label %body, label %end
body:
  %a = load {type}, ptr %p0, align 1
  %b = load {type}, ptr %p1, align 1
  %c = load {type}, ptr %p2, align 1
  %r = call {type} @llvm.fma.{suffix}({type} %a, {type} %b, {type} %c)
  store {type} %r, ptr %p3, align 1
  {moves}
  %after = add i64 %at, 1
  br label %check
end:
  ret void
}}
"""
_START: Final = """
  %w{0} = getelementptr ptr, ptr %operands, i64 {0}
  %f{0} = load ptr, ptr %w{0}
  %v{0} = getelementptr i64, ptr %steps, i64 {0}
  %s{0} = load i64, ptr %v{0}"""
_PLACE: Final = "%p{0} = phi ptr [ %f{0}, %start ], [ %n{0}, %body ]"
_MOVE: Final = "%n{0} = getelementptr i8, ptr %p{0}, i64 %s{0}"
_FROM_LOOPS: Final = 1
"""The place of PyUFunc_FromFuncAndData in NumPy's table of functions."""
_NUMBERS: Final = {"float": np.dtype(np.float32).num, "double": np.dtype(float).num}


@cache
def fused() -> Callable[..., Any]:
    """Return the ufunc of a * b + c with one rounding, for float32 and float64."""
    loops = (ctypes.c_void_p * 2)(_loop("float", "f32"), _loop("double", "f64"))
    types = bytes(number for number in _NUMBERS.values() for _ in range(4))
    name, kept = b"fused", (ctypes.c_void_p * 2)()
    made: Callable[..., Any] = _maker()(
        loops, kept, types, 2, 3, 1, -1, name, b"Return a * b + c.", 0
    )
    _KEPT.extend((loops, kept, types, name))
    return made


_KEPT: Final[list[Any]] = []
"""What NumPy has pointers to, for as long as the process lives."""


def _loop(type_: str, suffix: str) -> int:
    """Compile the loop of a type and return where it is."""
    import llvmlite.binding as llvm

    has_it = llvm.get_host_cpu_features().get("fma", False)
    written = _LOOP.format(
        type=type_,
        suffix=suffix,
        attributes='"target-features"="+fma"' if has_it else "",
        starts="".join(_START.format(at) for at in range(4)),
        places="\n  ".join(_PLACE.format(at) for at in range(4)),
        moves="\n  ".join(_MOVE.format(at) for at in range(4)),
    )
    return code_address(written, "loop")


def _maker() -> Callable[..., Any]:
    """Return NumPy's C function that makes a ufunc of loops."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    compiled = import_module("numpy._core._multiarray_umath")
    table = pointer(compiled._UFUNC_API, None)
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_FROM_LOOPS]
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_int] * 4]
    kinds += [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    return ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(address)
