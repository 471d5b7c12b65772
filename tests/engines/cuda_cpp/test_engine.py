"""The CUDA C++ engine says what it can build and when it loads 16 bytes at once."""

from __future__ import annotations

import re

import pytest

from tests.engines.gpu.cases import Case, function_of, problem_at
from tilewise.device.arch import cuda_target
from tilewise.engines.cuda_cpp.engine import CudaCppEngine, plan, shared_bytes
from tilewise.engines.cuda_cpp.source import ENTRY, PLAIN, TILES
from tilewise.engines.gpu.params import Face
from tilewise.errors import EngineError
from tilewise.model.variant import Variant

ENGINE = CudaCppEngine()
TARGET = cuda_target("sm_90")
NAIVE = Variant("cuda_cpp", "naive")


def problem(dtype="float32", layout="C C", epilogue="bias"):
    """Return a problem of a dtype and a layout."""
    case = Case("cuda_cpp/naive", epilogue, layout, "m=n", "exact", dtype, "lazy")
    return problem_at(function_of(epilogue, False), case)


def simt(tile):
    """Return a variant of the method `simt`."""
    return Variant("cuda_cpp", "simt", (("tile", tile),))


def test_the_variants():
    """The simplest is first; each tile is one variant."""
    assert (NAIVE, *map(simt, TILES)) == ENGINE.variants(problem(), TARGET)


def test_nothing_is_rejected_on_a_large_device():
    """All fit on sm_90, also in float64."""
    found = [
        ENGINE.rejects(variant, problem("float64"), TARGET)
        for variant in ENGINE.variants(problem("float64"), TARGET)
    ]

    assert [None] * 6 == found


def test_too_much_shared_memory():
    """The largest tile in float64 is more than sm_75 has."""
    expected = "69632 bytes of shared memory are needed, sm_75 has 65536 for a block"

    assert expected == ENGINE.rejects(
        simt("128x128x16"), problem("float64"), cuda_target("sm_75")
    )


@pytest.mark.parametrize("layout", ["C C", "F F", "S S", "F P"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tile", TILES)
def test_shared_bytes(tile, dtype, layout):
    """Two stages of both tiles, rows along k padded by 16 bytes."""
    item = {"float32": 4, "float64": 8}[dtype]
    m, n, k = TILES[tile].sides
    x = k * m if layout[0] == "F" else m * (k + 16 // item)
    w = n * (k + 16 // item) if layout[2] == "F" else k * n

    assert 2 * (x + w) * item == shared_bytes(problem(dtype, layout), TILES[tile])


@pytest.mark.parametrize(
    ("x", "w", "out", "expected"),
    [
        (Face(256, (8, 8), (8, 1)), Face(512, (8, 8), (8, 1)), "even", True),
        (Face(260, (8, 8), (8, 1)), Face(512, (8, 8), (8, 1)), "even", False),
        (Face(256, (8, 7), (8, 1)), Face(512, (7, 8), (8, 1)), "even", False),
        (Face(256, (8, 8), (9, 1)), Face(512, (8, 8), (8, 1)), "even", False),
        (Face(256, (8, 8), (8, 1)), Face(512, (8, 8), (8, 1)), "odd", False),
        (Face(256, (8, 8), (8, 1)), Face(512, (8, 8), (8, 1)), "strided", False),
        (Face(256, (7, 8), (8, 1)), Face(512, (8, 8), (8, 1)), "even", True),
    ],
    ids=["all", "address", "k", "stride", "out", "strided", "m"],
)
def test_alignment(x, w, out, expected):
    """16 bytes are taken at once where every line allows it."""
    result = {
        "even": Face(1024, (8, 8), (8, 1)),
        "odd": Face(1024, (8, 8), (9, 1)),
        "strided": Face(1024, (8, 8), (16, 2)),
    }[out]
    chosen = plan(simt("64x64x16"), problem())

    assert expected is chosen.aligned([x, w, result])


def test_two_entries():
    """An artifact has the entry for aligned arrays and that for any."""
    chosen = plan(simt("64x64x16"), problem())

    assert (ENTRY, PLAIN) == (chosen.entry, chosen.plain)


@pytest.fixture(scope="module")
def artifact():
    """Return a built kernel."""
    pytest.importorskip("cuda.core")
    return ENGINE.build(simt("64x64x16"), problem(), TARGET)


def test_the_artifact(artifact):
    """CUBIN and PTX of one source have the same entries."""
    found = re.findall(r"\.entry\s+(\w+)", artifact.text.decode())

    assert {ENTRY, PLAIN} == set(found)
    assert ("cubin", "sm_90", b"\x7fELF") == (
        artifact.kind, artifact.arch, artifact.code[:4],
    )  # fmt: skip
    assert set(ENGINE.toolchain) == {name for name, _ in artifact.toolchain}


def test_float32_stays_float32(artifact):
    """No constant makes float64 arithmetic: the scalar's conversion is all there is."""
    lines = [line for line in artifact.text.decode().splitlines() if ".f64" in line]
    wide = [ln for ln in lines if not any(w in ln for w in ("param", ".reg", "cvt"))]

    assert [] == wide


def test_asynchronous_copies_from_sm_80():
    """sm_75 has none, later architectures copy 16 bytes by cp.async."""
    old = ENGINE.build(simt("32x32x32"), problem(), cuda_target("sm_75"))
    new = ENGINE.build(simt("32x32x32"), problem(), cuda_target("sm_80"))

    assert (False, True) == (b"cp.async" in old.text, b"cp.async.cg" in new.text)


def test_what_does_not_compile(monkeypatch):
    """The error has NVRTC's log with the line."""
    monkeypatch.setattr(
        "tilewise.engines.cuda_cpp.engine.kernel_source", lambda *args: "\nnonsense"
    )
    with pytest.raises(EngineError, match=r"naive\.cu\(2\): error"):
        ENGINE.build(NAIVE, problem(), TARGET)


def test_an_arch_that_nvrtc_has_not(monkeypatch):
    """An arch of the table that the installed NVRTC refuses is an EngineError."""
    with pytest.raises(EngineError, match=r"does not compile|not known"):
        ENGINE.build(NAIVE, problem(), cuda_target("sm_75").__class__("cuda", "sm_70"))
