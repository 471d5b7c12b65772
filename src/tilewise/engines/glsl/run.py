"""
A compiled shader as a run: host arrays in, dispatch, the result out.

Every call binds its own buffers: bindings are the context's, and another kernel may
have changed them since. One call's steps are one job of the context's thread, so that
calls from several threads never mix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.device.gl import gl_target, on_context
from tilewise.engines.base import Run
from tilewise.engines.glsl.source import Tile, held, uniforms
from tilewise.errors import EngineError
from tilewise.model.problem import Form, Problem, scalar_values, viewed_array

__all__ = ["GlslRun", "Shader", "groups_reason", "size_reason"]

GROUPS = 65535
"""Work groups along an axis that OpenGL 4.3 promises."""


@dataclass(frozen=True, slots=True)
class Shader:
    """A program of the context with its results per work group."""

    program: Any
    tile: Tile

    def dispatch(self, context: Any, buffers: Sequence[Any], call: Call) -> None:
        """Bind, set the numbers and run; later reads see the result."""
        for at, buffer in enumerate(buffers):
            buffer.bind_to_storage_buffer(at)
        for name, value in call.numbers:
            if name in self.program:  # A compiler drops what is not read.
                self.program[name].value = value
        columns, rows = groups(call.sizes, self.tile)
        self.program.run(columns, rows)
        context.memory_barrier()


@dataclass(frozen=True, slots=True)
class Call:
    """What a call hands to a program: sizes (m, n, k) and named numbers."""

    sizes: tuple[int, int, int]
    numbers: tuple[tuple[str, Any], ...]


class GlslRun:
    """A run that allocates its buffers at each call, and once where it is bound."""

    def __init__(self, shader: Shader, problem: Problem) -> None:
        self.shader, self.problem = shader, problem
        self.roles = (problem.spec.x, problem.spec.w, *problem.spec.operands)
        self.uniforms = uniforms(problem)

    def __call__(self, *args: Any) -> Any:
        """Fill and return the last argument."""
        out = args[-1]
        if not out.size:
            return out
        arrays, call = self.arrays(args), self.call(args)
        self.check(call.sizes)
        result = result_like(out)

        def job(context: Any) -> None:
            buffers = [filled(context, array) for array in arrays]
            buffers.append(context.buffer(reserve=result.nbytes))
            self.shader.dispatch(context, buffers, call)
            buffers[-1].read_into(result)

        on_context(job)
        return delivered(result, out)

    def bind(self, args: Sequence[Any]) -> Run:
        """Allocate all buffers and upload the constants; only the rest moves later."""
        return BoundRun(self, args)

    def arrays(self, args: Sequence[Any]) -> list[Any]:
        """Return all arrays as the shader reads them."""
        return [dense(args, *pair) for pair in zip(self.roles, self.forms, strict=True)]

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms of all arrays but the result."""
        return self.problem.forms

    def call(self, args: Sequence[Any]) -> Call:
        """Return a call's sizes, and its numbers as the host converts them."""
        x, w = (viewed_array(role, args[role.position]) for role in self.roles[:2])
        sizes = (*x.shape, w.shape[1])
        m, k, n = sizes
        values = scalar_values(self.problem.spec, args) if self.uniforms else []
        with np.errstate(all="ignore"):
            numbers = [
                (name, np.dtype(dtype).type(values[at]).item())
                for name, at, dtype in self.uniforms
            ]
        return Call((m, n, k), (("m", m), ("n", n), ("k", k), *numbers))

    def check(self, sizes: tuple[int, int, int]) -> None:
        """Raise EngineError where a call's sizes are too large for the device."""
        reason = groups_reason(sizes, self.shader.tile)
        reason = reason or size_reason(sizes, gl_target().buffer_bytes)
        if reason is not None:
            raise EngineError(reason)


class BoundRun:
    """A run with buffers of its own, which hold the constants."""

    def __init__(self, run: GlslRun, args: Sequence[Any]) -> None:
        problem, arrays = run.problem, run.arrays(args)
        self.run, sizes = run, run.call(args).sizes
        run.check(sizes)
        self.open = [
            at
            for at, role in enumerate(run.roles)
            if role.position not in problem.constants
        ]
        shape, dtype = sizes[:2], held(problem.spec.dtype)
        reserved = max(4, int(np.prod(shape)) * np.dtype(dtype).itemsize)

        def job(context: Any) -> list[Any]:
            buffers = [filled(context, array) for array in arrays]
            return [*buffers, context.buffer(reserve=reserved)]

        self.buffers = on_context(job)

    def __call__(self, *args: Any) -> Any:
        """Move the arguments that are no constants, dispatch, fetch the result."""
        run, out = self.run, args[-1]
        if not out.size:
            return out
        moved = [
            (self.buffers[at], dense(args, run.roles[at], run.forms[at]))
            for at in self.open
        ]
        call, result = run.call(args), result_like(out)

        def job(context: Any) -> None:
            for buffer, array in moved:
                if array.nbytes:
                    buffer.write(array)
            run.shader.dispatch(context, self.buffers, call)
            self.buffers[-1].read_into(result)

        on_context(job)
        return delivered(result, out)


def dense(args: Sequence[Any], role: Any, form: Form) -> Any:
    """Return an argument's elements as a buffer holds them, copied where it must be."""
    view = viewed_array(role, args[role.position])
    ordered = view.T if form.layout == "F" and len(form.kind) == 2 else view
    return np.ascontiguousarray(ordered, dtype=held(form.dtype))


def filled(context: Any, array: Any) -> Any:
    """Return a new buffer with an array's elements; OpenGL has no empty ones."""
    return context.buffer(array) if array.nbytes else context.buffer(reserve=4)


def result_like(out: Any) -> Any:
    """Return the array that the result is read into: `out` itself where it can be."""
    dtype = held(str(out.dtype))
    if out.flags.c_contiguous and out.dtype == dtype:
        return out
    return np.empty(out.shape, dtype)


def delivered(result: Any, out: Any) -> Any:
    """Copy the result to `out` if it is not there, and return `out`."""
    if result is not out:
        np.copyto(out, result, casting="unsafe")
    return out


def groups(sizes: tuple[int, int, int], tile: Tile) -> tuple[int, int]:
    """Return the work groups along columns and rows."""
    m, n, _ = sizes
    return -(-n // tile.columns), -(-m // tile.rows)


def groups_reason(sizes: tuple[int, int, int], tile: Tile) -> str | None:
    """Return why there are too many tiles, or None."""
    count = max(groups(sizes, tile))
    if count <= GROUPS:
        return None
    return f"{count} tiles along one axis are over OpenGL's {GROUPS}"


def size_reason(sizes: tuple[int, int, int], buffer_bytes: int) -> str | None:
    """Return why an array may be too large for a buffer, or None."""
    m, n, k = sizes
    largest = 4 * max(m * n, m * k, k * n)
    if not buffer_bytes or largest <= buffer_bytes:
        return None
    return f"an array of {largest} bytes is over the device's {buffer_bytes}"
