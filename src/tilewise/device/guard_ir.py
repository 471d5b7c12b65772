"""
The guard's code as LLVM IR; `guard` says what it does and what its state holds.

The state's first bytes are words of 8 bytes: how many arguments a call gives, how many
the run takes with `out`, the address of a counter, then an entry for each given
argument and for `out`: kind, place, what is wanted, flags, axes, both ends of the
range of addresses, shape and strides.
"""

from __future__ import annotations

import sys

import numpy as np

from tilewise.device.pack import MAX_NDIM

__all__ = ["ENTRY_WORDS", "MAX_ARGUMENTS", "guard_ir"]

MAX_ARGUMENTS = 32
"""Kernels of more arguments have no guard."""
ENTRY_WORDS = 7 + 2 * MAX_NDIM
OUT = sys.intern("out")
"""The one keyword: calls in source code give it as this very object."""


def guard_ir() -> str:
    """Write the guard's IR for this process."""
    fill = {
        "array": id(np.ndarray), "none": id(None), "out": id(OUT),
        "room": MAX_ARGUMENTS + 1, "items": tuple.__basicsize__,
        "bytes": bytes.__basicsize__ - 1, "entry": 8 * ENTRY_WORDS,
        "strides": 8 * (7 + MAX_NDIM),
    }  # fmt: skip
    text = GUARD
    for name, value in fill.items():
        text = text.replace(f"<{name}>", str(value))
    return text


