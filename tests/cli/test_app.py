"""The command line, run as a user runs it: in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewise import __version__
from tilewise.cli.app import main
from tilewise.store.records import SCHEMA, frame

MODULE = """
import numpy as np
from tilewise import tuned_kernel

@tuned_kernel(budget_s=0.05)
def dense(x, w, b):
    return np.maximum(x @ w + b, 0)

class Layer:
    @tuned_kernel(budget_s=0.05)
    def forward(self, x):
        return np.maximum(x @ self.w + self.b, 0)
"""
OWN = """
from tilewise import tuned_kernel

@tuned_kernel(axes={"n": len}, make_inputs=lambda n: [1.0] * n)
def own(x):
    return sum(x)
"""
BLOCK = "import sys; sys.modules['numba'] = None; "
RUN = "from tilewise.cli.app import main; main()"


def tilewise(
    where: Path, *words: str, before: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a directory."""
    return subprocess.run(
        [sys.executable, "-c", before + RUN, *words],
        capture_output=True, text=True, timeout=120, check=False, cwd=where,
        env={**os.environ, "COLUMNS": "200", **env},
    )  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a directory with a module of kernels and a bundle of a newer schema."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "owned.py").write_text(OWN)
    (tmp_path / "torn.py").write_text("import os\ndef torn(:\n    pass\n")
    newer = frame("bundle", b"", schema=SCHEMA + 1)
    (tmp_path / "newer.tw").write_bytes(newer)
    return tmp_path


