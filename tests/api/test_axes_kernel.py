"""Kernels with axes: any function, and the variants that users give it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, EngineError, TraceError, tuned_kernel

AXES = {"n_samples": lambda x: x.size, "joint_size": lambda bins: bins * bins}


def make_inputs(n_samples: int, joint_size: int) -> tuple[Any, Any, int]:
    """Return random classes in isqrt(joint_size) bins."""
    random, bins = np.random.default_rng(0), int(joint_size**0.5)
    x, y = random.integers(0, bins, (2, n_samples))
    return x, y, bins


def joint(x: Any, y: Any, bins: int) -> Any:
    """Count how often each pair of classes occurs."""
    counts = np.zeros((bins, bins), np.int64)
    for pair in zip(x.tolist(), y.tolist(), strict=True):
        counts[pair] += 1
    return counts


def fast(x: Any, y: Any, bins: int) -> Any:
    """Count with bincount, which is a hundred times faster."""
    return np.bincount(x * bins + y, minlength=bins * bins).reshape(bins, bins)


def fresh(function: Any = joint, **options: Any) -> Any:
    """Return a new kernel with axes."""
    given = {"axes": AXES, "make_inputs": make_inputs, "budget_s": 2.0} | options
    return tuned_kernel(**given)(function)


def statuses(kernel: Any, *args: Any) -> dict[str, str]:
    """Return each candidate's status and reason."""
    found = kernel.explain(*args).candidates
    return {str(c.variant): f"{c.status}: {c.reason}" for c in found}


ARGS = make_inputs(5000, 64)


def test_a_kernel_without_variants_is_its_function() -> None:
    """Axes alone change nothing: the function serves, and explain says why."""
    kernel = fresh()
    np.testing.assert_array_equal(kernel(*ARGS), joint(*ARGS))
    assert "the kernel has no variants" in kernel.explain(*ARGS).reason


def test_a_faster_variant_wins_and_gives_the_functions_values() -> None:
    """The winner of the race serves the calls of its cell."""
    kernel = fresh()
    kernel.variant(fast)
    np.testing.assert_array_equal(kernel(*ARGS), joint(*ARGS))
    told = kernel.explain(*ARGS)
    assert ("user/fast", "measured") == (str(told.variant), told.grade)
    assert {"user/fast": 1} == kernel.stats.dispatches


def test_each_combination_of_parameters_is_a_variant() -> None:
    """The parameters come by keyword, one value from each list."""
    kernel, seen = fresh(), []

    @kernel.variant(isolated=False, block=[1, 2], mode=["a"])
    def blocked(x: Any, y: Any, bins: int, *, block: int, mode: str) -> Any:
        seen.append((block, mode))
        return fast(x, y, bins)

    names = [str(v) for v in kernel.variants(*ARGS)]
    assert ["reference", "user/blocked block=1 mode=a", "user/blocked block=2 mode=a"] \
        == names  # fmt: skip
    kernel.pin("user/blocked block=2 mode=a")
    kernel(*ARGS)
    assert [(2, "a")] == seen


def test_a_number_that_only_an_axis_reads_chooses_the_cell() -> None:
    """Calls that differ in a number alone are looked up by the sizes it gives."""
    kernel = fresh()
    kernel.variant(fast)
    for joint_size in (16, 1024):
        args = make_inputs(500, joint_size)
        np.testing.assert_array_equal(kernel(*args), joint(*args))
    assert 2 == kernel.stats.tunings


def test_a_second_kernel_of_the_same_code_finds_the_decision() -> None:
    """Decisions are kept by name, code and sizes."""
    for kernel in (first := fresh(), second := fresh()):
        kernel.variant(fast)
        kernel(*ARGS)
    assert (1, 0) == (first.stats.tunings, second.stats.tunings)


def test_other_code_of_the_function_is_another_kernel() -> None:
    """A decision made for other code of the function is not found."""

    def other(x: Any, y: Any, bins: int) -> Any:
        return joint(x, y, bins) + 0

    kernel, changed = fresh(), fresh(other, name="joint")
    kernel.variant(fast)
    changed.variant(fast)
    kernel(*ARGS)
    assert "none" == changed.explain(*ARGS).grade


def test_a_variant_that_comes_later_is_raced() -> None:
    """Defining one makes the next call measure again."""
    kernel = fresh()
    kernel.variant(slow)
    kernel(*ARGS)
    kernel.variant(fast)
    assert "user/fast did not race, or changed" in kernel.explain(*ARGS).reason
    kernel(*ARGS)
    assert "user/fast" == str(kernel.explain(*ARGS).variant)


