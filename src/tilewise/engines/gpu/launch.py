"""
A loaded kernel as a run: arrays in, launch, the caller's own array out.

Device arrays are used in place, on the stream that the caller's library works on.
Host arrays go through pinned memory and come back through it. One artifact is loaded
once for each device that its arguments come from.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilewise.device.arrays import EmulatedArray
from tilewise.device.chosen import chosen_device
from tilewise.device.forking import renewed_in_children
from tilewise.device.located import device_number, located
from tilewise.device.seam import (
    Device,
    LaunchShape,
    LoadedKernel,
    LoadedModule,
    Stream,
    launch_shape,
)
from tilewise.device.staging import Staging
from tilewise.device.views import (
    DeviceView,
    c_strides,
    caller_stream,
    device_at,
    device_of,
    device_view,
)
from tilewise.engines.base import Run
from tilewise.engines.gpu.first_use import check_first_use, identity
from tilewise.engines.gpu.params import Face, face, fixed
from tilewise.engines.render import strong
from tilewise.errors import EngineError
from tilewise.model.problem import Problem, scalar_values, viewed_array
from tilewise.model.variant import Artifact

__all__ = ["Plan", "cuda_run"]

LAUNCHES = 256
"""Launches that are remembered for an artifact on a device."""


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
class Launch:
    """
    A launch at some shapes, strides and alignments: all but addresses and scalars.

    `kernel` is None for an empty result.
    """

    kernel: LoadedKernel | None
    shape: LaunchShape
    fixed: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """An artifact on one device, with the launches that were prepared there."""

    module: LoadedModule
    launches: dict[Any, Launch]


class CudaRun:
    """
    One artifact's run for a problem's forms, on any device and at any sizes.

    `verified` says on which devices its results were checked. What a call at known
    sizes, strides and alignments costs before the driver stands in the newest record
    of benchmarks/bench_launch.py.
    """

    def __init__(self, artifact: Artifact, problem: Problem, plan: Plan) -> None:
        self.artifact, self.problem, self.plan = artifact, problem, plan
        self.verified = artifact.verified
        self.roles = (problem.spec.x, problem.spec.w, *problem.spec.operands)
        self.positions = [role.position for role in self.roles]
        self.dtypes = [np.dtype(form.dtype) for form in problem.forms]
        self.dtypes.append(np.dtype(problem.spec.dtype))
        self.scalar_types = [
            np.dtype(strong(scalar.dtype)).type for scalar in problem.spec.scalars
        ]
        self.loaded: weakref.WeakKeyDictionary[Device, Loaded]
        self.loaded = weakref.WeakKeyDictionary()
        self.places: dict[tuple[type, int], tuple[Device, Loaded]] = {}
        self.renew_locks()
        renewed_in_children(self)

    def renew_locks(self) -> None:
        """Replace the lock under which an artifact is loaded."""
        self.lock = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        """Fill and return the last argument."""
        out = args[-1]
        if isinstance(out, np.ndarray):
            return self.staged({}, *args)
        arrays = [args[at] for at in self.positions]
        arrays.append(out)
        place = self.places.get((type(out), device_number(out))) or self.place(out)
        self.launch(place, arrays, args, caller_stream(out))
        return out

    def bind(self, args: Sequence[Any]) -> Run:
        """
        Return a run whose constants are on the device already.

        Arrays of a device are there: their owner's copies are passed at each call.
        """
        if self.problem.residency == "device":
            return self
        staging, constants = Staging(here()), self.problem.constants
        kept = {
            place: self.copied_in(staging, args, place)
            for place, at in enumerate(self.positions)
            if at in constants
        }
        return partial(self.staged, kept)

    def staged(self, kept: Mapping[int, DeviceView], *args: Any) -> Any:
        """Copy host arrays in, but those kept there, run, and copy the result out."""
        out = args[-1]
        if not out.size:
            return out
        staging = Staging(here())
        views = [
            kept[place] if place in kept else self.copied_in(staging, args, place)
            for place in range(len(self.roles))
        ]
        result = staging.empty(out.shape, out.dtype)
        self.launch(self.place(result), [*views, result], args, None)
        staging.copy_out(out, result)
        return out

    def copied_in(
        self, staging: Staging, args: Sequence[Any], place: int
    ) -> DeviceView:
        """Copy a role's array to the device, in the order that its view is read in."""
        turned = self.roles[place].view == "T"
        order = "F" if (self.problem.forms[place].layout == "F") != turned else "C"
        return staging.copied_in(args[self.positions[place]], order)

    def place(self, out: Any) -> tuple[Device, Loaded]:
        """Return an array's device with what is loaded there, noted for its library."""
        device = device_of(out)
        found = device, self.loaded.get(device) or self.load(device)
        if not isinstance(out, (EmulatedArray, DeviceView)):  # These are of any device.
            self.places[type(out), device_number(out)] = found
        return found

    def launch(
        self,
        place: tuple[Device, Loaded],
        arrays: Sequence[Any],
        args: Sequence[Any],
        stream: Stream | None,
    ) -> None:
        """Launch over all arrays, `out` last; nothing for an empty result."""
        try:
            if type(arrays[-1]).__module__ == "cupy":  # As in `located`, asked once.
                faces = [(a.data.ptr, a.shape, a.strides, None) for a in arrays]
            else:
                faces = [located(array) for array in arrays]
        except AttributeError:  # It has DLPack alone.
            faces = [located(device_view(array)) for array in arrays]
        key = tuple([(shape, steps, at & 15) for at, shape, steps, _ in faces])
        device, loaded = place
        found = loaded.launches.get(key) or self.prepared(loaded, faces, key)
        if found.kernel is None:
            return
        packed = [np.uint64(one[0]) for one in faces]
        packed += found.fixed
        if self.scalar_types:
            given = scalar_values(self.problem.spec, args)
            scalars = zip(self.scalar_types, given, strict=True)
            packed += [kind(value) for kind, value in scalars]
        device.launch(found.kernel, found.shape, packed, stream)

    def load(self, device: Device) -> Loaded:
        """Load the artifact on a device, once; EngineError where it refuses."""
        with self.lock:
            known = self.loaded.get(device)
            if known is None:
                module = device.load(image_for(device, self.artifact))
                module.kernel(self.plan.entry)
                known = Loaded(module, {})
                name = identity(device)
                if name not in self.verified:
                    check_first_use(
                        device, self.problem, partial(self.over, device, known)
                    )
                    self.verified = (*self.verified, name)
                self.loaded[device] = known
            return known

    def over(
        self,
        device: Device,
        loaded: Loaded,
        views: Sequence[DeviceView],
        scalars: Sequence[Any],
    ) -> None:
        """Launch over matrices in their roles, `out` last, on the default stream."""
        found = self.planned(loaded, [face(view) for view in views])
        packed = [np.uint64(view.address) for view in views]
        assert found.kernel is not None
        device.launch(found.kernel, found.shape, [*packed, *found.fixed, *scalars])

    def prepared(self, loaded: Loaded, located: Sequence[Any], key: Any) -> Launch:
        """Prepare the launch for arrays that lie so, and remember it."""
        views = [
            DeviceView(at, shape, steps or c_strides(shape, dtype.itemsize), dtype)
            for (at, shape, steps, _), dtype in zip(located, self.dtypes, strict=True)
        ]
        seen = [viewed_array(*pair) for pair in zip(self.roles, views, strict=False)]
        if len(loaded.launches) >= LAUNCHES:
            loaded.launches.clear()
        found = self.planned(loaded, [face(view) for view in (*seen, views[-1])])
        loaded.launches[key] = found
        return found

    def planned(self, loaded: Loaded, faces: Sequence[Face]) -> Launch:
        """Return the launch for matrices that lie so."""
        (m, n), kernel = faces[-1].sizes, None
        if m and n:
            aligned = self.plan.aligned(faces)
            name = self.plan.entry if aligned else self.plan.plain
            kernel = loaded.module.kernel(name)
        shape = self.plan.shape(max(m, 1), max(n, 1))
        return Launch(kernel, shape, tuple(fixed(faces, faces[0].sizes[1])))


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
    Return an artifact's run, loaded on its problem's device.

    Raises EngineError when that refuses it, or is not there.
    """
    run = CudaRun(artifact, problem, plan)
    device = device_at(problem.device)
    if device is None:
        raise EngineError("there is no CUDA device here: the artifact can't be run")
    run.load(device)
    return run
