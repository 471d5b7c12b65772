"""CUDA artifacts are built here for machines that are not here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import tilewise
from tilewise.api import build_ahead as module
from tilewise.api.build_ahead import build_ahead, problems_of, subjects_of
from tilewise.engines.cuda_cpp.engine import CudaCppEngine
from tilewise.engines.numba_cuda.engine import NumbaCudaEngine
from tilewise.errors import ArgumentError, EngineError
from tilewise.model.variant import Variant
from tilewise.runtime.question import Options, Subject
from tilewise.store.bundle import read_bundle

pytest.importorskip("numba.cuda")
pytest.importorskip("cuda.core")


def dense(x, w, b):
    """Return a dense layer."""
    return np.maximum(x @ w + b, 0)


def subject(function=dense, **options):
    """Return the subject of a function, fresh."""
    names = tuple(function.__code__.co_varnames[: function.__code__.co_argcount])
    return Subject(function, function.__name__, names, Options(**options))


FEW = {"archs": ("sm_80", "sm_90"), "names": ("cuda_cpp",)}


NAIVE = Variant("cuda_cpp", "naive")
TILE = Variant("cuda_cpp", "simt", (("tile", "32x32x32"),))


@pytest.fixture(autouse=True)
def _only(request, monkeypatch):
    """Build `naive` alone, or what a test asks for: the rest is built elsewhere."""
    wanted = getattr(request, "param", (NAIVE,))
    monkeypatch.setattr(CudaCppEngine, "variants", lambda *args: wanted)


def test_everything_is_built_once():
    """The first run builds, the second has HITs alone, with the same artifacts."""
    first, second = build_ahead([subject()], **FEW), build_ahead([subject()], **FEW)

    assert ["build"] * 2 == [built.origin for built in first]
    assert ["store"] * 2 == [built.origin for built in second]
    assert [b.artifact for b in first] == [b.artifact for b in second]


def test_a_call_finds_them(monkeypatch):
    """A normal call on a device of that arch compiles nothing."""
    from tilewise import tuned_kernel

    build_ahead([subject()], ("sm_90",), names=("cuda_cpp",))
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    kernel = tuned_kernel(dense)
    kernel.pin("cuda_cpp/naive")
    kernel._resolver().workshop.forget()  # What other tests of this process loaded.
    x = np.ones((3, 4), np.float32)
    kernel(x, np.ones((4, 5), np.float32), np.ones(5, np.float32))

    assert (0, 1) == (kernel.stats.compiles, kernel.stats.artifact_hits)


def test_progress():
    """Each one is told as it is done."""
    told = []
    made = build_ahead(
        [subject()], **FEW, progress=lambda done, total, one: told.append((done, total))
    )

    assert [(i + 1, len(made)) for i in range(len(made))] == told


def test_shapes_of_the_same_code():
    """Sizes take no part in the code, a one-element axis does."""
    shapes = ((64, 64, 64), (7, 9, 1000), (5, 1, 4))
    made = build_ahead([subject()], ("sm_90",), shapes=shapes, names=("cuda_cpp",))

    assert 2 == len(made)


@pytest.mark.parametrize("_only", [(TILE,)], indirect=True, ids=["tile"])
def test_figures(_only):
    """Registers, shared memory, spills and occupancy are at hand."""
    (tile,) = build_ahead([subject()], ("sm_90",), names=("cuda_cpp",))

    assert (17408, 0) == (tile.figure("shared_bytes"), tile.figure("spill_bytes"))
    assert 0 < tile.occupancy(64) <= 1


@pytest.mark.parametrize("_only", [(NAIVE, TILE)], indirect=True, ids=["both"])
def test_what_is_rejected(_only, monkeypatch):
    """A variant that an arch has no room for is listed with the reason."""
    monkeypatch.setattr(
        "tilewise.engines.cuda_cpp.engine.shared_bytes", lambda *args: 99 << 10
    )
    made = build_ahead([subject()], ("sm_75",), names=("cuda_cpp",))

    assert ["build", "rejected"] == [built.origin for built in made]
    assert "sm_75 has 65536 for a block" in made[1].reason


def test_what_fails(monkeypatch):
    """One that does not compile is listed, the others go on, nothing is kept."""

    def broken(*args, **kwargs):
        raise EngineError("the compiler's words")

    monkeypatch.setattr("tilewise.engines.cuda_cpp.engine.compiled_both", broken)
    made = build_ahead([subject()], ("sm_90",), names=("cuda_cpp",))

    expected = [("failed", "the compiler's words")]
    assert expected == [(built.origin, built.reason) for built in made]
    assert [] == module.open_store().entries()


def test_an_unknown_arch():
    """It is named before anything is compiled."""
    with pytest.raises(EngineError, match="'sm_70' is not known"):
        build_ahead([subject()], ("sm_70",))


def test_a_kernel_without_a_problem():
    """The reason is that of the trace."""
    with pytest.raises(ArgumentError, match="batched at"):
        problems_of(subject(batched, signature="(k),(k),(n)->(m,n)"), [(2, 2, 2)], "f")


def batched(x, w, b):
    """Return a product of vectors, which has no 2-D form."""
    return x @ w + b


def test_a_bundle(tmp_path):
    """One file has all artifacts, with the toolchain that made them."""
    path = tmp_path / "dense.bundle"
    made = build_ahead([subject()], **FEW, bundle=path)

    artifacts = dict(read_bundle(path).artifacts)
    assert {built.shipped_key: built.artifact for built in made} == artifacts
    nvrtc = ("nvidia-cuda-nvrtc", metadata.version("nvidia-cuda-nvrtc"))
    assert all(nvrtc in artifact.toolchain for artifact in artifacts.values())


def test_what_was_shipped_is_found(tmp_path, monkeypatch):
    """Another machine's build finds the bundle's artifacts, as its calls do."""
    path = tmp_path / "dense.bundle"
    build_ahead([subject()], **FEW, bundle=path)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("TILEWISE_BUNDLE", str(path))

    assert ["store"] * 2 == [b.origin for b in build_ahead([subject()], **FEW)]


LAYER = """
import numpy as np
def dense(x, w, b):
    return np.maximum(x @ w + b, 0)
