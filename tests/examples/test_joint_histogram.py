"""The joint histogram: every implementation, on real data, against scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import mutual_info_score

import tilewise
from tilewise.api.shapes import on_device
from tilewise.examples.joint_histogram import (
    classes,
    joint_histogram,
    make_inputs,
    mutual_information,
    numba_cuda,
    on_gpu,
    scores,
)

BINS = 10
DATA = {"breast cancer": load_breast_cancer, "digits": load_digits}


@pytest.fixture(autouse=True)
def _unpinned() -> Iterator[None]:
    """Leave the kernel as it was."""
    yield
    joint_histogram.unpin()


@pytest.fixture
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device, which raises at the first finding."""
    pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


def column(data: str, number: int) -> tuple[Any, Any]:
    """Return a column of a data set in classes, and its target."""
    features, target = DATA[data](return_X_y=True)
    return classes(features[:, number], BINS), target.astype(np.int32)


@pytest.mark.parametrize("data", DATA)
def test_scores_are_those_of_scikit_learn(data: str) -> None:
    """Every feature's mutual information with the target is mutual_info_score's."""
    features, target = DATA[data](return_X_y=True)
    columns = [classes(one, BINS) for one in features.T]
    expected = [mutual_info_score(x, target) for x in columns]
    with tilewise.tuning("off"):
        found = scores(features, target, BINS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_it_tunes_and_dispatches_the_winner() -> None:
    """On real data the host's variants are measured, and the fastest serves."""
    x, y = column("digits", 21)
    kernel = joint_histogram
    kernel.tune(x, y, BINS, budget_s=2.0)
    told = kernel.explain(x, y, BINS)
    status = {str(c.variant): c.status for c in told.candidates}
    assert ("measured", "measured") == (told.grade, status["user/numba_serial"])
    assert "valid= says no" in str(told)  # Too few samples for threads.
    assert mutual_info_score(x, y) == pytest.approx(
        mutual_information(kernel(x, y, BINS))
    )


@pytest.mark.parametrize("variant", ["user/numba_serial", "user/numba_parallel"])
def test_a_host_variant_counts_what_numpy_counts(variant: str) -> None:
    """Each numba variant equals the reference on 5000 skewed samples."""
    args = make_inputs(5000, 144)
    joint_histogram.pin(variant)
    np.testing.assert_array_equal(
        joint_histogram(*args), joint_histogram.reference(*args)
    )


@pytest.mark.usefixtures("_emulated")
@pytest.mark.parametrize("variant", ["cuda_shared block_size=128", "cuda_global"])
@pytest.mark.parametrize("data", DATA)
def test_a_cuda_variant_counts_what_numpy_counts(variant: str, data: str) -> None:
    """On the emulated device each equals the reference, and nothing is reported."""
    x, y = column(data, 7)
    joint_histogram.pin(f"user/{variant}")
    found = joint_histogram(on_device(x), on_device(y), BINS)
    np.testing.assert_array_equal(found.get(), joint_histogram.reference(x, y, BINS))


@pytest.mark.usefixtures("_emulated")
def test_cuda_variants_are_verified_and_timed_on_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were the emulated device's times worth something, the race would be this."""
    from tilewise.runtime import resolve

    monkeypatch.setattr(resolve, "on_emulated", lambda problem: False)
    x, y = map(on_device, make_inputs(300, 16)[:2])
    joint_histogram.tune(x, y, 4, budget_s=3.0)
    told = {str(c.variant): c for c in joint_histogram.explain(x, y, 4).candidates}
    shared = told["user/cuda_shared block_size=128"]
    assert ("measured", "cuda_event") == (shared.status, shared.timing.protocol.clock)
    assert "takes arguments on the host" in told["user/numba_serial"].reason


def test_the_numba_cuda_kernel_is_clean_on_the_emulated_device() -> None:
    """Its PTX counts what NumPy counts and the sanitizer finds nothing."""
    pytest.importorskip("numba.cuda")
    x, y = column("breast cancer", 3)
    counts = np.zeros((BINS, BINS), np.int64)
    run = tilewise.emulate(on_gpu(), 2, 256, [x, y, counts])
    assert [] == run.reports
    np.testing.assert_array_equal(counts, joint_histogram.reference(x, y, BINS))


@pytest.mark.usefixtures("_emulated")
def test_a_large_histogram_is_not_for_shared_memory() -> None:
    """More than 48 KiB of counts leave the global histogram."""
    x = on_device(np.zeros(10, np.int32))
    names = [str(v) for v in joint_histogram.variants(x, x, 200)]
    assert not any("shared" in name for name in names)
    assert "user/cuda_global block_size=128" in names


@pytest.mark.usefixtures("_emulated")
def test_other_integers_are_not_misread() -> None:
    """The CUDA variants refuse what is not int32."""
    x = on_device(np.zeros(10, np.int64))
    with pytest.raises(TypeError, match="take int32, not int64"):
        numba_cuda(x, x, 3, block_size=256)


def test_importing_the_example_imports_no_compiler() -> None:
    """Numba and CuPy come with the variants that use them."""
    code = (
        "import sys, tilewise.examples.joint_histogram\n"
        "tops = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted({'numba', 'cupy', 'cuda'} & tops))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "[]" == done.stdout.strip()
