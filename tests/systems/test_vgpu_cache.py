"""
The third system: compile once, bind once, dispatch many (a moderngl VGPU cache).

Its script makes a first call, 99 more, one at N = 64 and one at N = 16 again, and
promises right results and a report. It is walked through on a GPU's shader language
and on the CPU; what it got wrong (stale buffers after another size, counts that do not
add up, squares of float32 only) is asked here too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tilewise
from tests.opengl import needs_opengl
from tilewise import tuned_kernel
from tilewise.device import gl
from tilewise.runtime.once import resolver

VARIANTS = ("glsl/plain", "glsl/shared tile=16x16", "cpu/small", "cpu/packed threads=1")


@pytest.fixture(autouse=True)
def _new_process() -> None:
    """Forget the code that other tests have loaded, as a new process has none."""
    resolver().workshop.forget()


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    """Return a variant of an engine, or skip by name where it can't run."""
    if request.param.startswith("glsl"):
        needs_opengl()
    return str(request.param)


def matrices(n: int, seed: int) -> tuple[Any, Any]:
    """Return the script's arguments: two square matrices of small numbers."""
    random = np.random.default_rng(seed)
    a, b = (random.random((n, n), np.float32) for _ in "ab")
    return a, b


def cache(variant: str) -> Any:
    """Return what stands for the script's cache: a kernel with one variant pinned."""

    @tuned_kernel(name=f"matmul of {variant}")
    def matmul(a, b):
        return a @ b

    matmul.pin(variant)
    return matmul


def is_right(result: Any, a: Any, b: Any) -> bool:
    """Say whether a result is within the script's own tolerance."""
    return np.allclose(result, a.astype(np.float64) @ b, rtol=0, atol=1e-3)


def figures(variant: str) -> tuple[int, int, int, int]:
    """Return compiles, hits on disk and in memory, and calls, as report() has them."""
    stats = dict(tilewise.report().kernels)[f"matmul of {variant}"]
    calls = sum(stats.dispatches.values())
    return stats.compiles, stats.artifact_hits, stats.memory_hits, calls


def test_the_script_step_by_step(variant: str):
    """Each step's results and counts; a size is data, so nothing compiles again."""
    kernel = cache(variant)
    a, b = matrices(16, 0)

    assert is_right(kernel(a, b), a, b)  # [1] the first call compiles
    assert (1, 0, 0, 1) == figures(variant)

    for seed in range(1, 100):  # [2] 99 more only run
        a, b = matrices(16, seed)
        assert is_right(kernel(a, b), a, b)
    assert (1, 0, 0, 100) == figures(variant)

    a, b = matrices(64, 100)  # [3] another size finds the code in memory
    assert is_right(kernel(a, b), a, b)
    assert (1, 0, 1, 101) == figures(variant)

    a, b = matrices(16, 101)  # [4] back: no stale buffer, nothing looked up
    assert is_right(kernel(a, b), a, b)
    assert (1, 0, 1, 102) == figures(variant)
    assert {variant: 102} == dict(kernel.stats.dispatches)
    assert 0 == kernel.stats.fallbacks


def test_bound_once_and_dispatched_many_times(variant: str):
    """Two bound sizes called in turn give A, B, A right, each into its own output."""
    kernel = cache(variant)
    bound = {n: kernel.bind(*matrices(n, 0)) for n in (16, 64)}
    out = np.empty((16, 16), np.float32)

    for seed, n in enumerate((16, 64, 16, 64, 16)):
        a, b = matrices(n, seed)
        assert is_right(bound[n](a, b), a, b)
    a, b = matrices(16, 9)
    assert bound[16](a, b, out=out) is out
    assert is_right(out, a, b)
    assert (1, 0, 1, 6) == figures(variant)


def test_bound_constants_stay_on_the_device(variant: str):
    """A constant moves once; later writes to it are not seen, an update is."""
    kernel = cache(variant)
    a, b = matrices(16, 0)
    kept = b.copy()
    with kernel.bind(a, b, constant=("b",)) as bound:
        b[:] = np.nan
        for seed in range(5):
            a, _ = matrices(16, seed)
            assert is_right(bound(a), a, kept)
        bound.update(b=2 * kept)
        assert is_right(bound(a), a, 2 * kept)
    assert 6 == figures(variant)[3]


