"""A kernel's parameters stand in one order, for its source and for its launch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engines.gpu.cases import Case, function_of, problem_at
from tilewise.device.views import DeviceView
from tilewise.engines.gpu.params import Face, Param, face, fixed, indexed, parameters
from tilewise.model.problem import Form

FLOAT = np.dtype(np.float32)


def problem(epilogue="bias"):
    """Return the problem of a case."""
    case = Case("cuda_cpp/naive", epilogue, "C C", "m=n", "exact", "float32", "lazy")
    return problem_at(function_of(epilogue, False), case)


def test_the_parameters():
    """Pointers, sizes, strides by row and column, scalars."""
    found = parameters(problem())

    arrays = ["x", "w", "o0_", "o1_", "o2_", "out"]
    expected = [Param(name, "float32", pointer=True) for name in arrays]
    expected += [Param(name, "int64") for name in "mnk"]
    expected += [Param(name + axis, "int64") for name in arrays for axis in "rc"]
    assert (*expected, Param("s0", "float64")) == found


def test_a_launch_fills_them_in_order():
    """Sizes and strides in their places, all of 8 bytes, between arrays and scalar."""
    faces = [Face(256 * i, (3, 5), (5, 1)) for i in range(1, 7)]
    between = fixed(faces, 7)

    assert [3, 5, 7, *[5, 1] * 6] == between
    assert [8] * (len(parameters(problem())) - 7) == [one.itemsize for one in between]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (Form("f", "mn", "C"), "a[i * ar + j]"),
        (Form("f", "mn", "F"), "a[i + j * ac]"),
        (Form("f", "mk", "S"), "a[i * ar + j * ac]"),
        (Form("f", "kn", "C"), "a[i * ar + j]"),
        (Form("f", "n", "C"), "a[j]"),
        (Form("f", "n", "S"), "a[j * ac]"),
        (Form("f", "m", "C"), "a[i * ar]"),
        (Form("f", "1", "C"), "a[0]"),
    ],
)
def test_an_element(form, expected):
    """Unit strides and axes that an operand does not vary along vanish."""
    assert expected == indexed("a", form, "i", "j")


@pytest.mark.parametrize(
    ("shape", "strides", "sizes", "steps"),
    [
        ((3, 5), (20, 4), (3, 5), (5, 1)),
        ((5,), (4,), (1, 5), (0, 1)),
        ((), (), (1, 1), (0, 0)),
        ((3, 5), (-40, 8), (3, 5), (-10, 2)),
    ],
)
def test_a_face(shape, strides, sizes, steps):
    """Views of fewer axes get leading ones, strides count elements."""
    assert Face(512, sizes, steps) == face(DeviceView(512, shape, strides, FLOAT))


@pytest.mark.parametrize(
    ("address", "sizes", "strides", "expected"),
    [
        (512, (3, 8), (8, 1), True),
        (512, (3, 7), (8, 1), False),
        (512, (3, 8), (9, 1), False),
        (516, (3, 8), (8, 1), False),
    ],
)
def test_units(address, sizes, strides, expected):
    """Lines are whole units where address, size and stride are multiples."""
    assert expected is Face(address, sizes, strides).in_units(1, 4)
