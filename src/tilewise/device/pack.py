"""
The forms of a call's arguments as bytes: the key under which a call is looked up.

For an array they hold dtype, alignment, shape and strides, for a number its type,
for None, True and False the object itself. The native function reads the fields of
PyArrayObject (number of axes at byte 24, dimensions at 32, strides at 40, dtype at
56, flags at 64) and PyArray_Descr (kind, letter, byte order at 24, number at 28); a
dtype is described, never named by its address, which another could have later. It
is compared with `pack_python` before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilewise.device.native import from_ir, is_gil_build

__all__ = [
    "ALIGNED",
    "MAX_NDIM",
    "NUMBERS",
    "PLAIN",
    "SINGLETONS",
    "native_pack",
    "pack_python",
    "packer",
    "tag",
]

Pack = Callable[..., bytes | None]
MAX_NDIM = 8
"""Arrays of more axes have no key."""
MAX_BYTES = 1024
"""Longer keys are not made: six arrays of eight axes, or 128 numbers."""
PLAIN = frozenset((*range(17), 23))
"""NumPy's numbers of the boolean, integer, floating and complex dtypes."""
ALIGNED = 0x100
"""NPY_ARRAY_ALIGNED among an array's flags."""
NUMBERS = (
    float, int, complex, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8,
    np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64, np.complex64,
    np.complex128,
)  # fmt: skip
SINGLETONS = (None, True, False)


def tag(dtype: np.dtype[Any]) -> int:
    """Return the word that stands for a plain dtype: its marks and its number."""
    marks = (dtype.kind, dtype.char, dtype.byteorder)
    return sum(ord(mark) << 8 * at for at, mark in enumerate(marks)) | dtype.num << 32


def pack_python(*args: Any) -> bytes | None:
    """
    Return a key of the arguments' forms, or None where one has no key.

    Arrays that are exactly ndarrays, of plain dtypes and at most 8 axes, exact
    Python and NumPy numbers, None, True and False have one.
    """
    words: list[int] = []
    for arg in args:
        kind = type(arg)
        if kind is np.ndarray:
            dtype = arg.dtype
            if dtype.num not in PLAIN or arg.ndim > MAX_NDIM:
                return None
            words += (tag(dtype), arg.ndim | arg.flags.aligned << 32)
            words += (*arg.shape, *arg.strides)
        elif kind in NUMBERS:
            words.append(id(kind))
        elif any(arg is one for one in SINGLETONS):
            words.append(id(arg))
        else:
            return None
    return struct.pack(f"={len(words)}q", *words) if len(words) <= 128 else None


@cache
def packer() -> Pack:
    """Return the native key function, or `pack_python` where it does not fit."""
    if not is_gil_build() or struct.calcsize("P") != 8:
        return pack_python
    native = native_pack()
    return native if fits(native) else pack_python


def fits(native: Pack) -> bool:
    """Say whether a key function agrees with `pack_python` on samples."""
    whole = np.zeros((3, 4), np.float32)
    samples: tuple[tuple[Any, ...], ...] = (
        (whole, whole.T, whole[::2, ::-1], np.zeros(5), np.array(1)),
        (1.0, 2, np.float32(3), None, True),
        (np.zeros(2, ">f8"), np.zeros(3, np.float16)),
        (np.zeros(3, "U2"),),
        ("text",),
        (),
    )
    return all(native(*sample) == pack_python(*sample) for sample in samples)


def native_pack() -> Pack:
    """Compile the native key function (about 100 ns for three arrays)."""
    return from_ir(pack_ir(), "tilewise_pack")


def pack_ir() -> str:
    """Write the IR of the native key function for this process's types."""
    known = "\n".join(f"    i64 {id(kind)}, label %number" for kind in NUMBERS)
    single = "\n".join(f"    i64 {id(one)}, label %singleton" for one in SINGLETONS)
    numbers = "\n".join(f"    i64 {n}, label %plain" for n in sorted(PLAIN))
    fill = {
        "array": id(np.ndarray), "none": id(None), "known": known, "single": single,
        "numbers": numbers, "max_ndim": MAX_NDIM, "aligned": ALIGNED,
        "max_bytes": MAX_BYTES, "room": MAX_BYTES + 16 * (MAX_NDIM + 1),
    }  # fmt: skip
    text = PACK
    for name, value in fill.items():
        text = text.replace(f"<{name}>", str(value))
    return text