@pytest.mark.parametrize("constant", [(), ("b",)])
def test_a_bound_call_allocates_no_buffer(constant: Any, monkeypatch):
    """All of them are made when it is bound."""
    needs_opengl()
    kernel = cache("glsl/plain")
    made = []
    context = gl.on_context(lambda found: found)
    kind = type(context)
    real = kind.buffer

    def counted(*args: Any, **more: Any) -> Any:
        made.append(1)
        return real(*args, **more)

    monkeypatch.setattr(kind, "buffer", counted)
    a, b = matrices(16, 0)
    bound = kernel.bind(a, b, constant=constant)
    assert 3 == len(made)
    for seed in range(5):
        a, _ = matrices(16, seed)
        assert is_right(bound(a) if constant else bound(a, b), a, b)
    assert 3 == len(made)


RECTANGLES = ((3, 70, 5), (1, 1, 1), (33, 2, 64), (0, 5, 4), (4, 5, 0))


def test_any_rectangle(variant: str):
    """Also none at all, where the script had squares."""
    kernel, random = cache(variant), np.random.default_rng(0)
    for m, n, k in RECTANGLES:
        a, b = (random.random(s, np.float32) for s in ((m, k), (k, n)))
        assert is_right(kernel(a, b), a, b), (m, n, k)


def test_float64_is_not_narrowed(variant: str):
    """Where an engine has no float64 a pin says so; unpinned another one serves."""
    kernel = cache(variant)
    a, b = (x.astype(np.float64) for x in matrices(16, 0))
    if variant.startswith("glsl"):
        with pytest.raises(tilewise.errors.EngineError, match="a is float64"):
            kernel(a, b)
        kernel.unpin()

    assert np.float64 == kernel(a, b).dtype
    assert np.allclose(kernel(a, b), a @ b, rtol=0, atol=1e-12)


def test_threads_share_one_cache(variant: str):
    """Eight threads of two sizes: one compile, every result its own, all counted."""
    kernel, wrong = cache(variant), []

    def work(number: int) -> None:
        for turn in range(10):
            a, b = matrices(16 + 48 * (number % 2), 10 * number + turn)
            if not is_right(kernel(a, b), a, b):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    compiles, _, _, calls = figures(variant)
    assert (1, 80) == (compiles, calls)


@pytest.mark.parametrize("variant", ["glsl/plain", "cpu/small"], indirect=True)
def test_a_second_process_compiles_nothing(variant: str, tmp_path):
    """What the script had to do again in every process is found on disk."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np\n"
        "from tilewise import tuned_kernel\n"
        "@tuned_kernel\n"
        "def matmul(a, b):\n"
        "    return a @ b\n"
        "matmul.pin(sys.argv[1])\n"
        "a = np.ones((16, 16), 'f4')\n"
        "assert (matmul(a, a) == 16).all()\n"
        "print(matmul.stats.compiles, matmul.stats.artifact_hits)\n"
    )

    def figures_of_a_run() -> list[str]:
        done = subprocess.run(
            [sys.executable, script, variant],
            env=os.environ | {"TILEWISE_CACHE_DIR": str(tmp_path / "own")},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout.split()

    assert [["1", "0"], ["0", "1"]] == [figures_of_a_run(), figures_of_a_run()]


def test_without_a_gpu_the_cpu_serves_and_the_reason_is_told(monkeypatch):
    """No context, no CUDA: never an exception, and explain names each reason."""
    monkeypatch.setattr(gl, "STATE", "no OpenGL 4.3 context: no driver")
    monkeypatch.setattr(gl, "installed", lambda: True)
    monkeypatch.setenv("TILEWISE_DEVICE", "none")

    @tuned_kernel
    def scaled(a, b):
        return a @ b * np.float32(1.0625)

    a, b = matrices(16, 0)
    assert np.allclose(scaled(a, b), a @ b * 1.0625, atol=1e-3)
    told = str(scaled.explain(a, b))
    assert "no OpenGL 4.3 context: no driver" in told
    assert "there is no CUDA device here" in told


def test_what_only_the_reference_can_serve_is_reported_with_its_reason():
    """The fallbacks of a report are calls, each with why."""

    @tuned_kernel
    def whole(a, b):
        return a @ b

    a = np.arange(16).reshape(4, 4)
    for _ in range(3):
        whole(a, a)
    stats = whole.stats

    assert {"reference": 3} == dict(stats.dispatches)
    assert 3 == stats.fallbacks == sum(stats.reasons.values())
    (reason,) = stats.reasons
    assert "a is int64" in reason
    assert f"3 calls by the reference, {reason}" in str(tilewise.report())