def slow(x: Any, y: Any, bins: int) -> Any:
    """Take a millisecond longer."""
    time.sleep(1e-3)
    return joint(x, y, bins)


def test_changed_code_of_a_variant_is_raced_again() -> None:
    """Figures of a variant hold for the code that was measured."""
    kernel, changed = fresh(), fresh()
    kernel.variant(fast)
    kernel(*ARGS)

    def other(x: Any, y: Any, bins: int) -> Any:
        return slow(x, y, bins)

    other.__name__ = "fast"
    changed.variant(other)
    assert "user/fast did not race, or changed" in changed.explain(*ARGS).reason


def test_valid_is_asked_with_the_names_that_it_takes() -> None:
    """A predicate over parameters and sizes keeps variants out."""
    kernel = fresh()

    @kernel.variant(chunk=[10, 10**6], valid=lambda chunk, n_samples: chunk < n_samples)
    def chunked(x: Any, y: Any, bins: int, *, chunk: int) -> Any:
        return fast(x, y, bins)

    names = [str(v) for v in kernel.variants(*ARGS)]
    assert ["reference", "user/chunked chunk=10"] == names
    reason = statuses(kernel, *ARGS)["user/chunked chunk=1000000"]
    assert "rejected: valid= says no for chunk=1000000, n_samples=5000" == reason


def test_where_keeps_a_variant_to_its_place() -> None:
    """A variant for device arrays does not serve those of the host."""
    kernel = fresh()
    kernel.variant(where="device")(fast)
    kernel.pin("user/fast")
    with pytest.raises(EngineError, match="takes arguments on the device"):
        kernel(*ARGS)


def test_device_arguments_have_a_table_and_variants_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the emulated device the first variant that applies runs on its arrays."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    from tilewise.api.shapes import on_device

    kernel, ran = fresh(), []

    @kernel.variant(where="host")
    def host(x: Any, y: Any, bins: int) -> Any:
        return fast(x, y, bins)

    @kernel.variant(where="device")
    def device(x: Any, y: Any, bins: int) -> Any:
        ran.append(type(x).__name__)
        return on_device(fast(x.get(), y.get(), bins))

    args = tuple(map(on_device, ARGS))
    np.testing.assert_array_equal(kernel(*args).get(), joint(*ARGS))
    assert ["EmulatedArray"] == ran
    assert "emulated device decides nothing" in kernel.explain(*args).reason


def test_tune_and_explain_take_sizes() -> None:
    """make_inputs gives arguments for sizes by axis."""
    kernel = fresh()
    kernel.variant(fast)
    report = kernel.tune(sizes=[{"n_samples": 800, "joint_size": 16}])
    assert [(("n_samples", 800), ("joint_size", 16))] == [
        r.problem.point for r in report.resolutions
    ]
    assert "measured" == kernel.explain(n_samples=900, joint_size=16).grade


def test_what_is_tuned_serves_though_later_sizes_are_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a tuning decided before it raised is called next."""
    kernel = fresh()
    kernel.variant(fast)
    with monkeypatch.context() as patch:
        patch.setenv("TILEWISE_TUNE", "off")
        kernel(*ARGS)
    with pytest.raises(ArgumentError):
        kernel.tune(sizes=[{"n_samples": 5000, "joint_size": 64}, {"n_samples": 1}])

    kernel(*ARGS)
    assert 1 == kernel.stats.dispatches["user/fast"]


def test_results_may_be_tuples_of_arrays_and_numbers() -> None:
    """What a variant returns is compared part by part."""

    @tuned_kernel(axes={"n": lambda x: x.size}, budget_s=0.39)
    def moments(x: Any) -> Any:
        return x.mean(), x.std(), np.cumsum(x)

    @moments.variant
    def good(x: Any) -> Any:
        return float(x.mean()), float(x.std()), np.cumsum(x)

    @moments.variant
    def bad(x: Any) -> Any:
        return x.mean(), x.var(), np.cumsum(x)

    x = np.linspace(1, 3, 100)
    moments(x)
    told = statuses(moments, x)
    assert told["user/good"].startswith("measured")
    assert told["user/bad"].startswith("wrong: result[1]")


@pytest.mark.parametrize(
    ("tolerance", "status"),
    [(1e-2, "measured"), ((1e-2, 0.0), "measured"), (None, "wrong"),
     (lambda actual, expected: bool(abs(actual - expected) < 1), "measured")],
    ids=("number", "pair", "default", "comparison"),
)  # fmt: skip
def test_a_tolerance_decides_what_is_right(tolerance: Any, status: str) -> None:
    """A number, a pair or a comparison replaces the default bound."""

    @tuned_kernel(axes={"n": lambda x: x.size}, tolerance=tolerance, budget_s=0.39)
    def total(x: Any) -> Any:
        return x.sum()

    @total.variant
    def rough(x: Any) -> Any:
        return x.sum() * 1.001

    x = np.ones(100)
    total(x)
    assert statuses(total, x)["user/rough"].startswith(status)


def test_defaults_may_be_left_out() -> None:
    """A variant gets the function's defaults."""

    @tuned_kernel(axes={"n": lambda x: x.size}, budget_s=0.39)
    def scaled(x: Any, factor: float = 3.0) -> Any:
        return x * factor

    @scaled.variant
    def own(x: Any, factor: float) -> Any:
        return factor * x

    scaled.pin("user/own")
    assert [3.0, 6.0] == [scaled(np.ones(1))[0], scaled(np.ones(1), 6.0)[0]]


