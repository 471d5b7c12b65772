"""
The second system: NVIDIA's persistentProgramCache sample, as `tilewise demo`.

The sample compiles `C = epilogue(A @ B + bias)`, keeps the code on disk, finds it in
the next process and says what each step took. It is walked through on the CPU, in GLSL
and on the emulated device; then what changes a key, and what the sample got wrong: bad
entries that stay, NaN lost in relu, 32-bit indices, no cap, one fixed place.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.api.test_program_cache import damage
from tests.opengl import needs_opengl
from tilewise import RawKernel, tuned_kernel
from tilewise.cli.app import app
from tilewise.cli.demo import EPILOGUES, DemoReport, run_demo
from tilewise.errors import StoreWarning
from tilewise.model.variant import Artifact
from tilewise.runtime.once import resolver
from tilewise.store.stack import open_store

SMALL = (24, 20, 12)
STEPS = ("cache_lookup_ms", "compile_ms", "cache_store_ms", "module_load_ms")


@pytest.fixture(params=["cpu", "glsl", "numba_cuda", "cuda_cpp"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an engine, the CUDA ones on the emulated device."""
    if request.param == "glsl":
        needs_opengl()
    elif request.param != "cpu":
        pytest.importorskip("cuda.core")
        monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    return str(request.param)


@pytest.fixture(autouse=True)
def _new_process() -> None:
    """Have loaded nothing yet."""
    next_process()


def next_process() -> None:
    """Forget what is loaded, as the end of a process does."""
    resolver().workshop.forget()


def demo(
    engine: str = "cpu",
    *,
    epilogue: str = "relu",
    tile: int | None = None,
    arch: str = "",
    sizes: tuple[int, int, int] = SMALL,
) -> DemoReport:
    """Run the demo as in a process of its own."""
    next_process()
    return run_demo(sizes, epilogue, engine, tile, (0, 2), arch)


def test_the_sample_step_by_step(engine: str):
    """MISS with every step, then HIT without compiling; both right, one key."""
    first, second = demo(engine), demo(engine)

    assert ["MISS", "HIT"] == [first.cache_status, second.cache_status]
    assert ["PASSED", "PASSED"] == [first.validation, second.validation]
    assert first.cache_key == second.cache_key
    assert 64 == len(first.cache_key)
    assert 0 < first.artifact_kib == second.artifact_kib
    assert (None, None) == (second.compile_ms, second.cache_store_ms)
    for report in (first, second):
        taken = [getattr(report, name) or 0.0 for name in STEPS]
        assert pytest.approx(sum(taken)) == report.host_preparation_ms
        assert report.max_error is not None
        assert report.max_error < 1e-3


def test_the_printed_fields_are_the_sample_s():
    """24 digits of the key, sizes in KiB, "skipped" for a compilation that was not."""
    words = ["demo", "--m", "24", "--n", "20", "--k", "12", "--iterations", "2"]
    runs = []
    for _ in range(2):
        next_process()
        done = CliRunner().invoke(app, words)
        assert 0 == done.exit_code, done.output
        pairs = (line.partition(":") for line in done.output.splitlines()[1:])
        runs.append({label: text.strip() for label, _, text in pairs})
    miss, hit = runs

    assert ("MISS", "HIT") == (miss["Cache status"], hit["Cache status"])
    assert ("skipped", False) == (hit["Compile time"], "Cache store" in hit)
    assert 24 + len("...") == len(hit["Cache key"])
    assert "C = relu(A @ B + bias)" == hit["Workload"]
    assert "A 24 x 12, B 12 x 20" == hit["Matrix sizes"]
    assert ("2", "PASSED") == (hit["Timed launches"], hit["Validation"])
    assert hit["Artifact size"].endswith(" KiB")


DEFAULTS = {"m": 512, "n": 512, "k": 512, "epilogue": "relu", "warmup": 5,
            "iterations": 20, "device": 0}  # fmt: skip


def test_the_defaults_are_the_sample_s():
    """Sizes, epilogue, device, warm-up and timed launches."""
    from typer.main import get_command

    given = {p.name: p.default for p in get_command(app).commands["demo"].params}

    assert DEFAULTS == {name: given[name] for name in DEFAULTS}


@pytest.mark.parametrize(
    "words",
    [["--m", "0"], ["--k", "-3"], ["--epilogue", "gelu"], ["--tile-size", "7"],
     ["--engine", "vulkan"]],
    ids=" ".join,
)  # fmt: skip
def test_what_is_no_option_is_refused(words: list[str]):
    """Nothing runs, and the exit code is not 0."""
    done = CliRunner().invoke(app, ["demo", *words])

    assert 0 != done.exit_code
    assert [] == open_store().entries()


# What changes a key.


