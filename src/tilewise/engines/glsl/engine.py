"""The GLSL engine: writes a compute shader, which the device's own driver compiles."""

from __future__ import annotations

import time
from importlib import metadata

from tilewise.device.gl import on_context
from tilewise.engines.base import Run
from tilewise.engines.glsl.run import GlslRun, Shader, groups_reason, size_reason
from tilewise.engines.glsl.source import TILES, arrays, shader_source, tile_of
from tilewise.engines.render import GLSL, unrendered
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Artifact, Target, Variant

__all__ = ["GlslEngine"]

BUFFERS = 8
"""Storage buffers of one shader that OpenGL 4.3 promises."""


class GlslEngine:
    """
    Computes float32 products of host arrays with OpenGL compute shaders.

    Its artifact is the source: OpenGL has no binary that another driver would take,
    and drivers keep their own. Loading compiles it.
    """

    name = "glsl"
    methods = ("plain", "shared")
    toolchain = ("moderngl",)

    def variants(self, problem: Problem, target: Target) -> tuple[Variant, ...]:
        """Return the methods with their tiles, the simplest first."""
        tiles = (Variant("glsl", "shared", (("tile", name),)) for name in TILES)
        return (Variant("glsl", "plain"), *tiles)

    def rejects(self, variant: Variant, problem: Problem, target: Target) -> str | None:
        """Return why a variant cannot serve a problem, or None."""
        if not target.arch:
            return target.reason
        if problem.residency != "host":
            return "the arguments live on a device"
        sizes = (problem.m, problem.n, problem.k)
        return (
            dtype_reason(problem)
            or unrendered(problem.spec, GLSL)
            or buffers_reason(problem)
            or groups_reason(sizes, tile_of(variant))
            or size_reason(sizes, target.buffer_bytes)
        )

    def key_parts(
        self, variant: Variant, problem: Problem, target: Target
    ) -> tuple[tuple[str, str], ...]:
        """Return the whole source, and the spec that a run follows."""
        return (
            ("variant", str(variant)),
            ("spec", problem.spec.digest),
            ("source", shader_source(problem, variant)),
        )

    def build(self, variant: Variant, problem: Problem, target: Target) -> Artifact:
        """Write the source; the driver compiles it when it is loaded."""
        started = time.perf_counter()
        source = shader_source(problem, variant).encode()
        return Artifact(
            "glsl",
            "main",
            source,
            arch=target.arch,
            variant=str(variant),
            toolchain=(("moderngl", metadata.version("moderngl")),),
            build_ms=1e3 * (time.perf_counter() - started),
        )

    def load(self, artifact: Artifact, variant: Variant, problem: Problem) -> Run:
        """Compile the source; raises EngineError with the driver's words."""
        try:
            source = artifact.code.decode()
        except UnicodeDecodeError as error:
            raise EngineError(f"the source of {variant} is no text: {error}") from error
        program = on_context(lambda context: context.compute_shader(source))
        return GlslRun(Shader(program, tile_of(variant)), problem)


def dtype_reason(problem: Problem) -> str | None:
    """Return why the arrays' dtypes are not for OpenGL, or None."""
    spec = problem.spec
    for operand, form in zip((spec.x, spec.w), problem.forms[:2], strict=True):
        if form.dtype != "float32":
            return f"{operand.name} is {form.dtype}; glsl computes in float32 alone"
    for operand, form in zip(spec.operands, problem.forms[2:], strict=True):
        if form.dtype not in GLSL.types:
            return f"{operand.name} is {form.dtype}; glsl computes in float32 alone"
    return None


def buffers_reason(problem: Problem) -> str | None:
    """Return why there are too many arrays, or None."""
    count = len(arrays(problem))
    if count <= BUFFERS:
        return None
    return f"{count} arrays are over the {BUFFERS} that OpenGL promises"
