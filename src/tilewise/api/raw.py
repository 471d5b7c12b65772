"""Users' own CUDA C++ kernels: `tilewise.RawKernel`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.api.raw_build import RawSource, artifact_of
from tilewise.device.arch import device_target
from tilewise.device.chosen import chosen_device
from tilewise.device.emulator.parser import parse
from tilewise.device.emulator.syntax import Variable
from tilewise.device.forking import renewed_in_children
from tilewise.device.seam import (
    Device,
    LoadedKernel,
    LoadedModule,
    Stream,
    launch_shape,
)
from tilewise.device.views import (
    StreamHandle,
    caller_stream,
    device_of,
    device_view,
    is_device_array,
)
from tilewise.errors import ArgumentError, EngineError
from tilewise.model.variant import Artifact

__all__ = ["RawKernel"]

KINDS = {"f": "f", "s": "iub", "u": "iub", "b": "iubf"}
"""NumPy's kinds of numbers that a PTX parameter's type takes."""


class RawKernel:
    """
    A kernel from CUDA C++ source, compiled at first use and kept in the store.

    `name` is the kernel's, or a name expression such as "scale<float>" for a template;
    `options` are NVRTC's (-D, -I, --use_fast_math, ...), of which the headers found
    count by content. `arch` is that of the device unless given. It is launched as
    `kernel[grid, block, shared_bytes, stream](*args)` on device arrays of any library
    and on numbers; the number and sizes of the arguments are checked before.
    """

    def __init__(
        self,
        source: str,
        name: str,
        options: Sequence[str] = (),
        arch: str | None = None,
    ) -> None:
        if isinstance(options, str):
            raise ArgumentError(f"options={options!r}: give a list of options")
        self.source = RawSource(source, name, tuple(options))
        self.arch, self.name = arch, name
        self._loaded: weakref.WeakKeyDictionary[Device, Loaded]
        self._loaded = weakref.WeakKeyDictionary()
        self._made: dict[str, tuple[Artifact, str]] = {}
        self.renew_locks()
        renewed_in_children(self)

    def renew_locks(self) -> None:
        """Replace the lock under which the kernel is loaded."""
        self._lock = threading.Lock()

    def compile(self, arch: str | None = None) -> Artifact:
        """
        Return the artifact for an arch; no device is needed.

        Raises EngineError with NVRTC's log and the user's line, ArgumentError for a
        name that the source does not have.
        """
        chosen = arch or self.arch or device_target(chosen_device()).arch
        if not chosen:
            raise EngineError(
                f"there is no CUDA device to compile {self.name!r} for: give arch="
            )
        if chosen not in self._made:
            self._made[chosen] = artifact_of(self.source, chosen)
        return self._made[chosen][0]

    @property
    def origin(self) -> str:
        """Where the last artifact came from: "store", "build" or "" for none yet."""
        return ["", *(where for _, where in self._made.values())][-1]

    def __getitem__(self, launch: Any) -> Launcher:
        """Choose grid, block, dynamic shared bytes and stream."""
        parts = launch if isinstance(launch, tuple) else (launch,)
        if not 2 <= len(parts) <= 4:
            raise ArgumentError(
                f"{self.name}[...] takes grid, block, shared_bytes and stream; "
                f"{len(parts)} were given"
            )
        return Launcher(self, *parts)

    def loaded_on(self, device: Device) -> Loaded:
        """Return the kernel on a device, loading it there at first."""
        with self._lock:
            if device not in self._loaded:
                arch = self.arch or device_target(device).arch
                artifact = self.compile(arch)
                cubin = device.properties.image == "cubin"
                module = device.load(artifact.code if cubin else artifact.text)
                self._loaded[device] = Loaded(module, artifact)
            return self._loaded[device]


class Loaded:
    """A kernel on one device with its parameters, read from its PTX."""

    def __init__(self, module: LoadedModule, artifact: Artifact) -> None:
        self.module = module
        self.kernel: LoadedKernel = module.kernel(artifact.entry)
        parsed = parse(artifact.text.decode())
        self.params: Sequence[Variable] = parsed.functions[artifact.entry].params


class Launcher:
    """One launch of a raw kernel, waiting for its arguments."""

    def __init__(
        self,
        kernel: RawKernel,
        grid: Any,
        block: Any,
        shared_bytes: int = 0,
        stream: Any = None,
    ) -> None:
        self.kernel, self.stream = kernel, stream
        self.shape = launch_shape(grid, block, shared_bytes)

    def __call__(self, *args: Any) -> None:
        """
        Launch on the given arguments, on the stream of the first array's library.

        Raises ArgumentError, before anything runs, for what does not fit.
        """
        arrays = [arg for arg in args if is_device_array(arg)]
        device = device_of(arrays[0]) if arrays else here()
        for at, arg in enumerate(args):
            if isinstance(arg, np.ndarray):
                raise ArgumentError(
                    f"argument {at} of {self.kernel.name} is a host array: copy it to "
                    "the device first"
                )
        loaded = self.kernel.loaded_on(device)
        packed = packed_arguments(self.kernel.name, args, loaded.params)
        stream = stream_of(self.stream)
        if stream is None and arrays:
            stream = caller_stream(arrays[0])
        device.launch(loaded.kernel, self.shape, packed, stream)


def here() -> Device:
    """Return the chosen device; raises EngineError where there is none."""
    device = chosen_device()
    if device is None:
        raise EngineError(
            "there is no CUDA device here: tilewise.emulate runs a kernel without one"
        )
    return device


def stream_of(stream: Any) -> Stream | None:
    """Return a stream given as a number or as any library's object."""
    if stream is None:
        return None
    for word in ("handle", "ptr", "cuda_stream"):
        number = getattr(stream, word, None)
        if number is not None:
            return StreamHandle(int(number))
    if isinstance(stream, int):
        return StreamHandle(stream)
    raise ArgumentError(f"a {type(stream).__name__} is no stream")


