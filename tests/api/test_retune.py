"""Finding the kernels of a package and measuring them all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import ArgumentError, discover, retune_all
from tilewise.api import retune as module
from tilewise.api.retune import places_of
from tilewise.device.driver import Gpu

KERNELS = """
import numpy as np
from tilewise import tuned_kernel

@tuned_kernel(engines=["user"], sizes=[(8, 6, 4)])  # Compiling takes seconds.
def dense(x, w):
    return np.maximum(x @ w, 0)

@tuned_kernel(axes={"n": lambda x: x.size}, budget_s=0.02, sizes=[{"n": 100}],
              make_inputs=lambda n: np.arange(float(n)))
def total(x):
    return x.sum()

@total.variant
def dot(x):
    return np.dot(x, np.ones(x.size))

@tuned_kernel(axes={"n": lambda x: x.size})
def silent(x):
    return x

class Layer:
    @tuned_kernel(engines=["user"], sizes=[(4, 4, 4)])
    def forward(self, x):
        return x @ self.w
"""
FAILING = """
import numpy as np
from tilewise import tuned_kernel

def broken(n):
    raise RuntimeError("no data today")

@tuned_kernel(axes={"n": lambda x: x.size}, sizes=[{"n": 3}], make_inputs=broken)
def failing(x):
    return x
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a package with kernels, one that fails, and a module that can't import."""
    name = f"shop_{tmp_path.name.replace('-', '_')}"
    root = tmp_path / name
    (root / "deep").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "__main__.py").write_text("raise SystemExit('ran')")
    (root / "kernels.py").write_text(KERNELS)
    (root / "deep" / "__init__.py").write_text("")
    (root / "deep" / "more.py").write_text(FAILING)
    (root / "torn.py").write_text("import no_such_module_here")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for loaded in [one for one in sys.modules if one.startswith(name)]:
        del sys.modules[loaded]


def names(found: Any) -> list[str]:
    """Return the kernels' names in order."""
    return sorted(kernel.__qualname__ for kernel in found)


def test_discover_lists_the_kernels_of_all_modules(package: str) -> None:
    """Modules below are imported; __main__ is not run."""
    found = discover(package)
    assert ["Layer.forward", "dense", "failing", "silent", "total"] == names(found)
    assert 5 == len(found)
    assert str(found).startswith(f"{package}: 5 kernels\n")
    assert str(replace(found, kernels=found.kernels[:1])).startswith(
        f"{package}: 1 kernel\n"
    )


def test_a_module_that_fails_to_import_is_reported(package: str) -> None:
    """Its error is listed beside the kernels of the others."""
    (name, error), = discover(package).failures  # fmt: skip
    assert f"{package}.torn" == name
    assert "no_such_module_here" in error
    assert f"can't import {name}" in str(discover(package))


def test_a_package_that_is_not_there() -> None:
    """The package itself has to be importable."""
    with pytest.raises(ArgumentError, match="can't import no_such_package"):
        discover("no_such_package")


def test_retune_all_measures_what_states_sizes(package: str) -> None:
    """Each kernel is measured; failures are named last and stop nothing."""
    report = retune_all(package, devices=["cpu"], progress=False)
    done = {one.kernel.partition(":")[2]: one for one in report.done}
    for name in ("dense", "total", "Layer.forward"):
        assert 1 == len(done[name].report.resolutions), done[name]
    assert "measured" == done["total"].report.resolutions[0].grade
    assert "states no sizes" in done["silent"].skipped
    assert 2 == len(report.failures)
    last = str(report).splitlines()[-2:]
    assert all(line.startswith("failed: ") for line in last)
    assert "no data today" in last[1]


def test_what_is_decided_is_not_measured_again(package: str) -> None:
    """A second pass measures nothing, a forced one everything."""
    retune_all(package, devices=["cpu"], progress=False)
    total = next(k for k in discover(package) if k.__qualname__ == "total")
    retune_all(package, devices=["cpu"], progress=False)
    assert 1 == total.stats.tunings
    retune_all(package, devices=["cpu"], progress=False, force=True)
    assert 2 == total.stats.tunings


def test_decided_sizes_come_before_stated_ones(package: str) -> None:
    """What a program has called is what is measured again."""
    found = discover(package)
    total = next(k for k in found if k.__qualname__ == "total")
    total(np.arange(3000.0))
    report = retune_all(package, devices=["cpu"], progress=False, force=True)
    points = [
        r.problem.point
        for one in report.done
        if one.kernel.endswith(":total")
        for r in one.report.resolutions
    ]
    assert [(("n", 3000),)] == points


def test_each_kind_of_gpu_is_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two GPUs with one fingerprint the first stands for both."""
    cards = [Gpu(name, (9, 0), 132) for name in ("H200", "H200", "A100")]
    monkeypatch.setattr(module, "visible_gpus", lambda: tuple(cards))
    monkeypatch.setattr(module, "hw_fingerprint", lambda number: cards[number].slug)
    assert [("cpu", None), ("GPU 0 (H200)", 0), ("GPU 2 (A100)", 2)] == places_of(None)
    assert [("GPU 1 (H200)", 1)] == places_of([1])


@pytest.mark.parametrize("device", ["gpu", 7, -1, True])
def test_a_device_that_is_not_there(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what is."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    with pytest.raises(ArgumentError, match="use 'cpu' or a GPU's number"):
        retune_all("tilewise.examples", devices=[device])


def test_tune_without_sizes_takes_the_stated_ones(package: str) -> None:
    """tune() alone measures what the decorator states."""
    total = next(k for k in discover(package) if k.__qualname__ == "total")
    assert 1 == len(total.tune(progress=False).resolutions)


@pytest.mark.parametrize("sizes", [[(1, 2)], [{"m": 1}], 3])
def test_wrong_sizes_are_refused(sizes: Any) -> None:
    """The decorator says which axes its sizes have."""
    with pytest.raises(ArgumentError, match="give sizes of m, n, k, as in"):
        tilewise.tuned_kernel(sizes=sizes)(lambda x, w: x @ w)
