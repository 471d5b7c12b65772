"""
A loaded kernel as a run: arrays in, launch, the caller's own array out.

Device arrays are used in place, on the stream that the caller's library works on.
Host arrays go through pinned memory and come back through it. One artifact is loaded
once for each device that its arguments come from.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.device.chosen import chosen_device
from tilewise.device.seam import (
    Device,
    LaunchShape,
    LoadedKernel,
    LoadedModule,
    Stream,
    launch_shape,
)
from tilewise.device.staging import Staging
from tilewise.device.views import DeviceView, caller_stream, device_of, device_view
from tilewise.engines.base import Run
from tilewise.engines.gpu.params import Face, face, values
from tilewise.engines.render import strong
from tilewise.errors import EngineError
from tilewise.model.problem import Problem, scalar_values, viewed_array
from tilewise.model.variant import Artifact

__all__ = ["Plan", "cuda_run"]


@dataclass(frozen=True, slots=True)
class Plan:
    """
    How a kernel is launched: one block for each tile of `rows` x `columns` results.

    `vector` elements are loaded at once by `entry` where `aligned` says that all
    arrays allow it; `plain` serves any alignment.
    """

    rows: int
    columns: int
    block: tuple[int, int, int]
    entry: str
    plain: str
    shared_bytes: int = 0
    aligned: Callable[[Sequence[Face]], bool] = lambda faces: True

    def shape(self, m: int, n: int) -> LaunchShape:
        """Return the launch for m x n results; blocks count along one axis."""
        blocks = -(-m // self.rows) * -(-n // self.columns)
        return launch_shape(blocks, self.block, self.shared_bytes)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An artifact on one device; the module owns what its kernels use."""

    module: LoadedModule
    kernels: dict[str, LoadedKernel]


class CudaRun:
    """One artifact's run for a problem's forms, on any device and at any sizes."""

    def __init__(self, artifact: Artifact, problem: Problem, plan: Plan) -> None:
        self.artifact, self.problem, self.plan = artifact, problem, plan
        self.roles = (problem.spec.x, problem.spec.w, *problem.spec.operands)
        self.scalar_types = [
            np.dtype(strong(scalar.dtype)).type for scalar in problem.spec.scalars
        ]
        self.loaded: weakref.WeakKeyDictionary[Device, Loaded]
        self.loaded = weakref.WeakKeyDictionary()
        self.lock = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        """Fill and return the last argument."""
        if isinstance(args[-1], np.ndarray):
            return self.staged(args)
        out = args[-1]
        faces = [self.view(args, role) for role in self.roles]
        device = device_of(out)
        self.launch(device, [*faces, device_view(out)], args, caller_stream(out))
        return out

    def view(self, args: Sequence[Any], role: Any) -> DeviceView:
        """Return an argument as the spec reads it."""
        found: DeviceView = viewed_array(role, device_view(args[role.position]))
        return found

    def staged(self, args: Sequence[Any]) -> Any:
        """Copy host arrays in, run, and copy the result out."""
        device, out = here(), args[-1]
        if not out.size:
            return out
        staging, views = Staging(device), []
        for role, form in zip(self.roles, self.problem.forms, strict=True):
            host = viewed_array(role, args[role.position])
            views.append(staging.copied_in(host, "F" if form.layout == "F" else "C"))
        result = staging.empty(out.shape, out.dtype)
        self.launch(device, [*views, result], args, None)
        staging.copy_out(out, result)
        return out

    def launch(
        self,
        device: Device,
        views: Sequence[DeviceView],
        args: Sequence[Any],
        stream: Stream | None,
    ) -> None:
        """Launch over views of all arrays, `out` last; nothing for an empty result."""
        faces = [face(view) for view in views]
        m, n = faces[-1].sizes
        if not m or not n:
            return
        given = scalar_values(self.problem.spec, args)
        scalars = [kind(v) for kind, v in zip(self.scalar_types, given, strict=True)]
        plan = self.plan
        name = plan.entry if plan.aligned(faces) else plan.plain
        kernel = self.kernel(device, name)
        packed = values(faces, faces[0].sizes[1], scalars)
        device.launch(kernel, plan.shape(m, n), packed, stream)

    def kernel(self, device: Device, name: str) -> LoadedKernel:
        """Return an entry on a device, loading the artifact there at first."""
        with self.lock:
            if device not in self.loaded:
                module = device.load(image_for(device, self.artifact))
                self.loaded[device] = Loaded(module, {})
            loaded = self.loaded[device]
            if name not in loaded.kernels:
                loaded.kernels[name] = loaded.module.kernel(name)
            return loaded.kernels[name]


def here() -> Device:
    """Return the device that host arrays go to."""
    device = chosen_device()
    if device is None:
        raise EngineError("there is no CUDA device here")
    return device


def image_for(device: Device, artifact: Artifact) -> bytes:
    """Return the form of an artifact that a device loads."""
    return artifact.code if device.properties.image == "cubin" else artifact.text


def cuda_run(artifact: Artifact, problem: Problem, plan: Plan) -> Run:
    """
    Return an artifact's run; it is loaded where its problem lives now, if anywhere.

    Raises EngineError when the chosen device refuses it.
    """
    run = CudaRun(artifact, problem, plan)
    device = chosen_device()
    if device is None:
        raise EngineError("there is no CUDA device here: the artifact can't be run")
    run.kernel(device, plan.entry)
    return run
