"""The key of a call's forms tells apart what may need different code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise.device.pack import native_pack, pack_python, packer

MATRIX = np.zeros((3, 4), np.float32)
PACKS = pytest.mark.parametrize("pack", [pack_python, native_pack()])
DIFFERENT = {
    "dtype": (MATRIX, MATRIX.astype(np.int32)),
    "byte order": (MATRIX, MATRIX.astype(">f4")),
    "shape": (MATRIX, MATRIX[:2]),
    "strides": (np.zeros((4, 3), np.float32).T, MATRIX),
    "axes": (MATRIX[0], MATRIX[:1]),
    "number types": (1.0, 1),
    "NumPy's numbers": (np.float32(1), 1.0),
    "singletons": (True, None),
    "alignment": (np.zeros(5, np.float32), np.zeros(21, "u1")[1:].view(np.float32)),
}


@PACKS
@pytest.mark.parametrize("what", DIFFERENT)
def test_forms_that_differ_have_different_keys(pack: Any, what: str) -> None:
    """Each property of an argument takes part in the key."""
    first, second = DIFFERENT[what]
    assert pack(first) != pack(second)


@PACKS
def test_values_take_no_part(pack: Any) -> None:
    """Other elements and other numbers of one type share a key."""
    assert pack(MATRIX, 1.0) == pack(MATRIX + 1, 2.5)


@PACKS
@pytest.mark.parametrize(
    "arg",
    [
        "text", [1.0], (1,), np.ma.zeros(2), np.zeros(2, "U3"), np.zeros(2, "M8[s]"),
        np.zeros((1,) * 9), np.array([None]), np.zeros(2, "i4,f8"), np.longdouble(1),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_table_does_not_hold_has_no_key(pack: Any, arg: Any) -> None:
    """Subclasses, sequences and unusual dtypes go the slow way, named by nobody."""
    assert pack(MATRIX, arg) is None


@PACKS
def test_too_many_arguments_have_no_key(pack: Any) -> None:
    """A key has 1,024 bytes at most."""
    assert (pack(*[1.0] * 128) is None, pack(*[1.0] * 129) is None) == (False, True)


def test_both_functions_give_the_same_bytes() -> None:
    """A process without the native one finds what another has put in the table."""
    args = (MATRIX.T, MATRIX[::-1, ::2], np.array(1.0), 2, np.int8(3), False, None)
    assert pack_python(*args) == native_pack()(*args)


def test_the_native_function_is_chosen() -> None:
    """On a build with a GIL the key costs 0.1 microseconds, not 5."""
    assert packer() is not pack_python
