"""
What tests of OpenGL share: a context or a skip by name, and a kernel's run.

Where TILEWISE_REQUIRE_GL=1 is set, as in CI, a missing context fails the tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewise.device.gl import gl_target
from tilewise.engines.base import Run
from tilewise.engines.glsl.engine import GlslEngine
from tilewise.model.problem import Problem, pose
from tilewise.model.spec import match
from tilewise.model.trace import trace
from tilewise.model.variant import Variant
from tilewise.runtime.question import arg_form

REQUIRED = os.environ.get("TILEWISE_REQUIRE_GL") == "1"
ENGINE = GlslEngine()
PLAIN = "glsl/plain"
SHARED = tuple(f"glsl/shared tile={tile}" for tile in ("16x16", "32x32", "64x64"))
VARIANTS = (PLAIN, *SHARED)


def needs_opengl() -> None:
    """Skip a test where there is no OpenGL context, with the reason."""
    reason = gl_target().reason
    if reason and REQUIRED:
        pytest.fail(f"TILEWISE_REQUIRE_GL is set, and {reason}")
    if reason:
        pytest.skip(reason)


def problem_of(
    function: Callable[..., Any], *args: Any, constants: Any = ()
) -> Problem:
    """Return the problem of a function at arguments."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    forms = {n: arg_form(n, v) for n, v in zip(names, args, strict=True)}
    posed = pose(match(trace(function, forms), names), args, constants=constants)
    assert isinstance(posed, Problem), posed
    return posed


def run_of(
    function: Callable[..., Any], *args: Any, variant: str = PLAIN, constants: Any = ()
) -> Run:
    """Build and load a variant for a function's problem."""
    problem, chosen = (
        problem_of(function, *args, constants=constants),
        Variant.parse(variant),
    )
    assert None is ENGINE.rejects(chosen, problem, gl_target())
    return ENGINE.load(ENGINE.build(chosen, problem, gl_target()), chosen, problem)


def applied(function: Callable[..., Any], *args: Any, variant: str = PLAIN) -> Any:
    """Return what a variant computes for a function's arguments, on poison."""
    expected = reference(function, *args)
    out = np.full(expected.shape, 77, expected.dtype)
    assert run_of(function, *args, variant=variant)(*args, out) is out
    return out


def reference(function: Callable[..., Any], *args: Any) -> Any:
    """Return what the function itself computes, without warnings."""
    with np.errstate(all="ignore"):
        return function(*args)


def difference(function: Callable[..., Any], *args: Any, variant: str = PLAIN) -> str:
    """Run a variant; returns "" where it equals NumPy, or what differs."""
    expected, actual = (
        reference(function, *args),
        applied(function, *args, variant=variant),
    )
    bound = 16 * float(np.finfo(np.float32).eps)
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(actual, expected, rtol=bound, atol=bound, equal_nan=True)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{wrong.sum()} of {wrong.size}, at {at}: {actual[at]!r}, not {expected[at]!r}"
    )


def quarters(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Return quarters of small integers: a product of them is exact in any order."""
    values = np.random.default_rng(seed).integers(-6, 7, shape) / 4
    return values.astype(np.float32)


def sprinkled(array: Any, seed: int = 1) -> Any:
    """Put NaN, infinities, zeros of both signs and a subnormal into an array."""
    random = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    hit = random.random(array.shape) < 0.2
    found = array.copy()
    found[hit] = random.choice(special, int(hit.sum()))
    return found
