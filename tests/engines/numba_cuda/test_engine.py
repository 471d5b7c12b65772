"""The numba.cuda engine says what it can build and builds it reproducibly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.engines.gpu.cases import ENGINES, Case, function_of, problem_at
from tests.forks import child_ended, needs_fork, quiet
from tilewise.device.arch import cuda_target
from tilewise.engines.numba_cuda.compile import LOCK
from tilewise.engines.numba_cuda.engine import NumbaCudaEngine, numpy_reason
from tilewise.errors import EngineError
from tilewise.model.variant import Target, Variant

ENGINE = NumbaCudaEngine()
TARGET = cuda_target("sm_90")
GLOBAL = Variant("numba_cuda", "global")


def problem(dtype="float32", epilogue="bias"):
    """Return a problem of C-ordered arrays."""
    case = Case("numba_cuda/global", epilogue, "C C", "m=n", "exact", dtype, "lazy")
    return problem_at(function_of(epilogue, False), case)


def shared(tile, rows):
    """Return a variant of the method `shared`."""
    return Variant("numba_cuda", "shared", (("tile", tile), ("rows", rows)))


def test_the_variants():
    """The simplest is first; tiles and rows are all combined."""
    tiles = [shared(tile, rows) for tile in (8, 16, 32) for rows in (1, 2, 4)]

    assert (GLOBAL, *tiles) == ENGINE.variants(problem(), TARGET)


def test_all_fit_in_float64():
    """The largest tile in float64 is under what a kernel may declare."""
    found = [
        ENGINE.rejects(variant, problem("float64"), TARGET)
        for variant in ENGINE.variants(problem("float64"), TARGET)
    ]

    assert [None] * 10 == found


def test_too_much_shared_memory():
    """A tile that is too large is refused with its bytes."""
    expected = "84480 bytes of shared memory are over 49152"

    assert expected == ENGINE.rejects(shared(32, 9), problem("float64"), TARGET)


def test_a_small_device():
    """A target with less than a tile needs is named."""
    small = Target("cuda", "sm_90", shared_bytes=2000)

    assert "2176 bytes of shared memory are needed, sm_90 has 2000 for a block" == (
        ENGINE.rejects(shared(16, 1), problem(), small)
    )


@pytest.mark.parametrize(
    ("numpy", "installed", "reason"),
    [
        ("2.4.6", "0.30.4", None),
        (
            "2.5.0",
            "0.30.4",
            "numba-cuda 0.30.4 can't compile with NumPy 2.5.0: install numpy<2.5",
        ),
        ("2.5.0", "0.31.0", None),
        ("2.5.0", "", None),
    ],
)  # fmt: skip
def test_numpy_versions(numpy, installed, reason):
    """The NumPy that a release of numba-cuda fails with is named."""
    assert reason == numpy_reason(numpy, installed)


def test_numpy_is_asked_for(monkeypatch):
    """The reason is one for which variants are rejected."""
    monkeypatch.setattr(
        "tilewise.engines.numba_cuda.engine.numpy_reason", lambda: "NumPy is too new"
    )

    assert "NumPy is too new" == ENGINE.rejects(GLOBAL, problem(), TARGET)


def test_keys_hold_no_sizes():
    """Problems of other sizes have the same code."""
    case = Case("numba_cuda/global", "bias", "C C", "tile", "exact", "float32", "lazy")
    other = problem_at(function_of("bias", False), case)

    assert ENGINE.key_parts(GLOBAL, problem(), TARGET) == ENGINE.key_parts(
        GLOBAL, other, TARGET
    )


def test_keys_tell_roles_apart():
    """x.T @ w.T of C order is no x @ w of F order, though the code is the same."""
    forms = [
        Case("numba_cuda/global", "bias", layout, "m=n", "exact", "float32", "lazy")
        for layout in ("F F", "T T")
    ]
    parts = [
        dict(ENGINE.key_parts(GLOBAL, problem_at(function, case), TARGET))
        for case, function in zip(
            forms, (function_of("bias", False), function_of("bias", True)), strict=True
        )
    ]

    assert parts[0]["source"] == parts[1]["source"]
    assert parts[0] != parts[1]


@pytest.fixture(scope="module")
def artifact():
    """Return a built kernel."""
    pytest.importorskip("numba.cuda")
    return ENGINE.build(shared(16, 2), problem(), TARGET)


def test_the_artifact(artifact):
    """CUBIN and PTX are both there, under one entry, with the toolchain."""
    assert ("cubin", "sm_90", str(shared(16, 2)), b"\x7fELF") == (
        artifact.kind,
        artifact.arch,
        artifact.variant,
        artifact.code[:4],
    )
    assert f".entry {artifact.entry}(".encode() in artifact.text
    assert set(ENGINE.toolchain) == {name for name, _ in artifact.toolchain}


def test_float32_stays_float32(artifact):
    """No constant makes float64 arithmetic: the scalar's conversion is all there is."""
    lines = [line for line in artifact.text.decode().splitlines() if ".f64" in line]
    wide = [ln for ln in lines if not any(w in ln for w in ("param", ".reg", "cvt"))]

    assert [] == wide


def test_launch_bounds(artifact):
    """The registers of one thread are bound by the threads of a block."""
    assert b".maxntid 256" in artifact.text


def test_what_does_not_compile(monkeypatch):
    """The error names variant and arch and has the compiler's words."""
    pytest.importorskip("numba.cuda")
    monkeypatch.setattr(
        "tilewise.engines.numba_cuda.engine.kernel_source",
        lambda *args: "def kernel(x):\n    return x.sort_by_magic()\n",
    )
    monkeypatch.setattr(
        "tilewise.engines.numba_cuda.engine.parameters", lambda problem: ()
    )
    with pytest.raises(EngineError, match="numba_cuda/global does not compile for"):
        ENGINE.build(GLOBAL, problem(), TARGET)


SCRIPT = """
import sys
import tilewise
from tilewise.engines.numba_cuda.engine import NumbaCudaEngine
from tilewise.engines.cuda_cpp.engine import CudaCppEngine
import tilewise.api.build_ahead
from tilewise import ProgramCache, RawKernel
NumbaCudaEngine(), CudaCppEngine()
print([name for name in ("numba", "cupy", "cuda.core", "cuda") if name in sys.modules])
"""


def test_importing_is_light():
    """Engines, RawKernel and ProgramCache import no compiler and no GPU library."""
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )

    assert "[]\n" == found.stdout


def test_both_engines_are_known():
    """The engines of this folder's cases are those of the package."""
    assert ["numba_cuda", "cuda_cpp"] == [engine.name for engine in ENGINES.values()]


@needs_fork
@quiet
def test_a_forked_child_compiles():
    """A fork waits for the compilation of another thread."""
    pytest.importorskip("numba.cuda")

    assert 0 == child_ended(LOCK, lambda: ENGINE.build(GLOBAL, problem(), TARGET))
