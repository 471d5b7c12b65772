"""Generated kernels are plain Python whose constants and indices have types."""

from __future__ import annotations

import ast
import math

import pytest

from tests.engines.gpu.cases import EPILOGUES, LAYOUTS, Case, function_of, problem_at
from tilewise.engines.numba_cuda.source import kernel_source, number
from tilewise.model.variant import Variant

SHARED = Variant("numba_cuda", "shared", (("tile", 16), ("rows", 2)))


def source(epilogue="bias", layout="C C", variant=SHARED, dtype="float32"):
    """Return a kernel's source."""
    case = Case(str(variant), epilogue, layout, "m=n", "exact", dtype, "lazy")
    problem = problem_at(function_of(epilogue, layout == "T T"), case)
    return kernel_source(problem, variant)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_it_is_python(epilogue, layout):
    """Every epilogue and layout parses as one function."""
    (function,) = ast.parse(source(epilogue, layout)).body

    assert "kernel" == function.name


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_constants_have_types(epilogue):
    """No bare float: each one is the argument of float32(...) or float64(...)."""
    tree = ast.parse(source(epilogue))
    typed = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "").startswith("float")
    ]
    inside = {id(part) for arg in typed for part in ast.walk(arg)}
    floats = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and id(node) not in inside
    ]

    assert [] == floats


def test_one_allocation_a_line():
    """Shared arrays stand on lines of their own, for numba's simulator."""
    lines = [line for line in source().splitlines() if "shared.array" in line]

    assert [1, 1] == [line.count("shared.array") for line in lines]


def test_loads_follow_the_unit_stride():
    """Neighbouring threads load neighbouring elements, of rows or of columns."""
    assert "xs[ty + 0, tx]" in source(layout="C C")
    assert "xs[tx + 0, ty]" in source(layout="F F")


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", 0.1, "float32(0.1)"),
        ("float64", math.inf, "float64(inf)"),
        ("float32", -math.inf, "float32(-inf)"),
        ("float32", math.nan, "float32(nan)"),
        ("int64", 3, "int64(3)"),
        ("bool", 1, "True"),
    ],
)
def test_a_constant(dtype, value, expected):
    """A constant is written in its type with every bit."""
    assert expected == number(dtype, value)
