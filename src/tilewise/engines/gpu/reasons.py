"""Why no CUDA engine can serve a problem, whatever its method."""

from __future__ import annotations

from tilewise.device.arch import arch_of
from tilewise.engines.render import unrendered
from tilewise.errors import EngineError
from tilewise.model.problem import Problem
from tilewise.model.variant import Target

__all__ = ["FUSED", "general_reason", "shared_reason"]

FUSED = ("float32", "float64")


def general_reason(problem: Problem, target: Target) -> str | None:
    """Return why generated CUDA code cannot serve a problem, or None."""
    if target.kind != "cuda":
        return f"the target is a {target.kind}, not a CUDA device"
    if not target.arch:
        return "there is no CUDA device here"
    try:
        arch_of(target.arch)
    except EngineError as error:
        return str(error)
    x, w = problem.forms[:2]
    for operand, form in zip((problem.spec.x, problem.spec.w), (x, w), strict=True):
        if form.dtype not in FUSED:
            return f"{operand.name} is {form.dtype}; float32 and float64 are fused"
    if x.dtype != w.dtype:
        return f"the factors are {x.dtype} and {w.dtype}, not of one dtype"
    return unrendered(problem.spec)


def shared_reason(needed: int, target: Target) -> str | None:
    """Return why a block's shared bytes are too many for a target, or None."""
    if needed <= target.shared_bytes:
        return None
    return (
        f"{needed} bytes of shared memory are needed, {target.arch} has "
        f"{target.shared_bytes} for a block"
    )