def test_out_takes_an_array() -> None:
    """A result that is one array fills out=; any other says what it is."""
    kernel = fresh()
    kernel.variant(fast)
    kernel.pin("user/fast")
    out = np.empty((8, 8), np.int64)
    assert kernel(*ARGS, out=out) is out
    np.testing.assert_array_equal(out, joint(*ARGS))
    number = tuned_kernel(axes={"n": lambda x: x.size})(lambda x: float(x.sum()))
    with pytest.raises(ArgumentError, match="the function returns a float"):
        number(np.ones(3), out=np.empty(()))


def test_bind_works_at_the_sizes_of_its_arguments() -> None:
    """A bound axes kernel keeps its constants."""
    kernel = fresh()
    kernel.variant(fast)
    with kernel.bind(*ARGS, constant=("bins",)) as bound:
        np.testing.assert_array_equal(bound(*ARGS[:2]), joint(*ARGS))


def test_forget_makes_the_next_call_look_again() -> None:
    """Decisions leave the memory and are found in the store."""
    kernel = fresh()
    kernel.variant(fast)
    kernel(*ARGS)
    kernel.forget()
    kernel(*ARGS)
    assert 1 == kernel.stats.tunings


def test_a_users_variant_competes_with_the_generated_ones() -> None:
    """A fused kernel's variants and the user's stand in one race."""

    @tuned_kernel(budget_s=1.0)
    def dense(x: Any, w: Any) -> Any:
        return np.maximum(x @ w, 0)

    @dense.variant
    def mine(x: Any, w: Any) -> Any:
        y = x @ w
        return np.maximum(y, 0, out=y)

    x, w = np.ones((8, 4), np.float32), np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(dense(x, w), np.full((8, 3), 4, np.float32))
    told = statuses(dense, x, w)
    assert {"user", "cpu", "reference"} <= {name.split("/")[0] for name in told}
    assert told["user/mine"].startswith("measured")
    dense.pin("user/mine")
    out = np.empty((8, 3), np.float32)
    assert dense(x, w, out=out) is out
    assert 4 == out[0, 0]


def test_a_users_variant_of_another_dtype_is_wrong() -> None:
    """A fused kernel's variant keeps the function's dtype."""

    @tuned_kernel(engines=["user"], budget_s=0.39)
    def dense(x: Any, w: Any) -> Any:
        return x @ w + 1

    @dense.variant
    def wide(x: Any, w: Any) -> Any:
        return x.astype("f8") @ w + 1

    x, w = np.ones((8, 4), np.float32), np.ones((4, 3), np.float32)
    dense(x, w)
    assert (
        "returns float64 (8, 3), the function float32"
        in (statuses(dense, x, w)["user/wide"])
    )


def test_code_that_cannot_be_identified_is_refused_by_name() -> None:
    """A variant that reads a mutable global is refused at first use."""
    kernel, table = fresh(), [1]

    @kernel.variant
    def with_list(x: Any, y: Any, bins: int) -> Any:
        return fast(x, y, bins) * table[0]

    with pytest.raises(TraceError, match="table"):
        kernel(*ARGS)


def test_methods_have_no_axes() -> None:
    """Axes on a method are refused."""

    class Owner:
        @tuned_kernel(axes={"n": lambda x: x.size})
        def total(self, x: Any) -> Any:
            return x.sum()

    with pytest.raises(ArgumentError, match="is a method"):
        Owner().total(np.ones(3))


def test_an_axis_that_is_no_size_is_named() -> None:
    """An axis function must return an integer from 0."""

    @tuned_kernel(axes={"n": lambda x: x.mean()})
    def total(x: Any) -> Any:
        return x.sum()

    with pytest.raises(
        ArgumentError, match=r"axis n gives .*1\.0.* integer, 0 or more"
    ):
        total(np.ones(3))