def packed_arguments(
    name: str, args: Sequence[Any], params: Sequence[Variable]
) -> list[Any]:
    """Return the arguments in the sizes of their parameters."""
    if len(args) != len(params):
        raise ArgumentError(
            f"{name} takes {len(params)} arguments, {len(args)} were given"
        )
    return [
        packed(name, at, arg, param)
        for at, (arg, param) in enumerate(zip(args, params, strict=True))
    ]


def packed(name: str, at: int, arg: Any, param: Variable) -> Any:
    """Return one argument: an array's address, or a number of the right size."""
    where = f"argument {at} of {name}"
    kind, size = param.type[0], param.nbytes
    if is_device_array(arg):
        if size != 8 or kind == "f":
            raise ArgumentError(f"{where} is an array, the parameter a {param.type}")
        return np.uint64(device_view(arg).address)
    if isinstance(arg, (np.generic, bytes)):
        return sized(where, arg, param)
    if not isinstance(arg, (bool, int, float)):
        raise ArgumentError(f"{where} is a {type(arg).__name__}: give a device array")
    wanted = "f" if kind == "f" or isinstance(arg, float) else "i"
    if wanted == "f" and kind in "su":
        raise ArgumentError(f"{where} is {arg}, the parameter an integer")
    if wanted == "i" and kind == "u" and arg >= 0:
        wanted = "u"
    try:
        return np.dtype(f"{wanted}{size}").type(arg)
    except (TypeError, OverflowError) as error:
        raise ArgumentError(f"{where}: {arg} does not fit {size} bytes") from error


def sized(where: str, value: np.generic | bytes, param: Variable) -> Any:
    """Return a NumPy scalar or bytes that have their parameter's size and kind."""
    have = len(value) if isinstance(value, bytes) else value.dtype.itemsize
    if have != param.nbytes:
        raise ArgumentError(f"{where} has {have} bytes, the parameter {param.nbytes}")
    if isinstance(value, np.generic):
        kinds = KINDS.get(param.type[0], "iubf")
        if value.dtype.kind not in kinds and value.dtype.kind != "V":
            raise ArgumentError(
                f"{where} is a {value.dtype}, the parameter a {param.type}"
            )
    return value