PACK = """
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare void @Py_IncRef(ptr)

define ptr @tilewise_pack(ptr %self, ptr %args, i64 %count) {
entry:
  %key = alloca i8, i64 <room>, align 16
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %next]
  %at = phi i64 [0, %entry], [%end, %next]
  %over = icmp ugt i64 %at, <max_bytes>
  br i1 %over, label %slow, label %check
check:
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %place = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %place
  %type_at = getelementptr i8, ptr %arg, i64 8
  %type = load i64, ptr %type_at
  %to = getelementptr i8, ptr %key, i64 %at
  %is_array = icmp eq i64 %type, <array>
  br i1 %is_array, label %array, label %other
array:
  %descr_at = getelementptr i8, ptr %arg, i64 56
  %descr = load ptr, ptr %descr_at
  %tag_at = getelementptr i8, ptr %descr, i64 24
  %tag = load i64, ptr %tag_at
  %type_num = lshr i64 %tag, 32
  switch i64 %type_num, label %slow [
<numbers>
  ]
plain:
  %ndim_at = getelementptr i8, ptr %arg, i64 24
  %ndim32 = load i32, ptr %ndim_at
  %ndim = zext i32 %ndim32 to i64
  %many = icmp ugt i64 %ndim, <max_ndim>
  br i1 %many, label %slow, label %axes
axes:
  %marks = and i64 %tag, -4278190081
  store i64 %marks, ptr %to
  %flags_at = getelementptr i8, ptr %arg, i64 64
  %flags = load i32, ptr %flags_at
  %bit = and i32 %flags, <aligned>
  %is_aligned = icmp ne i32 %bit, 0
  %aligned64 = zext i1 %is_aligned to i64
  %high = shl i64 %aligned64, 32
  %shape_word = or i64 %ndim, %high
  %to1 = getelementptr i8, ptr %to, i64 8
  store i64 %shape_word, ptr %to1
  %dims_at = getelementptr i8, ptr %arg, i64 32
  %dims = load ptr, ptr %dims_at
  %strides_at = getelementptr i8, ptr %arg, i64 40
  %strides = load ptr, ptr %strides_at
  %to2 = getelementptr i8, ptr %to, i64 16
  %to3 = getelementptr i64, ptr %to2, i64 %ndim
  %size = shl i64 %ndim, 4
  %array_size = add i64 %size, 16
  br label %copy
copy:
  %axis = phi i64 [0, %axes], [%axis1, %copied]
  %inside = icmp ult i64 %axis, %ndim
  br i1 %inside, label %copied, label %next_array
copied:
  %dim_at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim_at
  %dim_to = getelementptr i64, ptr %to2, i64 %axis
  store i64 %dim, ptr %dim_to
  %stride_at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride_at
  %stride_to = getelementptr i64, ptr %to3, i64 %axis
  store i64 %stride, ptr %stride_to
  %axis1 = add i64 %axis, 1
  br label %copy
next_array:
  br label %next
other:
  switch i64 %type, label %maybe [
<known>
  ]
number:
  store i64 %type, ptr %to
  br label %next
maybe:
  %object = ptrtoint ptr %arg to i64
  switch i64 %object, label %slow [
<single>
  ]
singleton:
  store i64 %object, ptr %to
  br label %next
next:
  %used = phi i64 [%array_size, %next_array], [8, %number], [8, %singleton]
  %end = add i64 %at, %used
  %i1 = add i64 %i, 1
  br label %head
done:
  %bytes = call ptr @PyBytes_FromStringAndSize(ptr %key, i64 %at)
  ret ptr %bytes
slow:
  %none = inttoptr i64 <none> to ptr
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}
"""
