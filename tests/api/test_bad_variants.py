"""Users' variants that crash, hang, lie or raise: rejected, and the call succeeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.api.test_axes_kernel import ARGS, fast, fresh, joint, make_inputs, statuses
from tilewise import tuned_kernel, tuning
from tilewise.tuner import isolate


def raiser(x: Any, y: Any, bins: int) -> Any:
    """Raise."""
    raise ValueError("not today")


def aborter(x: Any, y: Any, bins: int) -> Any:
    """Crash."""
    os.abort()


def leaver(x: Any, y: Any, bins: int) -> Any:
    """Exit."""
    raise SystemExit(3)


def glutton(x: Any, y: Any, bins: int) -> Any:
    """Ask for 8 TiB."""
    return np.ones(1 << 40)


def liar(x: Any, y: Any, bins: int) -> Any:
    """Be off by one."""
    counts = fast(x, y, bins)
    counts[0, 0] += 1
    return counts


def vandal(x: Any, y: Any, bins: int) -> Any:
    """Write to an argument."""
    x[0] = 0
    return fast(x, y, bins)


FAULTS = {
    raiser: "failed: raises ValueError: not today",
    aborter: "failed: is killed by SIGABRT",
    leaver: "failed: exits with code 3",
    glutton: "failed: raises MemoryError",
    liar: "wrong: at [0, 0]",
    vandal: "wrong: changes argument 1",
}


@pytest.mark.parametrize("variant", FAULTS, ids=lambda v: v.__name__)
def test_a_bad_variant_is_rejected_with_its_reason(variant: Any) -> None:
    """The call succeeds, the caller's arguments are as they were, explain tells."""
    kernel, args = fresh(), make_inputs(300, 16)
    args[0][0] = 1
    kernel.variant(variant)
    expected = joint(*args)
    np.testing.assert_array_equal(kernel(*args), expected)
    np.testing.assert_array_equal(joint(*args), expected)
    told = statuses(kernel, *args)[f"user/{variant.__name__}"]
    assert told.startswith(FAULTS[variant])


def test_an_endless_variant_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that runs past its time is ended."""
    monkeypatch.setattr(isolate, "LIMITS", isolate.Limits(seconds=0.3))
    kernel = fresh()

    @kernel.variant
    def endless(x: Any, y: Any, bins: int) -> Any:
        while True:
            pass

    np.testing.assert_array_equal(kernel(*ARGS), joint(*ARGS))
    told = statuses(kernel, *ARGS)["user/endless"]
    assert "failed: ran past 0.3 s, the most that any gets" == told


def test_a_winner_that_raises_gives_way_to_the_function() -> None:
    """A variant that raises in a call is replaced by the function, with a warning."""
    kernel, broken = fresh(), []

    @kernel.variant(isolated=False)
    def fickle(x: Any, y: Any, bins: int) -> Any:
        if os.environ.get("TEST_FICKLE"):
            raise ValueError("changed my mind")
        return fast(x, y, bins)

    kernel(*ARGS)
    os.environ["TEST_FICKLE"] = "1"
    try:
        with pytest.warns(RuntimeWarning, match="changed my mind"):
            broken.append(kernel(*ARGS))
    finally:
        del os.environ["TEST_FICKLE"]
    np.testing.assert_array_equal(broken[0], joint(*ARGS))


def test_one_that_exits_here_is_rejected() -> None:
    """sys.exit() in a variant or its valid= does not end the program that calls."""
    kernel = fresh()

    @kernel.variant(isolated=False)
    def exits(x: Any, y: Any, bins: int) -> Any:
        sys.exit(3)

    @kernel.variant(isolated=False, valid=lambda n_samples: sys.exit(4))
    def refuses(x: Any, y: Any, bins: int) -> Any:
        return fast(x, y, bins)

    np.testing.assert_array_equal(kernel(*ARGS), joint(*ARGS))
    told = statuses(kernel, *ARGS)
    assert "failed: exits with code 3" == told["user/exits"]
    assert told["user/refuses"].startswith("rejected: valid= raises SystemExit for")


def test_a_winner_that_exits_gives_way_to_the_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call survives a variant that exits in it, too."""
    kernel = fresh()

    @kernel.variant(isolated=False)
    def fickle(x: Any, y: Any, bins: int) -> Any:
        if "TEST_FICKLE" in os.environ:
            sys.exit(3)
        return fast(x, y, bins)

    kernel(*ARGS)
    monkeypatch.setenv("TEST_FICKLE", "1")
    with pytest.warns(RuntimeWarning, match="raises SystemExit: 3"):
        np.testing.assert_array_equal(kernel(*ARGS), joint(*ARGS))