"""
SCRIPT = """
import sys
import tilewise
from layer import dense
from tilewise.api.build_ahead import build_ahead
from tilewise.model.variant import Variant
from tilewise.runtime.once import engines
from tilewise.runtime.question import Options, Subject
for engine, first in (("numba_cuda", "global"), ("cuda_cpp", "naive")):
    only = (Variant(engine, first),)
    type(engines()[engine]).variants = lambda *args, only=only: only
made = build_ahead([Subject(dense, "dense", tuple("xwb"), Options())], ("sm_90",))
origins = sorted({one.origin for one in made})
print(*origins, "numba.cuda" in sys.modules, *tilewise.__path__)
"""


def lines_of(script, folders, roots, **settings):
    """Run a script in fresh processes, one a folder, importing from that root."""
    known = [*map(str, map(Path.absolute, map(Path, sys.path)))]
    return [
        subprocess.run(
            [sys.executable, "-c", script], cwd=folder,
            env={**os.environ, **settings, "PYTHONPATH": ":".join([*root, *known])},
            capture_output=True, text=True, check=True, timeout=200,
        ).stdout.strip()
        for folder, root in zip(folders, roots, strict=True)
    ]  # fmt: skip


@pytest.fixture
def layer(tmp_path):
    """Write a user's module; returns its folder."""
    (tmp_path / "layer.py").write_text(LAYER)
    return tmp_path


def test_elsewhere_and_installed_again(layer):
    """Another directory and another copy of tilewise have HITs, without numba.cuda."""
    (layer / "other").mkdir()
    home, again = Path(tilewise.__file__).parent, layer / "again" / "tilewise"
    shutil.copytree(home, again, ignore=shutil.ignore_patterns("*.pyc"))
    roots = [[str(layer)], [str(layer)], [str(again.parent), str(layer)]]
    lines = lines_of(
        SCRIPT, (layer, layer / "other", layer), roots,
        TILEWISE_CACHE_DIR=str(layer / "store"),
    )  # fmt: skip

    told = ("build True", home), ("store False", home), ("store False", again)
    expected = [f"{text} {place}" for text, place in told]
    assert expected == lines


SHIPPED = """
import sys
from importlib import metadata
real = metadata.version
def version(name):
    if name.startswith(("nvidia-", "cuda-", "numba")):
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
from tilewise.device import installed
seen = installed.versions_in
installed.versions_in = lambda place: {
    name: text for name, text in seen(place).items()
    if not name.startswith(("nvidia-", "cuda-", "numba"))
}
for name in ("numba", "cuda", "cupy"):
    sys.modules[name] = None
import numpy as np
from layer import dense
from tilewise import tuned_kernel
from tilewise.errors import EngineError
kernel, x = tuned_kernel(dense), np.ones((3, 4), np.float32)
args = x, np.ones((4, 5), np.float32), np.ones(5, np.float32)
for pin in sys.argv[1:] or ("numba_cuda/global", "cuda_cpp/naive"):
    kernel.pin(pin)
    try:
        print(kernel(*args).tolist() == dense(*args).tolist(), end=" ")
    except EngineError as error:
        print(error)
print(kernel.stats.compiles, kernel.stats.artifact_hits)
"""


def test_a_bundle_without_a_compiler(layer, monkeypatch):
    """Where no compiler is installed a bundle serves calls; other kernels say why."""
    only = (Variant("numba_cuda", "global"),)
    monkeypatch.setattr(NumbaCudaEngine, "variants", lambda *args: only)
    path = layer / "dense.bundle"
    build_ahead([subject()], ("sm_90",), bundle=path)
    served, alone = (
        lines_of(
            SHIPPED, [layer], [[str(layer)]], TILEWISE_DEVICE="emulated",
            TILEWISE_CACHE_DIR=str(layer / store), TILEWISE_BUNDLE=bundle,
        )
        for store, bundle in (("one", str(path)), ("other", ""))
    )  # fmt: skip

    assert ["True True 0 2"] == served
    assert "'numba' is not installed" in alone[0]


def test_kernels_with_axes_have_nothing_to_build():
    """They are left out beside others, and refused alone."""
    axed = tilewise.tuned_kernel(axes={"n": lambda x: x.size})(lambda x: x)
    fused = tilewise.tuned_kernel(lambda x, w: x @ w)
    assert [fused._subject] == subjects_of([axed, fused])
    with pytest.raises(ArgumentError, match="has no code of engines"):
        subjects_of([axed])
