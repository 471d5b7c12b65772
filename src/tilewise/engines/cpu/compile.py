"""Kernel source to object bytes; numba is imported here, inside functions, alone."""

from __future__ import annotations

import builtins
import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tilewise.device.native import sealed, undefined, wrapper_ir
from tilewise.engines.cpu import angles, exponentials, logarithms, mathlib
from tilewise.engines.cpu.micro import ARGUMENTS, COPY, POINTERS, Block, micro_ir
from tilewise.engines.cpu.source import Kernel

__all__ = ["object_code", "versions"]


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of what compiles."""
    import llvmlite
    import numba

    return (("llvmlite", llvmlite.__version__), ("numba", numba.__version__))


OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}
"""NumPy's division, fused multiply-adds, and all in one loop that LLVM vectorises."""
MICRO = ("wide", "half", "narrow", "copy")


@lru_cache(maxsize=64)
def object_code(kernel: Kernel, triple: str, name: str, features: str) -> bytes:
    """
    Compile a kernel with its wrapper into one sealed object.

    Variants that differ in threads alone share the code. Raises what numba or LLVM
    raises for source that does not compile.
    """
    import llvmlite.binding as llvm

    entry, ir = numba_ir(kernel)
    module = llvm.parse_assembly(ir)
    text = wrapper_ir(entry, kernel.values, kernel.result, kernel.work, kernel.release)
    module.link_in(llvm.parse_assembly(text))
    if kernel.block is not None:
        module.link_in(llvm.parse_assembly(micro_ir(kernel.block)))
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=3, reloc="static", codemodel="large"
    )
    code = bytes(machine.emit_object(module))
    return sealed(code, undefined(code))


def numba_ir(kernel: Kernel) -> tuple[str, str]:
    """Return a kernel's symbol and its optimised LLVM IR, as numba makes it."""
    from numba import njit, types

    signature = types.void(*(numba_type(types, kind) for kind in kernel.types))
    space = dict(namespace())
    if kernel.block is not None:
        space |= micro_kernels(kernel.block)
    exec(compile(kernel.source, "<tilewise kernel>", "exec"), space)
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = njit(signature, error_model="numpy", fastmath={"contract"}, **options)(
        space["kernel"]
    )
    (result,) = made.overloads.values()
    return str(result.fndesc.llvm_func_name), str(result.library.get_llvm_str())


def micro_kernels(block: Block) -> dict[str, Any]:
    """
    Return the micro-kernels as functions that numba calls by symbol.

    numba loads what it compiles, though nobody calls it there, and LLVM ends the
    process over a symbol that it does not find: it finds one of Python's.
    """
    import ctypes

    import llvmlite.binding as llvm
    from numba import types

    anything = ctypes.cast(ctypes.pythonapi.PyErr_Occurred, ctypes.c_void_p).value
    for name in MICRO:
        llvm.add_symbol(f"tilewise_{name}", anything)
    pointer = types.CPointer(getattr(types, block.dtype))
    made = {}
    for name in MICRO:
        names = COPY if name == "copy" else ARGUMENTS
        kinds = [pointer if n in POINTERS else types.int64 for n in names]
        made[name] = types.ExternalFunction(f"tilewise_{name}", types.void(*kinds))
    return made


def numba_type(types: Any, kind: str) -> Any:
    """Return the numba type of a parameter; `*` stands before a pointer's."""
    if kind.startswith("*"):
        return types.CPointer(numba_type(types, kind[1:]))
    return types.boolean if kind == "bool" else getattr(types, kind)


@cache
def namespace() -> dict[str, Any]:
    """Return the names that kernel source reads, compiled functions among them."""
    import types

    from numba import njit

    space: dict[str, Any] = {"__builtins__": builtins, "inf": math.inf, "nan": math.nan}
    space |= {"f4": np.float32, "f8": np.float64, "b1": np.bool_}
    space |= {"i4": np.int32, "i8": np.int64, "np": np, "math": math}
    for module in (mathlib, angles, exponentials, logarithms):
        for name, function in vars(module).items():
            if isinstance(function, types.FunctionType):
                bound = types.FunctionType(function.__code__, space, name)
                space[name] = njit(bound, **OPTIONS)
    for name in mathlib.BY_WIDTH:
        space[name] = by_width(space[f"{name}_f4"], space[f"{name}_f8"])
    space["hypot"] = by_width2(space["hypot_f4"], space["hypot_f8"])
    return space | mathlib.LIBM


def by_width(narrow: Any, wide: Any) -> Any:
    """Return a function that calls the float32 or the float64 form."""
    from numba import types
    from numba.extending import overload

    # numba compares parameters with their annotations: lambdas have none.
    chosen = lambda x: x  # noqa: E731
    first, second = lambda x: narrow(x), lambda x: wide(x)  # noqa: PLW0108
    choose = overload(chosen, jit_options=OPTIONS)
    choose(lambda x: first if x == types.float32 else second)
    return chosen


def by_width2(narrow: Any, wide: Any) -> Any:
    """Return a function of two numbers of one width; see `by_width`."""
    from numba import types
    from numba.extending import overload

    chosen = lambda x, y: x  # noqa: E731
    first, second = lambda x, y: narrow(x, y), lambda x, y: wide(x, y)  # noqa: PLW0108
    choose = overload(chosen, jit_options=OPTIONS)
    choose(lambda x, y: first if x == types.float32 else second)
    return chosen
