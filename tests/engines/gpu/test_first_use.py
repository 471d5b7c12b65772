"""An artifact's results are checked when a device runs it for the first time."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.engines.gpu.cases import ENGINES, EPILOGUES, Case, function_of, problem_at
from tilewise.device.arch import cuda_target
from tilewise.device.chosen import chosen_device
from tilewise.engines.gpu import launch
from tilewise.engines.gpu.first_use import (
    check_first_use,
    computed,
    difference,
    made,
    number_of,
)
from tilewise.errors import EngineError

pytest.importorskip("cuda.core")
CASE = Case("cuda_cpp/naive", "bias", "C C", "m=n", "exact", "float32", "lazy")
ENGINE = ENGINES["cuda_cpp"]


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


def problem(epilogue="bias"):
    """Return the problem of an epilogue."""
    return problem_at(function_of(epilogue, False), replace(CASE, epilogue=epilogue))


@pytest.fixture(scope="module")
def artifact():
    """Return a compiled kernel."""
    return ENGINE.build(CASE.variant, problem(), cuda_target("sm_90"))


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_what_is_right(epilogue):
    """A spec computed from its matrices has the function's values and dtype."""
    one = problem(epilogue)
    x, w, *operands = made(one, (6, 5, 4))
    named = {"x": x, "w": w} | {
        operand.name: matrix
        for operand, matrix in zip(one.spec.operands, operands, strict=True)
    }
    numbers = [number_of(scalar.dtype) for scalar in one.spec.scalars]
    args = [named.get(name) for name in ("x", "w", "b", "c", "r", "i")]
    with np.errstate(all="ignore"):
        expected = np.asarray(function_of(epilogue, False)(*args, 0.75))
        found = computed(one.spec, [x, w, *operands], numbers)

    assert expected.dtype == found.dtype
    assert np.array_equal(expected, found, equal_nan=expected.dtype.kind == "f")


def test_a_right_artifact_is_marked(artifact):
    """Its run says where it was checked; one that is marked so is not checked again."""
    run = ENGINE.load(artifact, CASE.variant, problem())

    assert ((), ("emulated",)) == (artifact.verified, run.verified)


@pytest.mark.parametrize(
    ("kernel", "epilogue"),
    [
        *(("cuda_cpp/naive", epilogue) for epilogue in EPILOGUES if epilogue != "bias"),
        ("numba_cuda/shared tile=16 rows=2", "bias"),
        ("cuda_cpp/simt tile=64x64x16", "bias"),
        ("cuda_cpp/simt tile=32x32x32", "logic"),
    ],
)
def test_right_artifacts_pass(kernel, epilogue):
    """No epilogue, no padding of a tile and no second entry is a false alarm."""
    variant, one = replace(CASE, kernel=kernel).variant, problem(epilogue)
    engine = ENGINES[variant.engine]
    made = engine.build(variant, one, cuda_target("sm_90"))

    assert ("emulated",) == engine.load(made, variant, one).verified


def test_once_is_enough(artifact, monkeypatch):
    """What was checked on this kind of device is not checked again, elsewhere it is."""
    checked, h200, here = [], "nvidia-h200_cc9.0_132sm", "emulated"
    monkeypatch.setattr(launch, "check_first_use", lambda *args: checked.append(args))
    found = [
        ENGINE.load(replace(artifact, verified=marks), CASE.variant, problem()).verified
        for marks in ((here,), (h200,), (here, h200))
    ]

    assert [(here,), (h200, here), (here, h200)] == found
    assert 1 == len(checked)


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [(r"fma\.rn\.f32(.*),[^,]*;", r"mul.rn.f32\1;"), (r"st\.global\.f32.*", "")],
    ids=["another", "nothing"],
)
def test_a_wrong_artifact_is_refused(artifact, pattern, instead):
    """One that computes something else, or writes nothing, does not load."""
    text, count = re.subn(pattern, instead, artifact.text.decode())
    assert count
    with pytest.raises(EngineError, match="gives wrong results"):
        ENGINE.load(replace(artifact, text=text.encode()), CASE.variant, problem())


def test_the_check_finds_what_is_not_written():
    """A launch that does nothing leaves the poison."""
    with pytest.raises(EngineError, match="1440 of 1440 elements are not written"):
        check_first_use(chosen_device(), problem(), lambda views, scalars: None)


def test_few_steps_may_fall_the_other_way():
    """One element in ten may differ, more may not; a NaN is as right as another."""
    expected = np.full((10, 10), np.nan, np.float32)
    out = expected.copy()
    out[0] = 1

    assert "" == difference(out, expected)
    out[1, 1] = 1
    assert "1.0 at (0, 0), not nan" == difference(out, expected)