@pytest.fixture
def here(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    """Be in the project, in this process; what it imports is forgotten afterwards."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield monkeypatch
    sys.modules.pop("mine", None)


def test_demo_is_a_miss_then_a_hit_without_numba(tmp_path: Path) -> None:
    """A second process finds the code, even where numba can't be imported."""
    words = ("demo", "--m", "64", "--n", "64", "--k", "64", "--json")
    first = tilewise(tmp_path, *words)
    second = tilewise(tmp_path, *words, before=BLOCK)
    assert (0, 0) == (first.returncode, second.returncode), second.stderr
    reports = [json.loads(done.stdout) for done in (first, second)]
    assert ["MISS", "HIT"] == [r["cache_status"] for r in reports]
    assert ["PASSED", "PASSED"] == [r["validation"] for r in reports]
    assert reports[1]["compile_ms"] is None


def test_demo_prints_the_samples_fields(tmp_path: Path) -> None:
    """Every field of the sample that the engine has is printed."""
    done = tilewise(tmp_path, "demo", "--m", "32", "--n", "32", "--k", "32")
    labels = {line.split(":")[0] for line in done.stdout.splitlines()[1:]}
    wanted = {
        "Device", "Compute Capability", "Cache directory", "Workload", "Matrix sizes",
        "Tile size", "Timed launches", "Cache status", "Cache key", "Artifact size",
        "Cache lookup", "Compile time", "Cache store", "Module load", "Host prep time",
        "Kernel time", "Max error", "Validation",
    }  # fmt: skip
    assert set() == wanted - labels


def test_demo_clears_and_changes_with_the_epilogue(tmp_path: Path) -> None:
    """--clear-cache makes a MISS again; another epilogue has another key."""
    words = ("demo", "--m", "32", "--n", "32", "--k", "32", "--json")
    runs = [tilewise(tmp_path, *words, *more) for more in
            ((), ("--clear-cache",), ("--epilogue", "identity"))]  # fmt: skip
    reports = [json.loads(done.stdout) for done in runs]
    assert ["MISS"] * 3 == [r["cache_status"] for r in reports]
    assert reports[0]["cache_key"] == reports[1]["cache_key"] != reports[2]["cache_key"]


CUDA = ("demo", "--engine", "cuda_cpp", "--json")
SMALL = ("--m", "24", "--n", "20", "--k", "12", "--iterations", "2", "--warmup", "0")


def test_demo_builds_for_a_device_that_is_not_here(tmp_path: Path) -> None:
    """MISS, then HIT with the artifact's figures, and that nothing was run."""
    words = (*CUDA, "--arch", "sm_90", "--tile-size", "32")
    first, second = (
        json.loads(tilewise(tmp_path, *words, TILEWISE_DEVICE="none").stdout)
        for _ in range(2)
    )
    assert ["MISS", "HIT"] == [first["cache_status"], second["cache_status"]]
    assert (17408, 0) == (second["shared_bytes"], second["spill_bytes"])
    assert 0 < first["registers"] == second["registers"]
    told = "nothing was run: there is no CUDA device here"
    assert (told, 0) == (second["validation"], second["timed_launches"])


def test_demo_runs_on_the_emulated_device(tmp_path: Path) -> None:
    """Small sizes end in PASSED there; another arch than its own is only built."""
    run, other = (
        json.loads(tilewise(tmp_path, *words, TILEWISE_DEVICE="emulated").stdout)
        for words in ((*CUDA, *SMALL), (*CUDA, "--arch", "sm_80"))
    )
    assert ("PASSED", "MISS") == (run["validation"], run["cache_status"])
    assert "nothing was run: the device here is sm_90" == other["validation"]


def test_demo_finds_a_nan_that_was_lost(tmp_path: Path) -> None:
    """A kernel that loses the planted NaN ends in FAILED and a status of 1."""
    losing = (
        "import numpy as np, tilewise.cli.demo as d; real = d.check; "
        "d.check = lambda run, *rest: real(lambda *a: np.nan_to_num("
        "run(*a), copy=False), *rest); "
    )
    words = ("demo", "--json", *SMALL)
    done = tilewise(tmp_path, *words, before=losing)
    assert (1, "FAILED") == (done.returncode, json.loads(done.stdout)["validation"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("demo", "--tile-size", "16"), "--tile-size 16"),
        (("demo", "--engine", "abacus"), "--engine abacus"),
        (("demo", "--engine", "cuda_cpp"), "--arch builds for one"),
        (("demo", "--engine", "cuda_cpp", "--arch", "sm_20"), "known are sm_75"),
        (("demo", "--arch", "sm_90"), "the CPU is this one"),
        (("demo", "--epilogue", "gelu"), "identity, relu"),
        (("demo", "--m", "0"), "--m"),
        (("tune", "nowhere", "--shapes", "4x4x4"), "can't import nowhere"),
        (("tune", "mine:other", "--shapes", "4x4x4"), "it has dense"),
        (("tune", "mine", "--shapes", "4x4"), "is not MxNxK"),
        (("tune", "mine", "--shapes", "4x4x4", "--budget", "0"), "budget"),
        (("tune", "mine", "--shapes", "4x4x-4"), "is not MxNxK"),
        (("tune", "mine:Layer.w", "--shapes", "4x4x4"), "no attribute 'w'"),
        (("tune", "mine", "--shapes", "4x4x4", "--residency", "moon"), "host or"),
        (("tune", "mine", "--shapes", "4x4x4", "--signature", "(m)"), "(m,k),(k,n)"),
        (("tune", "nowhere.py", "--shapes", "4x4x4"), "no file nowhere.py"),
        (("explain", "mine", "--shape", "4x4x4"), "MODULE:NAME"),
        (("explain", "mine", "--shapes", "4x4x4"), "MODULE:NAME"),
        (("tune", "mine", "--shape", "4x4"), "is not MxNxK"),
        (("show", "nothing"), "nothing is decided"),
        (("cache", "import", "mine.py"), "no record"),
        (("cache", "import", "newer.tw"), "of a newer schema"),
        (("cache", "import", "none.tw"), "none.tw"),
        (("cache", "export", "none/all.tw"), "can't write none/all.tw"),
        (("frobnicate",), "No such command"),
        (("explain", "owned:own", "--shape", "4", "--dtype", "f8"), "for products"),
        (("explain", "torn.py:k", "--shape", "4x4x4"), "torn.py:2: "),
        (("explain", "mine"), "Missing option '--shape"),
        (("tune", "mine"), "dense states no sizes"),
        (("tune", "mine", "--shapes", "4x4x4", "--ranges", "m=1-4"), "not both"),
        (("tune", "mine", "--ranges", "m=1-4"), "ranges={'m': (1, 4)}"),
        (("cache",), "Missing command"),
        (("show", "--plot"), "requires an argument"),
        (("tune", "mine:dense", "--shapes", f"{2**40}x1x{2**10}"), "x of shape"),
        (("tune", "mine:dense", "--shapes", f"{2**60}x1x{2**60}"), "x of shape"),
    ],
    ids=" ".join,
)
def test_usage_errors_are_one_line_and_exit_code_2(
    here: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    """No traceback; the message names what was wrong."""
    here.setattr(sys, "argv", ["tilewise", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert 2 == ended.value.code
    assert told in error
    assert ["tilewise"] == [line.split(":")[0] for line in error.splitlines()]


def test_ranges_are_swept(project: Path) -> None:
    """The regions reach over the range, and are told as JSON."""
    words = ("mine:dense", "--ranges", "m=1-16,n=8,k=8", "--budget", "0.5", "--json")
    done = tilewise(project, "tune", *words)
    assert 0 == done.returncode, done.stderr
    (sweep,) = json.loads(done.stdout)
    assert ["1 <= m <= 16", "n = 8", "k = 8"] == sweep["box"]
    assert {"variant", "region", "regret", "grade"} == set(sweep["regions"][0])


def test_stored_winners_are_checked(project: Path) -> None:
    """What is stored is measured again and reported; sizes are not to be given."""
    tilewise(project, "tune", "mine:dense", "--shapes", "8x8x8")
    done = tilewise(project, "tune", "mine:dense", "--check", "--json")
    (told,) = json.loads(done.stdout)
    assert (0, {"m": 8, "n": 8, "k": 8}) == (
        done.returncode,
        told["checked"][0]["point"],
    )
    for words in (("--shapes", "8x8x8"), ("--dtype", "float64")):
        wrong = tilewise(project, "tune", "mine", "--check", *words)
        assert (2, True) == (
            wrong.returncode,
            "give no sizes nor dtype" in wrong.stderr,
        )


def test_a_method_is_tuned_by_its_class(project: Path) -> None:
    """What it reads from self is taken for arrays, and the table says so."""
    words = ("mine:Layer.forward", "--shapes", "8x8x8", "--json")
    done = tilewise(project, "tune", *words)
    assert 0 == done.returncode, done.stderr
    (told,) = json.loads(done.stdout)
    assert ("Layer.forward", "measured") == (told["kernel"], told["grade"])
    assert "(m,k),(k,n),(n)->(m,n)" == told["assumed"]


def test_debug_shows_the_traceback(project: Path) -> None:
    """--debug is for those who want to see where."""
    for words in (("tune", "mine:other", "--shapes", "4x4x4"),
                  ("cache", "import", "newer.tw")):  # fmt: skip
        assert "Traceback" in tilewise(project, *words, "--debug").stderr


def test_tune_then_show_explain_export_and_import(project: Path) -> None:
    """The store's life: tuned, shown, explained, moved to another place."""
    tuned = tilewise(project, "tune", "mine:dense", "--shapes", "8x8x8,64x32x16")
    assert 0 == tuned.returncode, tuned.stderr
    assert "problem 2 of 2" in tuned.stderr
    rows: Any = json.loads(tilewise(project, "show", "--json").stdout)
    assert {"dense"} == {row["kernel"] for row in rows}
    told = tilewise(project, "explain", "mine:dense", "--shape", "8x8x8", "--json")
    assert "measured" == json.loads(told.stdout)[0]["grade"]
    for name in ("one.tw", "two.tw"):
        assert 0 == tilewise(project, "cache", "export", name).returncode
    assert (project / "one.tw").read_bytes() == (project / "two.tw").read_bytes()
    other = {"TILEWISE_CACHE_DIR": str(project / "other")}
    assert 0 == tilewise(project, "cache", "import", "one.tw", **other).returncode
    words = ("explain", "mine:dense", "--shape", "8x8x8", "--json")
    moved = tilewise(project, *words, **other)
    assert "measured" == json.loads(moved.stdout)[0]["grade"]


def test_ctrl_c_keeps_what_is_done_and_says_so(project: Path) -> None:
    """Exit code 1, and the first problem is decided for later processes."""
    shapes = ",".join(f"{1 << i}x8x8" for i in range(3, 20))
    words = [sys.executable, "-c", RUN, "tune", "mine:dense", "--shapes", shapes]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=project, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ)
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert "problem 1 of 17" in first
    assert 1 == process.returncode
    assert "then interrupted: what is decided is kept" in told
    rows = json.loads(tilewise(project, "show", "--json").stdout)
    assert 8 in [row["measured_at"]["m"] for row in rows]


def test_a_bundle_serves_read_only(project: Path) -> None:
    """TILEWISE_BUNDLE is a layer below an empty store, code included."""
    tilewise(project, "tune", "mine:dense", "--shapes", "64x64x64")
    tilewise(project, "cache", "export", "all.tw")
    env = {
        "TILEWISE_CACHE_DIR": str(project / "empty"),
        "TILEWISE_BUNDLE": str(project / "all.tw"),
    }
    code = (
        "import numpy as np, mine; a = np.ones((64, 64), 'f4'); "
        "mine.dense(a, a, a[0]); s = mine.dense.stats; print(s.compiles, s.tunings); "
        "raise SystemExit; "
    )
    done = tilewise(project, before=code, **env)
    assert "0 0\n" == done.stdout, done.stderr


def test_info_has_the_fingerprint(tmp_path: Path) -> None:
    """Machine, versions, and settings with where each comes from, as JSON."""
    done = tilewise(tmp_path, "info", "--json", TILEWISE_ENGINES="cpu")
    found = json.loads(done.stdout)
    assert found["fingerprint"].startswith("cpu_")
    assert "numpy" in found["provenance"]
    origins = {one["setting"]: one["from"] for one in found["settings"]}
    assert ("TILEWISE_ENGINES", "default") == (origins["engines"], origins["device"])


def test_the_version_is_the_packages(tmp_path: Path) -> None:
    """Printed by the command line and as an attribute."""
    done = tilewise(tmp_path, "--version")
    assert f"tilewise {__version__}\n" == done.stdout


def test_verify_finds_nothing_in_a_sound_store(project: Path) -> None:
    """Exit code 0 and one line."""
    tilewise(project, "tune", "mine:dense", "--shapes", "8x8x8")
    done = tilewise(project, "cache", "verify")
    assert (0, "every record is whole\n") == (done.returncode, done.stdout)


RACY = """
__global__ void shift(float* x, int n) {
    extern __shared__ float s[];
    int i = threadIdx.x;
    s[i] = x[i];
    %s
    if (i + 1 < n) x[i] = s[i + 1];
}
"""


@pytest.mark.parametrize(("line", "code"), [("__syncthreads();", 0), ("", 1)])
def test_check_finds_a_missing_barrier(tmp_path: Path, line: str, code: int) -> None:
    """A clean kernel exits 0, one without its barrier 1, on any machine."""
    (tmp_path / "shift.cu").write_text('extern "C" ' + (RACY % line).strip())
    done = tilewise(
        tmp_path, "check", "shift.cu", "--shapes", "64x1x1", "--grid", "1",
        "--block", "64", "--shared-bytes", "256", "--arg", "float32[64]",
        "--arg", "int32=m",
    )  # fmt: skip
    assert code == done.returncode, done.stdout + done.stderr
    assert ("race" in done.stdout) == bool(code)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tune", "mine", "--shapes", "4x4x4", "--dtype", "float99"), "float99"),
        (("check", "mine.py:dense"), "is a tuned kernel"),
    ],
    ids=("dtype", "check"),
)
def test_what_a_new_user_mistook_is_said_plainly(
    project: Path, words: tuple[str, ...], told: str
) -> None:
    """A dtype that there is none of, and a kernel that is not CUDA."""
    done = tilewise(project, *words)
    assert (2, False) == (done.returncode, "Traceback" in done.stderr)
    assert told in done.stderr