GUARD = """
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

define ptr @tilewise_guard(ptr %self, ptr %args, i64 %count, ptr %names) {
entry:
  %full = alloca [<room> x ptr], align 16
  %lows = alloca [<room> x i64], align 16
  %highs = alloca [<room> x i64], align 16
  %list_at = getelementptr i8, ptr %self, i64 24
  %list = load ptr, ptr %list_at
  %state = load ptr, ptr %list
  call void @Py_IncRef(ptr %state)
  %items = getelementptr i8, ptr %state, i64 <items>
  %packed = load ptr, ptr %items
  %words = getelementptr i8, ptr %packed, i64 <bytes>
  %given = load i64, ptr %words
  %all = icmp eq i64 %count, %given
  br i1 %all, label %named, label %slow
named:
  %bare = icmp eq ptr %names, null
  br i1 %bare, label %keep, label %name
name:
  %names_size_at = getelementptr i8, ptr %names, i64 16
  %names_size = load i64, ptr %names_size_at
  %single = icmp eq i64 %names_size, 1
  br i1 %single, label %name_out, label %slow
name_out:
  %name_at = getelementptr i8, ptr %names, i64 <items>
  %name_is = load i64, ptr %name_at
  %is_out = icmp eq i64 %name_is, <out>
  br i1 %is_out, label %keep, label %slow
keep:
  %more = phi i64 [0, %named], [1, %name_out]
  %limit = add i64 %given, %more
  %total_at = getelementptr i64, ptr %words, i64 1
  %total = load i64, ptr %total_at
  %run_at = getelementptr ptr, ptr %items, i64 1
  %run = load ptr, ptr %run_at
  %kept = getelementptr ptr, ptr %items, i64 6
  %entries = getelementptr i64, ptr %words, i64 3
  br label %keep_one
keep_one:
  %k = phi i64 [0, %keep], [%k1, %keep_one]
  %kept_at = getelementptr ptr, ptr %kept, i64 %k
  %kept_one = load ptr, ptr %kept_at
  %kept_to = getelementptr ptr, ptr %full, i64 %k
  store ptr %kept_one, ptr %kept_to
  %k1 = add i64 %k, 1
  %kept_all = icmp eq i64 %k1, %total
  br i1 %kept_all, label %head, label %keep_one
head:
  %i = phi i64 [0, %keep_one], [%i1, %next]
  %out_low = phi i64 [0, %keep_one], [%range_low, %next]
  %out_high = phi i64 [0, %keep_one], [%range_high, %next]
  %checked = icmp eq i64 %i, %limit
  br i1 %checked, label %ready, label %check
check:
  %arg_at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg_at
  %offset = mul i64 %i, <entry>
  %e = getelementptr i8, ptr %entries, i64 %offset
  %kind = load i64, ptr %e
  %place_at = getelementptr i64, ptr %e, i64 1
  %place = load i64, ptr %place_at
  %want_at = getelementptr i64, ptr %e, i64 2
  %want = load i64, ptr %want_at
  %type_at = getelementptr i8, ptr %arg, i64 8
  %type = load i64, ptr %type_at
  switch i64 %kind, label %slow [
    i64 0, label %array
    i64 1, label %typed
    i64 2, label %same
  ]
typed:
  %is_type = icmp eq i64 %type, %want
  br i1 %is_type, label %next, label %slow
same:
  %object = ptrtoint ptr %arg to i64
  %is_same = icmp eq i64 %object, %want
  br i1 %is_same, label %next, label %slow
array:
  %is_array = icmp eq i64 %type, <array>
  br i1 %is_array, label %form, label %slow
form:
  %descr_at = getelementptr i8, ptr %arg, i64 56
  %descr = load ptr, ptr %descr_at
  %tag_at = getelementptr i8, ptr %descr, i64 24
  %tag = load i64, ptr %tag_at
  %marks = and i64 %tag, -4278190081
  %ok1 = icmp eq i64 %marks, %want
  %mask_at = getelementptr i64, ptr %e, i64 3
  %mask = load i64, ptr %mask_at
  %flags_at = getelementptr i8, ptr %arg, i64 64
  %flags32 = load i32, ptr %flags_at
  %flags = zext i32 %flags32 to i64
  %bits = and i64 %flags, %mask
  %ok2 = icmp eq i64 %bits, %mask
  %ndim_at = getelementptr i8, ptr %arg, i64 24
  %ndim32 = load i32, ptr %ndim_at
  %ndim = zext i32 %ndim32 to i64
  %want_ndim_at = getelementptr i64, ptr %e, i64 4
  %want_ndim = load i64, ptr %want_ndim_at
  %ok3 = icmp eq i64 %ndim, %want_ndim
  %ok12 = and i1 %ok1, %ok2
  %ok123 = and i1 %ok12, %ok3
  %dims_at = getelementptr i8, ptr %arg, i64 32
  %dims = load ptr, ptr %dims_at
  %strides_at = getelementptr i8, ptr %arg, i64 40
  %strides = load ptr, ptr %strides_at
  %want_dims = getelementptr i64, ptr %e, i64 7
  %want_strides = getelementptr i8, ptr %e, i64 <strides>
  br i1 %ok123, label %axes, label %slow
axes:
  %axis = phi i64 [0, %form], [%axis1, %axis_ok]
  %inside = icmp ult i64 %axis, %ndim
  br i1 %inside, label %axis_check, label %range
axis_check:
  %d_at = getelementptr i64, ptr %dims, i64 %axis
  %d = load i64, ptr %d_at
  %wd_at = getelementptr i64, ptr %want_dims, i64 %axis
  %wd = load i64, ptr %wd_at
  %s_at = getelementptr i64, ptr %strides, i64 %axis
  %s = load i64, ptr %s_at
  %ws_at = getelementptr i64, ptr %want_strides, i64 %axis
  %ws = load i64, ptr %ws_at
  %d_ok = icmp eq i64 %d, %wd
  %s_ok = icmp eq i64 %s, %ws
  %axis_same = and i1 %d_ok, %s_ok
  br i1 %axis_same, label %axis_ok, label %slow
axis_ok:
  %axis1 = add i64 %axis, 1
  br label %axes
range:
  %data_at = getelementptr i8, ptr %arg, i64 16
  %data = load i64, ptr %data_at
  %low_at = getelementptr i64, ptr %e, i64 5
  %low = load i64, ptr %low_at
  %high_at = getelementptr i64, ptr %e, i64 6
  %high = load i64, ptr %high_at
  %first = add i64 %data, %low
  %end = add i64 %data, %high
  br label %next
next:
  %range_low = phi i64 [0, %typed], [0, %same], [%first, %range]
  %range_high = phi i64 [0, %typed], [0, %same], [%end, %range]
  %low_to = getelementptr i64, ptr %lows, i64 %i
  store i64 %range_low, ptr %low_to
  %high_to = getelementptr i64, ptr %highs, i64 %i
  store i64 %range_high, ptr %high_to
  %to = getelementptr ptr, ptr %full, i64 %place
  store ptr %arg, ptr %to
  %i1 = add i64 %i, 1
  br label %head
ready:
  br i1 %bare, label %allocate, label %apart
allocate:
  %empty_at = getelementptr ptr, ptr %items, i64 2
  %empty = load ptr, ptr %empty_at
  %shape_at = getelementptr ptr, ptr %items, i64 3
  %fresh = call ptr @PyObject_Vectorcall(ptr %empty, ptr %shape_at, i64 2, ptr null)
  %no_memory = icmp eq ptr %fresh, null
  br i1 %no_memory, label %raise, label %place_fresh
place_fresh:
  %last = sub i64 %total, 1
  %fresh_to = getelementptr ptr, ptr %full, i64 %last
  store ptr %fresh, ptr %fresh_to
  br label %call
apart:
  %j = phi i64 [0, %ready], [%j1, %clear]
  %left = icmp ult i64 %j, %given
  br i1 %left, label %compare, label %call
compare:
  %other_low_at = getelementptr i64, ptr %lows, i64 %j
  %other_low = load i64, ptr %other_low_at
  %other_high_at = getelementptr i64, ptr %highs, i64 %j
  %other_high = load i64, ptr %other_high_at
  %below = icmp ult i64 %out_low, %other_high
  %above = icmp ult i64 %other_low, %out_high
  %meet = and i1 %below, %above
  br i1 %meet, label %slow, label %clear
clear:
  %j1 = add i64 %j, 1
  br label %apart
call:
  %own = phi ptr [%fresh, %place_fresh], [null, %apart]
  %result = call ptr @PyObject_Vectorcall(ptr %run, ptr %full, i64 %total, ptr null)
  %owned = icmp ne ptr %own, null
  br i1 %owned, label %disown, label %called
disown:
  call void @Py_DecRef(ptr %own)
  br label %called
called:
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %error, label %done
done:
  %calls_at = getelementptr i64, ptr %words, i64 2
  %calls = load ptr, ptr %calls_at
  %served = load i64, ptr %calls
  %served1 = add i64 %served, 1
  store i64 %served1, ptr %calls
  call void @Py_DecRef(ptr %state)
  ret ptr %result
error:
  %kinds_at = getelementptr ptr, ptr %items, i64 5
  %kinds = load ptr, ptr %kinds_at
  %mends = call i32 @PyErr_ExceptionMatches(ptr %kinds)
  %mend = icmp ne i32 %mends, 0
  br i1 %mend, label %forgive, label %raise
forgive:
  call void @PyErr_Clear()
  br label %slow
raise:
  call void @Py_DecRef(ptr %state)
  ret ptr null
slow:
  call void @Py_DecRef(ptr %state)
  %slow_at = getelementptr ptr, ptr %list, i64 1
  %slow_call = load ptr, ptr %slow_at
  %it = call ptr @PyObject_Vectorcall(ptr %slow_call, ptr %args, i64 %count, ptr %names)
  ret ptr %it
}
"""
