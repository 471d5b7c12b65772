"""Bundles that packages ship: what they serve, for which hardware, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import ship_defaults, tuned_kernel
from tilewise.model.decision import TableKey
from tilewise.runtime.once import resolver
from tilewise.store import stack
from tilewise.store.bundle import kind_of
from tilewise.store.stack import open_store


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ship nothing to other tests."""
    monkeypatch.setattr(stack, "SHIPPED", [])


def total(x: Any) -> Any:
    """Be the kernel's function."""
    return sum(float(v) for v in x)


def fast(x: Any) -> Any:
    """Be its variant."""
    return float(x.sum())


def kernel() -> Any:
    """Return a new kernel of the same code."""
    made = tuned_kernel(axes={"n": lambda x: x.size}, budget_s=2.0)(total)
    made.variant(fast)
    return made


X = np.arange(500.0)


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Decide in one store, export it, and go on with an empty one."""
    kernel()(X)
    path = tmp_path / "defaults.tilewise"
    open_store().export(path)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "another"))
    resolver().tables.clear()
    return path


def test_a_shipped_decision_serves_and_says_so(bundle: Path) -> None:
    """Nothing is measured, and the reason names the file."""
    assert "none" == kernel().explain(X).grade
    ship_defaults(bundle)
    one = kernel()
    one(X)
    told = one.explain(X)
    assert ("user/fast", "measured", 0) == (
        str(told.variant), told.grade, one.stats.tunings,
    )  # fmt: skip
    assert told.reason.endswith("as defaults.tilewise ships it")


def test_what_is_decided_here_comes_first(bundle: Path) -> None:
    """A decision of this host replaces the shipped one."""
    ship_defaults(bundle)
    one = kernel()
    one.tune(X, force=True)
    assert "ships it" not in one.explain(X).reason


def test_other_sizes_are_measured_as_ever(bundle: Path) -> None:
    """A bundle serves what it has."""
    ship_defaults(bundle)
    one = kernel()
    one(np.arange(9000.0))
    assert 1 == one.stats.tunings


def test_a_file_that_is_not_there_is_one_warning(tmp_path: Path) -> None:
    """The call is served all the same."""
    ship_defaults(tmp_path / "gone.tilewise")
    with pytest.warns(tilewise.StoreWarning, match="can't be read"):
        assert X.sum() == kernel()(X)


HOST, DEVICE = "host", "device"


@pytest.mark.parametrize(
    ("one", "other", "place", "same"),
    [
        ("cpu_a_2t_gpu_h200_132sm", "cpu_b_8t_gpu_h200_132sm", DEVICE, True),
        ("cpu_a_2t_gpu_h200_132sm", "cpu_a_2t_gpu_a100_108sm", DEVICE, False),
        ("cpu_a_2t_gpu_h200_132sm", "cpu_a_2t_no-gpu", HOST, True),
        ("cpu_a_2t_no-gpu", "cpu_a_4t_no-gpu", HOST, False),
    ],
    ids=("gpu", "other gpu", "cpu", "threads"),
)  # fmt: skip
def test_the_class_of_hardware(one: str, other: str, place: str, same: bool) -> None:
    """Device arrays go by the GPU, those of the host by the CPU and its threads."""
    first, second = (
        kind_of(TableKey(name, "k", "t", place, "float32")) for name in (one, other)
    )
    assert same == (first == second)