def test_another_epilogue_is_another_key(engine: str):
    """Its code is another."""
    keys = {demo(engine, epilogue=name).cache_key for name in EPILOGUES}

    assert len(EPILOGUES) == len(keys)


def test_other_sizes_are_the_same_key(engine: str):
    """A size is data: the second problem is a HIT."""
    first, second = demo(engine), demo(engine, sizes=(33, 17, 9))

    assert first.cache_key == second.cache_key
    assert ("HIT", "PASSED") == (second.cache_status, second.validation)


@pytest.mark.parametrize(
    ("name", "tiles"), [("numba_cuda", (8, 16)), ("cuda_cpp", (32, 64))]
)
def test_another_tile_size_is_another_key(name: str, tiles: tuple[int, ...]):
    """Built ahead for a device that is not here."""
    pytest.importorskip("cuda.core")
    found = [demo(name, tile=tile, arch="sm_90") for tile in tiles]

    assert len(tiles) == len({report.cache_key for report in found})
    assert ["MISS"] * len(tiles) == [report.cache_status for report in found]


@pytest.mark.parametrize("name", ["numba_cuda", "cuda_cpp"])
def test_another_arch_is_another_key(name: str):
    """sm_90 is neither sm_80 nor sm_90a."""
    pytest.importorskip("cuda.core")
    archs = ("sm_80", "sm_90", "sm_90a")

    assert 3 == len({demo(name, arch=arch).cache_key for arch in archs})


SAMPLE = """
extern "C" __global__ void matmul_epilogue(
    const float* A, const float* B, const float* bias, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float acc = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        int a_col = t * TILE + threadIdx.x, b_row = t * TILE + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < M && a_col < K
            ? A[(size_t)row * K + a_col] : 0.0f;
        Bs[threadIdx.y][threadIdx.x] = b_row < K && col < N
            ? B[(size_t)b_row * N + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) acc += As[threadIdx.y][i] * Bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) {
        float value = acc + bias[col];
        C[(size_t)row * N + col] = EPILOGUE;
    }
}
"""


def raw(
    tile: int = 16, epilogue: str = "value < 0.0f ? 0.0f : value", *options: str
) -> RawKernel:
    """Return the sample's own kernel, with its relu mended for NaN."""
    source = SAMPLE.replace("TILE", str(tile)).replace("EPILOGUE", epilogue)
    return RawKernel(source, "matmul_epilogue", options)


def test_the_sample_s_own_kernel_is_a_miss_then_a_hit(monkeypatch):
    """Its CUDA C++ as it stands, run on the emulated device."""
    pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    from tests.api.test_raw import on_device

    random = np.random.default_rng(123)
    a, b, bias = (random.random(s, np.float32) - 0.5 for s in ((20, 9), (9, 33), 33))
    bias[3] = np.nan
    for origin in ("build", "store"):
        kernel, c = raw(), on_device(np.zeros((20, 33), np.float32))
        kernel[(3, 2), (16, 16)](*map(on_device, (a, b, bias)), c, 20, 33, 9)
        assert origin == kernel.origin
        np.testing.assert_allclose(c.get(), np.maximum(a @ b + bias, 0), atol=1e-3)


def test_source_tile_epilogue_and_options_of_a_raw_kernel_are_in_its_key(monkeypatch):
    """Each change compiles anew; the first one is still there at the end."""
    pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    kernels = [
        raw(),
        raw(32),
        raw(16, "value"),
        raw(16, "value", "--fmad=false"),
        raw(),
    ]
    for kernel in kernels:
        kernel.compile()

    assert ["build"] * 4 + ["store"] == [kernel.origin for kernel in kernels]


# What the sample got wrong.


def kept(key: str) -> Artifact:
    """Return what the store has under a key."""
    found = open_store().artifact(key)
    assert found is not None
    return found


def test_an_entry_that_does_not_load_is_evicted_and_rebuilt(engine: str):
    """A HIT that can't be loaded is one warning and a compilation, not an error."""
    key = demo(engine).cache_key
    bad = replace(kept(key), code=b"\x7fELF no code", text=b"no PTX")
    open_store().keep_artifact(key, bad)

    with pytest.warns(StoreWarning):
        again = demo(engine)

    assert ("MISS", "PASSED") == (again.cache_status, again.validation)
    assert ("HIT", "PASSED") == (demo(engine).cache_status, demo(engine).validation)
    assert bad.code != kept(key).code


def test_a_damaged_file_is_a_miss(tmp_path: Path):
    """The checksum finds one flipped bit in what lies on disk."""
    demo()
    damage(tmp_path / "store")

    with pytest.warns(StoreWarning):
        again = demo()

    assert ("MISS", "PASSED") == (again.cache_status, again.validation)


