"""What the GLSL engine can build, what it refuses and why, and what its keys hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.opengl import ENGINE, PLAIN, VARIANTS, problem_of, quarters
from tilewise.device.gl import gl_target
from tilewise.errors import EngineError
from tilewise.model.variant import Target, Variant

X, W = quarters((3, 4)), quarters((4, 5))
PLAINLY = Variant.parse(PLAIN)


def plain(x, w):
    """Return the product."""
    return x @ w


def refused(function: Any, *args: Any, target: Target | None = None) -> str | None:
    """Return why the plain variant can't serve, or None."""
    return ENGINE.rejects(PLAINLY, problem_of(function, *args), target or gl_target())


def test_the_variants_are_one_plain_and_three_tiles():
    """The simplest comes first."""
    found = ENGINE.variants(problem_of(plain, X, W), gl_target())

    assert list(VARIANTS) == [str(variant) for variant in found]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "complex64"])
def test_other_factors_than_float32_are_refused_by_name(dtype: str):
    """Nothing is narrowed."""
    told = f"x is {dtype}; glsl computes in float32 alone"

    assert told == refused(plain, X.astype(dtype), W.astype(dtype))


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16"])
def test_other_operands_are_refused_by_name(dtype: str):
    """An operand of eight bytes, or of two, has no buffer."""
    told = f"b is {dtype}; glsl computes in float32 alone"

    assert told == refused(lambda x, w, b: x @ w + b, X, W, np.ones(5, dtype))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ w * np.float64(2),
        lambda x, w: x @ w > np.float64(0.3),
        lambda x, w: (x @ w).astype(np.int32) > 0.3,
        lambda x, w: (x @ w).astype(np.float64).astype(np.float32),
    ],
    ids=["result", "comparison", "integers", "between"],
)
def test_steps_in_float64_are_refused(function: Any):
    """Also where they only compare, or are rounded again."""
    assert "the epilogue computes in float64" == refused(function, X, W)


def test_more_arrays_than_opengl_promises_are_refused():
    """Two factors, six operands and the result are nine buffers."""

    def many(x, w, a, b, c, d, e, f):  # noqa: PLR0917
        return x @ w + a + b + c + d + e + f

    args = [quarters((5,), seed) for seed in range(6)]

    assert "9 arrays are over the 8 that OpenGL promises" == refused(many, X, W, *args)


def test_an_array_over_the_device_s_limit_is_refused():
    """The limit is the largest storage block that the driver names."""
    target = replace(gl_target(), buffer_bytes=64)
    told = "an array of 80 bytes is over the device's 64"

    assert told == refused(plain, X, W, target=target)


def test_arrays_on_a_device_are_refused():
    """OpenGL's buffers are not CUDA's."""
    problem = replace(problem_of(plain, X, W), residency="device")
    told = "the arguments live on a device"

    assert told == ENGINE.rejects(PLAINLY, problem, gl_target())


def test_without_a_context_the_reason_is_the_target_s():
    """A pin says what explain says."""
    target = Target("gl", "", reason="there is no driver")

    assert "there is no driver" == refused(plain, X, W, target=target)


def test_keys_hold_no_sizes():
    """One artifact serves every size of the same forms."""
    larger = problem_of(plain, quarters((30, 40)), quarters((40, 50)))
    parts = [
        ENGINE.key_parts(PLAINLY, p, gl_target())
        for p in (problem_of(plain, X, W), larger)
    ]

    assert parts[0] == parts[1]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, w: x @ w + 1, (X, W)),
        (plain, (np.asfortranarray(X), W)),
        (plain, (X, np.asfortranarray(W))),
    ],
    ids=["epilogue", "layout of x", "layout of w"],
)
def test_keys_differ_where_code_differs(function: Any, args: Any):
    """The source is part of the key."""
    parts = [
        dict(ENGINE.key_parts(PLAINLY, p, gl_target()))["source"]
        for p in (problem_of(plain, X, W), problem_of(function, *args))
    ]

    assert parts[0] != parts[1]


def test_the_artifact_is_the_source():
    """Its text starts with the version and names the driver it was made for."""
    made = ENGINE.build(PLAINLY, problem_of(plain, X, W), gl_target())

    assert ("glsl", "main") == (made.kind, made.entry)
    assert made.code.startswith(b"#version 430\n")
    assert gl_target().arch == made.arch


def test_a_source_that_does_not_compile_says_the_driver_s_words():
    """A damaged artifact is an EngineError, so that it is built again."""
    problem = problem_of(plain, X, W)
    made = ENGINE.build(PLAINLY, problem, gl_target())
    broken = replace(made, code=made.code.replace(b"void main", b"void other"))

    with pytest.raises(EngineError, match="OpenGL fails"):
        ENGINE.load(broken, PLAINLY, problem)
