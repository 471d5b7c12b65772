"""What CUDA engines can't serve is refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.engines.gpu.cases import NAMES, Case, arguments, function_of
from tilewise.device.arch import cuda_target
from tilewise.engines.gpu.reasons import general_reason, shared_reason
from tilewise.model.problem import pose
from tilewise.model.spec import match
from tilewise.model.trace import trace
from tilewise.model.variant import Target
from tilewise.runtime.question import arg_form

CASE = Case("cuda_cpp/naive", "plain", "C C", "m=n", "exact", "float32", "lazy")


def problem(**changed):
    """Return a problem with some arguments of other dtypes."""
    args = arguments(CASE)
    for name, dtype in changed.items():
        args[NAMES.index(name)] = args[NAMES.index(name)].astype(dtype)
    forms = {n: arg_form(n, v) for n, v in zip(NAMES, args, strict=True)}
    return pose(match(trace(function_of("bias", False), forms), NAMES), args)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (cuda_target("sm_90"), None),
        (Target("cpu", "zen4"), "the target is a cpu, not a CUDA device"),
        (Target("cuda", ""), "there is no CUDA device here"),
        (Target("cuda", "sm_70"), "the architecture 'sm_70' is not known; known are"),
    ],
    ids=["known", "cpu", "none", "unknown"],
)
def test_targets(target, reason):
    """Only known CUDA architectures are built for."""
    found = general_reason(problem(), target)

    assert found == reason or (reason and found.startswith(reason))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"x": "float16"}, "x is float16; float32 and float64 are fused"),
        ({"x": "int32", "w": "int32"}, "x is int32; float32 and float64 are fused"),
        ({"w": "float64"}, "the factors are float32 and float64, not of one dtype"),
        ({"b": "float16"}, "the epilogue computes in float16"),
    ],
    ids=["half", "integer", "mixed", "operand"],
)
def test_dtypes(changed, reason):
    """A dtype that is not fused is named."""
    assert reason == general_reason(problem(**changed), cuda_target("sm_90"))


def test_both_residencies():
    """Arrays on the host and on the device are served."""
    found = [
        general_reason(replace(problem(), residency=place), cuda_target("sm_90"))
        for place in ("host", "device")
    ]
    assert [None, None] == found


def test_shared_memory():
    """The bytes needed and those there are, are named."""
    expected = "69632 bytes of shared memory are needed, sm_75 has 65536 for a block"
    assert expected == shared_reason(69632, cuda_target("sm_75"))
    assert shared_reason(65536, cuda_target("sm_75")) is None


def test_complex_numbers():
    """A complex factor is refused before anything is written."""
    args = [a.astype(np.complex64) if i < 2 else a
            for i, a in enumerate(arguments(CASE))]  # fmt: skip
    forms = {n: arg_form(n, v) for n, v in zip(NAMES, args, strict=True)}
    posed = pose(match(trace(function_of("plain", False), forms), NAMES), args)

    found = general_reason(posed, cuda_target("sm_90"))
    assert "x is complex64; float32 and float64 are fused" == found
