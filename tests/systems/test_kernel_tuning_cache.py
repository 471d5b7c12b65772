"""
A kernel tuning cache, as its users know it: step by step through one example.

The steps are those of pyutilz.performance.kernel_tuning: several implementations of
one function, chosen by the sizes of a call, measured once for a machine, kept on disk
and found by every later process. Each test is a step with the result that it promises.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import ArgumentError, DecisionStore, TilewiseError, retune_all

MODULE = '''
"""Sums of squares in three ways: NumPy, in chunks, and wrong."""
import numpy as np
from tilewise import tuned_kernel

def make_inputs(n):
    return (np.linspace(0.0, 1.0, n),)

@tuned_kernel(axes={"n": lambda x: x.size}, make_inputs=make_inputs, budget_s=3.0,
              sizes=[{"n": 10_000}])
def squares(x):
    total = 0.0
    for part in np.array_split(x, 100):
        total += float(sum(part * part))
    return total

@squares.variant(where="host")
def dot(x):
    return float(x @ x)

@squares.variant(where="host", block=[16, 64], valid=lambda n, block: block < n)
def chunked(x, *, block):
    starts = range(0, x.size, block)
    return float(sum(x[at : at + block] @ x[at : at + block] for at in starts))

@squares.variant
def nothing(x):
    return float("nan")
'''
CALL = (
    "import numpy as np, squares_of; x = np.linspace(0, 1, 10_000); k = squares_of."
    "squares; k(x); k(x); print(k.explain(x).variant, k.stats.tunings)"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a module of one kernel, as a user's program has it."""
    (tmp_path / "squares_of.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "squares_of", raising=False)
    return tmp_path


def program(project: Path, code: str = CALL) -> list[str]:
    """Run a program in a process of its own and return the words that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        check=False, cwd=project,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout.split()


def kernel(project: Path) -> Any:
    """Return the module's kernel in this process."""
    sys.modules.pop("squares_of", None)
    import squares_of

    return squares_of.squares


X = np.linspace(0, 1, 10_000)


def test_nothing_is_measured_before_the_first_call(project: Path) -> None:
    """A lookup of an untuned kernel is the fallback, with the reason."""
    told = kernel(project).explain(n=10_000)
    assert ("reference", "none") == (str(told.variant), told.grade)
    assert "the next call measures" in told.reason


def test_a_lookup_never_sweeps(project: Path) -> None:
    """Where tuning is off the function serves and nothing is written."""
    one = kernel(project)
    with tilewise.tuning("off"):
        assert one.reference(X) == one(X)
    assert (0, "none") == (one.stats.tunings, one.explain(X).grade)


def test_the_first_process_sweeps_and_the_next_ones_do_not(project: Path) -> None:
    """One measurement serves every call of later processes too."""
    first, second = program(project), program(project)
    assert ["user/dot", "1"] == first
    assert ["user/dot", "0"] == second


def test_processes_that_start_together_sweep_once(project: Path) -> None:
    """The one that comes second uses what there is meanwhile, and loses nothing."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CALL], stdout=subprocess.PIPE, text=True, cwd=project
        )
        for _ in range(2)
    ]
    told = [one.communicate(timeout=120)[0].split() for one in running]
    assert [0, 0] == [one.returncode for one in running]
    assert 1 == sum(int(words[-1]) for words in told)
    assert ["user/dot", "0"] == program(project)


def test_the_decision_has_its_region_and_evidence(project: Path) -> None:
    """Region, figures with intervals, and why the others were not taken."""
    one = kernel(project)
    one(X)
    told = one.explain(X)
    assert "8192 <= n <= 16383" in str(told.region[0])
    status = {str(c.variant): c.status for c in told.candidates}
    assert {"reference", "user/dot", "user/chunked block=64"} <= status.keys()
    timing = next(c.timing for c in told.candidates if c.variant == told.variant)
    assert timing.low_us <= timing.median_us <= timing.high_us


def test_a_variant_that_gives_nan_never_wins(project: Path) -> None:
    """Every result is compared; NaN is not within any tolerance."""
    one = kernel(project)
    one(X)
    (wrong,) = [c for c in one.explain(X).candidates if c.variant.method == "nothing"]
    assert ("wrong", None) == (wrong.status, wrong.timing)
    assert "nan where" in wrong.reason


def test_changed_code_is_measured_again(project: Path) -> None:
    """Another body of the function or of a variant is another code version."""
    program(project)
    place = project / "squares_of.py"
    place.write_text(MODULE.replace("float(x @ x)", "float(np.dot(x, x))"))
    assert "1" == program(project)[1]
    place.write_text(place.read_text().replace("(x, 100)", "(x, 90)"))
    assert "1" == program(project)[1]
    place.write_text(place.read_text() + "# a comment\n")
    assert "0" == program(project)[1]


def test_another_driver_or_library_is_measured_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision says what it was made with, and what changed makes it stale."""
    one = kernel(project)
    one(X)
    from tilewise.runtime.once import resolver

    changed = (*((k, v) for k, v in tilewise.provenance() if k != "numpy"),
               ("numpy", "0.1"))  # fmt: skip
    monkeypatch.setattr(resolver(), "provenance_of", lambda: changed)
    assert "stale, numpy" in one.explain(X).reason


def test_a_choice_can_be_forced(project: Path) -> None:
    """A pin is obeyed or refused by name, never ignored."""
    one = kernel(project)
    one.pin("user/chunked block=16")
    one(X)
    assert {"user/chunked block=16": 1} == one.stats.dispatches
    with pytest.raises(TilewiseError, match="squares has reference, user/dot"):
        one.pin("user/no_such_backend")


def test_everything_is_tuned_again_in_one_pass(project: Path) -> None:
    """retune_all measures what a module has, and with force what is decided too."""
    report = retune_all("squares_of", devices=["cpu"], progress=False)
    assert "squares on cpu: 1 problem, user/dot" in str(report)
    assert () == report.failures
    one = kernel(project)
    assert "measured" == one.explain(X).grade


def test_regions_that_the_caller_measured() -> None:
    """Own sweeps are stored as regions: the first that takes a point serves."""
    store = DecisionStore.load_or_create()
    assert store.lookup("joint_hist", n_samples=10, location="host") is None
    regions = [
        {"location_eq": "device", "n_samples_max": 10_000, "variant": "shared"},
        {"location_eq": "device", "variant": "global"},
        {"n_samples_max": None, "variant": "numba"},
    ]
    store.update("joint_hist", axes=("n_samples", "location"), regions=regions)
    found = [
        store.lookup("joint_hist", n_samples=n, location=place)
        for n, place in ((10_000, "device"), (10_001, "device"), (5, "host"))
    ]
    assert [{"variant": v} for v in ("shared", "global", "numba")] == found
    told = store.lookup_explain("joint_hist", n_samples=5, location="host")
    assert (True, 2) == (told.matched, told.region_index)
    assert "region 2 is the first that takes" in told.reason
    assert (True, regions) == (store.has("joint_hist"), store.get_regions("joint_hist"))
    assert store.evict("joint_hist")
    assert not store.has("joint_hist")


@pytest.mark.parametrize(
    "axes", [{}, {"n_sample": 5}, {"n_samples": float("nan")}, {"n_samples": -1}]
)
def test_a_wrong_lookup_is_an_error(axes: dict[str, float]) -> None:
    """An axis that is missing, misspelt or no number never matches by accident."""
    store = DecisionStore.load_or_create()
    regions = [{"n_samples_max": 9, "variant": "a"}, {"variant": "b"}]
    store.update("h", axes=("n_samples",), regions=regions)
    with pytest.raises(ArgumentError):
        store.lookup("h", **axes)


def test_the_machine_has_a_name() -> None:
    """The fingerprint names CPU, threads and GPU, and is read anew in each process."""
    told = tilewise.hw_fingerprint()
    assert told.startswith("cpu_")
    assert "_gpu_" in told or told.endswith("_no-gpu")
