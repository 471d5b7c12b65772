"""Cases on a device: what is verified on the host is verified there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise.device.chosen import chosen_device
from tilewise.model.variant import Variant
from tilewise.runtime.on_device import reference_on
from tilewise.tuner.bench import Bench, on_host_alike
from tilewise.tuner.contest import Case, Contestant
from tilewise.tuner.planner import decide
from tilewise.tuner.verify import verify


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


def product(x: Any, w: Any) -> Any:
    """Return the reference's product."""
    return x @ w


def right(x: Any, w: Any, out: Any) -> Any:
    """Fill an array of the device as the reference would."""
    out.set(x.get() @ w.get())
    return out


def wrong(x: Any, w: Any, out: Any) -> Any:
    """Be off by one everywhere."""
    out.set(x.get() @ w.get() + 1)
    return out


def outside(x: Any, w: Any, out: Any) -> Any:
    """Write four bytes before the output."""
    out.device.bytes_at(out.address - 4, 4)[:] = 1
    return right(x, w, out)


def spoiling(x: Any, w: Any, out: Any) -> Any:
    """Write into an argument, after it was read."""
    right(x, w, out)
    x.set(x.get() * 2)
    return out


def leaving(x: Any, w: Any, out: Any) -> Any:
    """Leave the last row unwritten."""
    out[:-1].set((x.get() @ w.get())[:-1])
    return out


def another(x: Any, w: Any, out: Any) -> Any:
    """Return an argument."""
    right(x, w, out)
    return x


def case(strided: bool = False) -> Case:
    """Return a product of small arrays on the emulated device."""
    random = np.random.default_rng(3)
    x, w = (random.standard_normal(s).astype("f4") for s in ((6, 10), (5, 7)))
    args = (x[:, ::2], w[::-1]) if strided else (x[:, :5].copy(), w)
    bench = Bench(chosen_device(), reference_on(product))
    dtype = np.dtype(np.float32)
    return Case(args, product, None, (6, 7), dtype, 5, bench=bench)


@pytest.mark.parametrize("strided", [False, True], ids=["packed", "strided"])
def test_a_right_run_is_right(strided: bool) -> None:
    """It gets arrays of the device in the caller's layouts."""
    assert "" == verify(right, case(strided)).reason


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (wrong, "at ["),
        (outside, "writes outside its output"),
        (spoiling, "changes argument 1"),
        (leaving, "leaves 7 of 42 elements unwritten"),
        (another, "returns EmulatedArray instead of its output"),
    ],
)
def test_what_is_found_on_the_device(run: Any, reason: str) -> None:
    """Guards around device memory and poison in it show what is wrong."""
    assert reason in verify(run, case(strided=True)).reason


def test_a_decision_by_events() -> None:
    """The right one is timed by the device's events, and so is the reference."""
    names = Variant("cuda_cpp", "a"), Variant("cuda_cpp", "b")
    entered = [Contestant(*pair) for pair in zip(names, (right, wrong), strict=True)]
    decided = decide(case(), entered, budget_s=2)

    found = {c.variant: c for c in decided.candidates}
    assert ["measured", "wrong"] == [found[name].status for name in names]
    timings = [c.timing for c in decided.candidates if c.timing is not None]
    assert ["cuda_event"] * 2 == [timing.protocol.clock for timing in timings]


def test_layouts_on_the_host() -> None:
    """A copy has the array's values, strides and place within 64 bytes."""
    device = chosen_device()
    host = np.arange(60, dtype=np.float32)
    whole = device.array(device.allocate(host.nbytes), host.shape, host.dtype)
    whole.set(host)
    view = whole[3:].reshape(3, 19)[::-1, ::2]
    copy = on_host_alike(device, view)

    assert view.get().tolist() == copy.tolist()
    assert (view.strides, view.address % 64) == (copy.strides, copy.ctypes.data % 64)
