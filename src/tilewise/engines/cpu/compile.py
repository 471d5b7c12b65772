"""Kernel source to object bytes; numba is imported here, inside functions, alone."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tilewise.device.native import sealed, undefined, wrapper_ir
from tilewise.engines.cpu import angles, exponentials, logarithms, mathlib
from tilewise.engines.cpu.micro import PARAMETERS, POINTERS, Block, micro_ir
from tilewise.engines.cpu.source import Kernel

__all__ = ["object_code", "versions"]


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of what compiles."""
    import llvmlite
    import numba

    return (("llvmlite", llvmlite.__version__), ("numba", numba.__version__))


ARITHMETIC: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
"""NumPy's division, and fused multiply-adds."""
OPTIONS = ARITHMETIC | {"forceinline": True}
"""The same, and all in one loop that LLVM vectorises."""


@lru_cache(maxsize=64)
def object_code(kernel: Kernel, triple: str, name: str, features: str) -> bytes:
    """
    Compile a kernel with its wrapper into one sealed object.

    Variants that differ in threads alone share the code. Raises what numba or LLVM
    raises for source that does not compile.
    """
    import llvmlite.binding as llvm

    machine = machine_of(triple, name, features)
    entry, module = optimised(kernel, machine)
    text = wrapper_ir(entry, kernel.values, kernel.result, kernel.work, kernel.release)
    module.link_in(llvm.parse_assembly(text))
    if kernel.block is not None:
        module.link_in(llvm.parse_assembly(micro_ir(kernel.block)))
    module.verify()
    code = bytes(machine.emit_object(module))
    return sealed(code, undefined(code))


def machine_of(triple: str, name: str, features: str) -> Any:
    """Return what emits code for a target, to be loaded anywhere in memory."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=3, reloc="static", codemodel="large"
    )


def optimised(kernel: Kernel, machine: Any) -> tuple[str, Any]:
    """
    Return a kernel's symbol and its LLVM module, inlined and vectorised for a target.

    Not by numba, which unrolls the short loops over a block's columns before LLVM
    could vectorise them.
    """
    import llvmlite.binding as llvm

    entry, ir = numba_ir(kernel)
    module = llvm.parse_assembly(unaliased(ir, entry))
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return entry, module


def unaliased(ir: str, entry: str) -> str:
    """
    Say of a kernel's pointers that none points to where the kernel writes by another.

    `out` overlaps no input (`api/checks.py`), and numba has no word for it. Without it
    each row of each block starts with a comparison of addresses.
    """
    lines = ir.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("define") and f"@{entry}(" in line.replace('"', ""):
            lines[at] = re.sub(r"\bptr (?!noalias)", "ptr noalias ", line)
    return "\n".join(lines)


def numba_ir(kernel: Kernel) -> tuple[str, str]:
    """Return a kernel's symbol and its LLVM IR, as numba writes it."""
    from numba import njit, types

    signature = types.void(*(numba_type(types, kind) for kind in kernel.types))
    space = dict(namespace())
    if kernel.block is not None:
        space |= micro_kernels(kernel.block)
    exec(compile(kernel.source, "<tilewise kernel>", "exec"), space)
    options = ARITHMETIC | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with unoptimised():
        made = njit(signature, **options)(space["kernel"])
    (result,) = made.overloads.values()
    return str(result.fndesc.llvm_func_name), str(result.library.get_llvm_str())


@contextmanager
def unoptimised() -> Iterator[None]:
    """
    Let numba leave its code as it is, for `optimised`.

    Its lock is held: no other thread compiles meanwhile.
    """
    from numba.core import config
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        _ = cpu_target.target_context  # Made once, with the level that is set then.
        level = config.OPT
        config.OPT = type(level)(0)
        try:
            yield
        finally:
            config.OPT = level


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
    for name in PARAMETERS:
        llvm.add_symbol(f"tilewise_{name}", anything)
    pointer = types.CPointer(getattr(types, block.dtype))
    made = {}
    for name, names in PARAMETERS.items():
        kinds = [pointer if n in POINTERS else types.int64 for n in names]
        made[name] = types.ExternalFunction(f"tilewise_{name}", types.void(*kinds))
    return made


def numba_type(types: Any, kind: str) -> Any:
    """
    Return the numba type of a parameter; `*` stands before a pointer's.

    An array of bools is one of bytes: numba holds a value of bool in one bit.
    """
    if kind.startswith("*"):
        return types.CPointer(numba_type(types, kind[1:].replace("bool", "uint8")))
    return types.boolean if kind == "bool" else getattr(types, kind)


@cache
def namespace() -> dict[str, Any]:
    """Return the names that kernel source reads, compiled functions among them."""
    import types

    from numba import njit

    space: dict[str, Any] = {"__builtins__": builtins, "inf": math.inf, "nan": math.nan}
    space |= {"f4": np.float32, "f8": np.float64, "b1": np.bool_, "u1": np.uint8}
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