def test_ctrl_c_in_a_variant_here_ends_the_call() -> None:
    """It is the user's wish, not the variant's fault."""
    kernel = fresh()

    @kernel.variant(isolated=False)
    def interrupted(x: Any, y: Any, bins: int) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel(*ARGS)


def test_a_variant_that_calls_a_kernel_forks_one_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a worker nothing is tuned: the inner kernel runs its own function there."""
    outer, forked = fresh(), isolate.forked

    @tuned_kernel(axes={"size": lambda x: x.size}, budget_s=0.05)
    def inner(x: Any, y: Any, bins: int) -> Any:
        return joint(x, y, bins)

    inner.variant(fast)

    def counted() -> int:
        with (tmp_path / "forks").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return forked()

    @outer.variant
    def nested(x: Any, y: Any, bins: int) -> Any:
        return inner(x, y, bins)

    monkeypatch.setattr(isolate, "forked", counted)
    np.testing.assert_array_equal(outer(*ARGS), joint(*ARGS))
    assert f"{os.getpid()}\n" == (tmp_path / "forks").read_text()
    assert statuses(outer, *ARGS)["user/nested"].startswith("measured")
    assert "none" == inner.explain(*ARGS).grade


OPENMP = """
import numpy as np
from numba import config, njit, prange, threading_layer
from tilewise import tuned_kernel, tuning

config.THREADING_LAYER = "omp"

@njit(parallel=True)
def add(x):
    total = 0
    for i in prange(x.size):
        total += x[i]
    return total

@tuned_kernel(axes={"n": lambda x: x.size}, budget_s=0.39)
def total(x):
    return int(sum(x.tolist()))

@total.variant
def threads(x):
    return add(x)

x = np.arange(20_000)
add(x)  # OpenMP runs in this process now.
assert "omp" == threading_layer()
print(total(x))
print([c.status for c in total.explain(x).candidates if c.variant.engine == "user"])
"""


def test_openmp_in_this_process_rejects_nobody(tmp_path: Path) -> None:
    """Where numba ends each fork, a variant with threads is measured in the process."""
    pytest.importorskip("numba.np.ufunc.omppool")
    script = tmp_path / "openmp.py"
    script.write_text(OPENMP)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert ["199990000", "['measured']"] == done.stdout.splitlines(), done.stderr


def test_changed_code_of_a_variant_does_not_serve_when_off() -> None:
    """What was measured says nothing of the new code, and nothing may be measured."""
    kernel = fresh()
    kernel.variant(fast)
    kernel(*ARGS)
    changed = fresh()

    def other(x: Any, y: Any, bins: int) -> Any:
        raise ValueError("changed")

    other.__name__ = "fast"
    changed.variant(other)
    with tuning("off"):
        assert "reference" == str(changed.explain(*ARGS).variant)
        np.testing.assert_array_equal(changed(*ARGS), joint(*ARGS))


def test_a_call_that_is_wrong_itself_costs_no_variant() -> None:
    """The function refuses the arguments, too: a right call runs the variant again."""
    kernel = fresh()
    kernel.variant(fast)
    x, y, bins = ARGS
    kernel(x, y, bins)
    with pytest.raises(ValueError, match="shorter"):
        kernel(x, y[:-1], bins)

    assert np.array_equal(joint(*ARGS), kernel(*ARGS))
    assert {"user/fast": 3} == dict(kernel.stats.dispatches)
