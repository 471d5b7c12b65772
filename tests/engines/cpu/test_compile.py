"""Compiled loops are vectors, and take nothing from outside but what is known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.problems import gelu, relu, silu
from tests.engines.cpu.test_engine import inputs, problem_of
from tilewise.device.native import SYMBOLS, unsealed
from tilewise.device.target import cpu_target
from tilewise.engines.cpu.compile import machine_of, object_code, optimised, unoptimised
from tilewise.engines.cpu.micro import block_of
from tilewise.engines.cpu.source import Kernel, kernel_for


def kernel(function: Any, dtype: str, method: str = "blas_serial") -> Kernel:
    """Write the kernel of a function."""
    problem = problem_of(function, inputs(8, 8, 8, dtype))
    return kernel_for(problem, method, block_of(cpu_target(), dtype))


def ir_of(made: Kernel) -> str:
    """Return a kernel's optimised LLVM IR."""
    target = cpu_target()
    machine = machine_of(target.triple, target.arch, target.features)
    return str(optimised(made, machine)[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [gelu, silu])
def test_an_epilogue_is_a_loop_of_vectors(function: Any, dtype: str) -> None:
    """LLVM multiplies whole vectors; no exponential is a call."""
    ir = ir_of(kernel(function, dtype))
    element = {"float32": "float", "float64": "double"}[dtype]
    assert re.search(rf"fmul contract <\d+ x {element}>", ir)
    calls = re.findall(r"call [^@]*@([\w.]+)", ir)
    assert [] == [name for name in calls if "exp" in name or "tanh" in name]


@pytest.mark.parametrize("method", ["small", "packed"])
def test_a_blocks_epilogue_is_vectors_without_comparing_addresses(method: str) -> None:
    """The loop over a block's columns is not unrolled into scalars."""
    ir = ir_of(kernel(relu, "float32", method))
    assert re.search(r"fadd contract <\d+ x float>", ir)
    assert "vector.memcheck" not in ir


@pytest.mark.parametrize("shape", [(8, 8), (8,)])
def test_a_matrix_of_the_epilogue_is_asked_for(shape: tuple[int, ...]) -> None:
    """Only what has rows far apart."""
    args = (*inputs(8, 8, 8)[:2], np.ones(shape, "f4"))
    problem = problem_of(lambda x, w, b: x @ w + b, args)
    made = kernel_for(problem, "packed", block_of(cpu_target(), "float32"))
    calls = re.findall(r" call [^\n]*tilewise_prefetch", ir_of(made))
    assert (len(shape) == 2) == bool(calls)


def test_numba_goes_on_optimising_for_others() -> None:
    """Its level stands again where a kernel was compiled, also one that fails."""
    from numba.core import config

    before, seen = config.OPT, []

    def fail() -> None:
        with unoptimised():
            seen.append(config.OPT == 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ([True], before) == (seen, config.OPT)


def test_code_names_what_it_takes_from_outside() -> None:
    """Python's functions, and those of the C library for what has no vector form."""
    made = kernel(lambda x, w, b: np.sin(x @ w) + b, "float64", "small")
    target = cpu_target()
    code = object_code(made, target.triple, target.arch, target.features)
    _, symbols = unsealed(code)
    assert {"sin"} == set(symbols) - set(SYMBOLS)


def test_equal_kernels_are_compiled_once() -> None:
    """Variants that differ in threads alone share the bytes."""
    target = cpu_target()
    place = (target.triple, target.arch, target.features)
    first, second = (object_code(kernel(silu, "float32"), *place) for _ in range(2))
    assert first is second