def test_code_with_wrong_results_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    """The sample stores before it checks: wrong code was a HIT for ever."""
    import tilewise.cli.demo as module

    real = module.check
    monkeypatch.setattr(module, "check", lambda *args: (real(*args)[0], False))
    with pytest.warns(StoreWarning, match="wrong"):
        failed = demo()
    monkeypatch.setattr(module, "check", real)

    assert ("MISS", "FAILED") == (failed.cache_status, failed.validation)
    assert [] == open_store().entries()
    assert ("MISS", "PASSED") == (demo().cache_status, demo().validation)


def test_nan_survives_relu(engine: str):
    """As in the reference, np.maximum; infinities too."""
    kernel = tuned_kernel(EPILOGUES["relu"])
    kernel.pin(demo(engine).variant)
    a, b = np.ones((5, 3), np.float32), np.ones((3, 4), np.float32)
    bias = np.array([np.nan, -np.inf, np.inf, -9], np.float32)
    a[2, 1] = np.nan

    assert np.array_equal(kernel.reference(a, b, bias), kernel(a, b, bias), True)


def test_rows_beyond_2_31_elements_are_read_right(tmp_path: Path):
    """Indices have 64 bits: the third row begins at 2^31 + 64 elements."""
    step = (1 << 30) + 32
    whole = np.memmap(tmp_path / "sparse", np.float32, "w+", shape=(3, step))
    whole[:, :8] = np.arange(24).reshape(3, 8)
    a, b = np.asarray(whole)[:, :8], np.ones((8, 4), np.float32)
    bias = np.zeros(4, np.float32)
    kernel = tuned_kernel(EPILOGUES["identity"])
    for variant in ("cpu/small", "cpu/packed threads=1"):
        kernel.pin(variant)
        assert np.array_equal([[28] * 4, [92] * 4, [156] * 4], kernel(a, b, bias))


def test_indices_of_cuda_kernels_have_64_bits():
    """Both engines hand sizes and strides over as int64."""
    from tilewise.engines.gpu.params import parameters
    from tilewise.runtime.question import Options, Subject, ask

    subject = Subject(EPILOGUES["relu"], "demo", ("a", "b", "bias"), Options())
    shapes = ((4, 3), (3, 5), (5,))
    posed = ask(subject, tuple(np.ones(s, np.float32) for s in shapes)).problem
    dtypes = {p.dtype for p in parameters(posed) if not p.pointer}

    assert {"int64"} == dtypes


def test_the_store_is_capped(monkeypatch: pytest.MonkeyPatch):
    """What was used last stays, and the whole is never over the cap."""
    monkeypatch.setenv("TILEWISE_CACHE_MAX_BYTES", str(1 << 20))
    store = open_store()
    for number in range(12):
        random = np.random.default_rng(number).bytes(1 << 17)
        store.keep_artifact(f"{number:064d}", Artifact("ptx", "entry", random))
    last = demo()
    used = sum(p.stat().st_size for p in Path(str(store.directory)).rglob("*.val"))

    assert used <= 1 << 20
    assert store.artifact(f"{0:064d}") is None
    assert ("HIT", last.cache_key) == (demo().cache_status, demo().cache_key)


def test_the_store_s_place_is_configurable(tmp_path: Path, monkeypatch):
    """--cache-dir with ~ and .., and only our own files are cleared there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "not here"))
    (tmp_path / "place").mkdir(mode=0o700)
    (tmp_path / "place" / "mine.txt").write_text("keep")
    small = ["--m", "24", "--n", "20", "--k", "12", "--iterations", "2", "--json"]
    place = ["--cache-dir", "~/other/../place", *small]
    statuses = []
    for words in (place, place, [*place, "--clear-cache"]):
        next_process()
        done = CliRunner().invoke(app, ["demo", *words])
        statuses.append(json.loads(done.output)["cache_status"])

    assert ["MISS", "HIT", "MISS"] == statuses
    assert not (tmp_path / "not here").exists()
    assert "keep" == (tmp_path / "place" / "mine.txt").read_text()


def test_an_unusable_place_is_not_fatal(tmp_path: Path, monkeypatch):
    """A file where the directory should be: one warning, and the demo passes."""
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "file"))

    with pytest.warns(StoreWarning):
        report = demo()

    assert ("MISS", "PASSED") == (report.cache_status, report.validation)


def test_the_report_is_also_json():
    """Every field of the dataclass, numbers as numbers."""
    small = ["--m", "24", "--n", "20", "--k", "12", "--iterations", "2", "--json"]
    done = CliRunner().invoke(app, ["demo", *small])
    told: dict[str, Any] = json.loads(done.output)

    assert set(asdict(demo())) == set(told)
    assert isinstance(told["kernel_ms"], float)
