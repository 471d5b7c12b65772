"""Wrappers in LLVM IR read arrays and numbers; loading refuses what is damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise.device.native import (
    ENTRY,
    Parameter,
    from_ir,
    load,
    sealed,
    unsealed,
    wrapper_ir,
)
from tilewise.errors import EngineError

KERNEL = """
define i32 @kernel(ptr %a, ptr %b, ptr %out, {types}) {{
  {body}
  store {last} %value, ptr %out
  ret i32 0
}}
"""


def read(parameter: Parameter, *args: Any, dtype: str = "int64") -> Any:
    """Return what a wrapper reads for one parameter, stored into an array."""
    out = np.zeros(1, dtype)
    kind, count = parameter.type, len(args)
    if kind == "ptr":
        body, last = "%value = load i64, ptr %v", "i64"
    else:
        body, last = f"%value = freeze {kind} %v", kind
    parameters = [Parameter("data", count), parameter]
    text = wrapper_ir("kernel", parameters, count, [], 1 << 62)
    text = text.replace(f'declare i32 @"kernel"(ptr, ptr, ptr, {kind})', "")
    kernel = KERNEL.format(types=f"{kind} %v", body=body, last=last)
    assert from_ir(kernel + text, ENTRY)(*args, out) is out
    return out[0]


MATRIX = np.arange(12, dtype=np.int64).reshape(3, 4)[::2, 1:]


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (Parameter("data", 0), 1),
        (Parameter("dim", 0, 0), 2),
        (Parameter("dim", 0, 1), 3),
        (Parameter("stride", 0, 0, 3), 8),
        (Parameter("stride", 0, 1, 3), 1),
        (Parameter("const", value=5), 5),
    ],
    ids=["data", "rows", "columns", "row stride", "column stride", "constant"],
)
def test_an_arrays_fields_are_read(parameter: Parameter, expected: int) -> None:
    """Data, dimensions, and strides in elements; none where there is none."""
    assert expected == read(parameter, MATRIX)


def test_a_negative_stride_stays_negative() -> None:
    """A reversed axis steps back."""
    assert -4 == read(Parameter("stride", 0, 0, 3), np.zeros((3, 4))[::-1])


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int8(2)])
def test_numbers_become_doubles(number: Any) -> None:
    """Python's and NumPy's numbers convert as `float()` does."""
    assert 2.0 == read(Parameter("double", 0), number, dtype="float64")


def test_a_double_is_rounded_to_a_float() -> None:
    """A weak Python float takes the dtype that it meets."""
    assert np.float32(0.1) == read(Parameter("float", 0), 0.1, dtype="float32")


@pytest.mark.parametrize(("kind", "dtype"), [("int", "int64"), ("int32", "int32")])
def test_whole_numbers_keep_their_sign(kind: str, dtype: str) -> None:
    """Python's and NumPy's integers alike."""
    assert (-7, -7) == (
        read(Parameter(kind, 0), -7, dtype=dtype),
        read(Parameter(kind, 0), np.int32(-7), dtype=dtype),
    )


def test_a_conversion_that_fails_raises() -> None:
    """The kernel is not called, and Python's own error arrives."""
    with pytest.raises(OverflowError, match=r"too (big|large)"):
        read(Parameter("int", 0), 1 << 70)


def test_the_callers_result_is_counted() -> None:
    """Each call returns `out` with a reference of its own."""
    import sys

    out = np.zeros(1, np.int64)
    parameters = [Parameter("data", 0), Parameter("const", value=3)]
    text = wrapper_ir("kernel", parameters, 0, [], 0)
    text = text.replace('declare i32 @"kernel"(ptr, ptr, ptr, i64)', "")
    kernel = KERNEL.format(types="i64 %v", body="%value = add i64 %v, 0", last="i64")
    call = from_ir(kernel + text, ENTRY)
    before = sys.getrefcount(out)
    for _ in range(1000):
        call(out)
    assert (3, before) == (out[0], sys.getrefcount(out))


def test_a_seal_gives_back_object_and_symbols() -> None:
    """What was sealed comes out as it was."""
    assert (b"code", ["log", "sin"]) == unsealed(sealed(b"code", ["log", "sin"]))


@pytest.mark.parametrize(
    "damage",
    [
        lambda code: code[:-1],
        lambda code: code[:20],
        lambda code: b"",
        lambda code: code[4:],
        lambda code: code[:-3] + b"\1" + code[-2:],
        lambda code: code + b"\0",
    ],
    ids=["cut", "cut short", "empty", "headless", "flipped", "longer"],
)
def test_damaged_code_is_refused_before_llvm_sees_it(damage: Any) -> None:
    """LLVM would end the process."""
    with pytest.raises(EngineError, match="native code"):
        load(damage(sealed(b"\x7fELF" + bytes(100), ["log"])))


def test_a_missing_symbol_is_named() -> None:
    """Code that needs what this process does not have is unusable, not fatal."""
    with pytest.raises(EngineError, match="needs tilewise_nowhere, which is not here"):
        load(sealed(b"\x7fELF" + bytes(100), ["tilewise_nowhere"]))