def test_build_is_a_miss_then_hits(project: Path) -> None:
    """Without a GPU every variant is compiled once; a second run finds them."""
    words = ("build", "mine:dense", "--arch", "sm_90", "--json")
    first, second = (tilewise(project, *words) for _ in range(2))
    assert (0, 0) == (first.returncode, second.returncode), first.stderr
    origins = [{row["origin"] for row in json.loads(d.stdout)} for d in (first, second)]
    assert [{"MISS"}, {"HIT"}] == [o - {"rejected"} for o in origins]


def test_report_sums_what_processes_cost_and_saved(project: Path) -> None:
    """One that tuned, and one that was served 100 ms faster, tell at their end."""
    tilewise(project, "tune", "mine:dense", "--shapes", "64x64x64")
    used = (
        "import numpy as np, mine; a = np.ones((64, 64), 'f4'); "
        "mine.dense(a, a, a[0]); e = list(mine.dense._entries.values())[0]; "
        "e.count, e.saving_us = 1000, 200.0; raise SystemExit; "
    )
    tilewise(project, before=used)
    done = tilewise(project, "report", "--json")
    (row,) = json.loads(done.stdout)
    assert ("dense", 2, 1000) == (row["kernel"], row["processes"], row["calls"])
    assert 1 == row["tunings"]
    assert row["compile_ms"] > 0
    assert 200 == pytest.approx(row["saved_ms"])
    words = tilewise(project, "report").stdout.splitlines()[-1].split()
    assert ["dense", "2", "1000", "1"] == words[:4]
    assert ["200.0", "ms"] == words[-2:]
