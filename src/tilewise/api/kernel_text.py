"""
Turn what a user calls a kernel into PTX: numba.cuda functions, CUDA C++, PTX.

Nothing here needs a GPU or a driver. numba and NVRTC are imported only when a kernel
of theirs comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tilewise.device.emulator.syntax import Variable
from tilewise.device.nvrtc import Session
from tilewise.errors import ArgumentError, EngineError

__all__ = ["KernelText", "kernel_text"]

Pack: TypeAlias = Callable[
    [Sequence[Any], Sequence[Any], Sequence[Variable]], list[Any]
]


@dataclass(frozen=True, slots=True)
class KernelText:
    """
    A kernel's PTX and how its arguments become parameters.

    `pack` takes the user's arguments, the same with buffers for arrays, and the
    parameters, and returns what a launch takes. `label` is the name that a reader
    knows the kernel by, where the entry's is mangled.
    """

    ptx: str
    entry: str | None
    pack: Pack
    label: str | None = None


def kernel_text(
    kernel: Any, args: Sequence[Any], arch: str, entry: str | None
) -> KernelText:
    """Return a kernel as PTX; ArgumentError for what is no kernel."""
    if re.fullmatch(r"sm_\d+[af]?", arch) is None:
        raise ArgumentError(f"arch={arch!r} is not like 'sm_90'")
    if isinstance(kernel, Path) or (isinstance(kernel, str) and _is_path(kernel)):
        return _from_file(Path(kernel), arch, entry)
    if isinstance(kernel, bytes):
        kernel = kernel.decode()
    if isinstance(kernel, str):
        return _from_text(kernel, "kernel.cu", arch, entry)
    function = getattr(kernel, "py_func", kernel)
    if callable(function):
        return _from_numba(function, args, arch)
    raise ArgumentError(
        f"{type(kernel).__name__} is no kernel: give a numba.cuda "
        "function, CUDA C++ or PTX text, or the path of a file"
    )


def _is_path(text: str) -> bool:
    return "\n" not in text and text.endswith((".ptx", ".cu"))


def _from_file(path: Path, arch: str, entry: str | None) -> KernelText:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} can't be read: {error}") from error
    # By its path NVRTC finds the headers beside it, and reports name it.
    return _from_text(text, str(path), arch, entry)


def _from_text(text: str, name: str, arch: str, entry: str | None) -> KernelText:
    if ".entry" in text and ".version" in text:
        return KernelText(text, entry, _pack_plain)
    if "__global__" not in text:
        raise ArgumentError("the text has neither a PTX .entry nor a __global__")
    return KernelText(cuda_to_ptx(text, name, arch), entry, _pack_plain)


def cuda_to_ptx(source: str, name: str, arch: str) -> str:
    """
    Compile CUDA C++ to PTX with line information, through NVRTC alone.

    Raises EngineError with the compiler's log.
    """
    flags = ["-lineinfo", "-std=c++17", *_include_flags()]
    with Session(source, name, ()) as session:
        session.compile(arch.replace("sm_", "compute_"), flags)
        return session.result("PTX").decode()


def _include_flags() -> list[str]:
    """Return where cuda_fp16.h and its kin lie, if they are installed."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return []
    found = find_nvidia_header_directory("cudart")
    return [f"-I{found}"] if found else []


def _pack_plain(
    args: Sequence[Any], values: Sequence[Any], params: Sequence[Variable]
) -> list[Any]:
    """Pass arrays as pointers and numbers in the size of their parameter."""
    if len(values) != len(params):
        raise ArgumentError(
            f"the kernel takes {len(params)} arguments, {len(values)} were given"
        )
    packed = []
    for at, (given, value, param) in enumerate(zip(args, values, params, strict=True)):
        if isinstance(given, np.ndarray) and not given.flags.c_contiguous:
            raise ArgumentError(f"argument {at} is an array that is not C-contiguous")
        packed.append(_sized(value, param, at))
    return packed


def _sized(value: Any, param: Variable, at: int) -> Any:
    """Return a Python number in the type of its parameter."""
    if not isinstance(value, (bool, int, float)) or isinstance(value, np.generic):
        return value
    wanted, size = param.type[0], param.nbytes
    if wanted == "b":  # bits: the number decides
        wanted = "f" if isinstance(value, float) else "s"
    if wanted != "f" and isinstance(value, float):
        raise ArgumentError(f"argument {at} is {value}, the parameter an integer")
    kind = {"f": "f", "s": "i", "u": "u" if value >= 0 else "i"}[wanted]
    if size not in ((2, 4, 8) if kind == "f" else (1, 2, 4, 8)):
        raise ArgumentError(f"argument {at} is a number, the parameter {size} bytes")
    try:
        return np.dtype(f"{kind}{size}").type(value)
    except OverflowError as error:
        raise ArgumentError(
            f"argument {at}: {value} has no room in {size} bytes"
        ) from error


def _from_numba(function: Any, args: Sequence[Any], arch: str) -> KernelText:
    try:
        from numba import cuda, typeof, types
    except ImportError as error:
        raise EngineError("Python kernels need the package numba-cuda") from error
    if not hasattr(cuda, "compile") or cuda.compile is None:
        raise EngineError("numba's CUDA simulator is on: unset NUMBA_ENABLE_CUDASIM")
    signature = types.void(*(typeof(_in_c_order(arg)) for arg in args))
    name = getattr(function, "__name__", str(function))
    digits = arch.removeprefix("sm_").rstrip("af")
    try:
        ptx, _ = cuda.compile(
            function,
            signature,
            cc=(int(digits[:-1]), int(digits[-1])),
            device=False,
            abi="numba",
            lineinfo=True,
        )
    except Exception as error:
        raise EngineError(f"numba can't compile {name}: {error}") from error
    found = re.search(r"\.entry\s+([\w$]+)", ptx)
    return KernelText(ptx, found[1] if found else None, _pack_numba, name)


def _in_c_order(value: Any) -> Any:
    """Return an array as it lies on the device."""
    return np.asarray(value, order="C") if isinstance(value, np.ndarray) else value


def _pack_numba(
    args: Sequence[Any], values: Sequence[Any], params: Sequence[Variable]
) -> list[Any]:
    """
    Pass arrays as numba's kernel ABI has them.

    An array is (meminfo, parent, nitems, itemsize, data, shape..., strides...), all
    of 8 bytes; source: numba_cuda's dispatcher, `_Kernel._prepare_args`.
    """
    packed: list[Any] = []
    for given, value in zip(args, values, strict=True):
        if not isinstance(given, np.ndarray):
            packed.append(_numba_scalar(given))
            continue
        layout = _in_c_order(given)
        packed += [np.int64(0), np.int64(0)]
        packed += [np.int64(given.size), np.int64(given.itemsize), value]
        packed += [np.int64(n) for n in given.shape]
        packed += [np.int64(n) for n in layout.strides]
    return packed


def _numba_scalar(value: Any) -> Any:
    """Return a number as numba types it: int64, float64 and one byte for bool."""
    kinds: dict[type, Any] = {bool: np.int8, int: np.int64, float: np.float64}
    make = kinds.get(type(value))
    return value if make is None else make(value)
