"""A decorated function: called, explained, pinned, and equal to itself."""

from __future__ import annotations

import inspect
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import tilewise
from tilewise import ArgumentError, EngineError, SettingError, TraceError, tuned_kernel
from tilewise.runtime.once import resolver


@pytest.fixture(autouse=True)
def _unloaded() -> None:
    """Begin without code in memory."""
    resolver().workshop.forget()


@tuned_kernel(budget_s=0.05)
def dense(x: Any, w: Any, b: Any) -> Any:
    """Be the module's kernel."""
    return np.maximum(x @ w + b, 0)


def fresh(**options: Any) -> Any:
    """Return a new kernel of the same function."""
    return tuned_kernel(**{"budget_s": 0.05, **options})(dense.reference)


def inputs(m: int = 7, n: int = 5, k: int = 6, dtype: str = "float32") -> list[Any]:
    """Return (x, w, b) of normal values."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), (n,))]


class Sub(np.ndarray):
    """Be a subclass that no engine knows."""


PINS = ("cpu/blas_serial", "cpu/small")


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pinned_variant_gives_the_functions_values(pin: str, dtype: str) -> None:
    """Each method's result has the function's values, dtype and shape."""
    kernel, args = fresh(), inputs(dtype=dtype)
    kernel.pin(pin)
    actual, expected = kernel(*args), dense.reference(*args)
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_the_pinned_variant_is_what_ran() -> None:
    """Stats count the dispatch under the pinned variant."""
    kernel = fresh()
    kernel.pin("cpu/small")
    kernel(*inputs())
    assert [("cpu/small", 1)] == [
        (name.split()[0], count) for name, count in kernel.stats.dispatches.items()
    ]


def test_a_pin_that_cannot_run_says_why() -> None:
    """A pinned variant never gives way in silence."""
    kernel = fresh()
    kernel.pin("cpu/small")
    with pytest.raises(EngineError, match="int64"):
        kernel(*(a.astype("int64") for a in inputs()))


def test_the_first_call_measures_and_the_second_does_not() -> None:
    """One tuning serves all calls of a cell."""
    kernel = fresh()
    for _ in range(3):
        kernel(*inputs())
    assert 1 == kernel.stats.tunings


def test_a_second_kernel_of_the_same_function_finds_the_decision() -> None:
    """Decisions are kept per spec, not per decorated object."""
    fresh()(*inputs())
    other = fresh()
    other(*inputs())
    assert 0 == other.stats.tunings


def test_explain_says_measured_after_a_call() -> None:
    """The grade is measured and the reference stands among the candidates."""
    kernel = fresh()
    kernel(*inputs())
    told = kernel.explain(*inputs())
    assert "measured" == told.grade
    assert "reference" in [str(c.variant) for c in told.candidates]


def test_explain_does_not_measure() -> None:
    """Asking changes nothing."""
    kernel = fresh()
    kernel.explain(*inputs())
    assert 0 == kernel.stats.tunings


def test_explain_names_the_dtype_that_no_engine_takes() -> None:
    """A fallback has its reason."""
    told = dense.explain(*(a.astype("float16") for a in inputs()))
    assert ("reference", "none") == (str(told.variant), told.grade)
    assert "float16" in told.reason


def test_out_is_filled_and_returned() -> None:
    """The array given as out= is the one that comes back."""
    args = inputs()
    out = np.empty((7, 5), np.float32)
    result = fresh()(*args, out=out)
    assert result is out
    np.testing.assert_allclose(out, dense.reference(*args), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("out", "word"),
    [
        (np.empty((7, 4), np.float32), "shape"),
        (np.empty((7, 5), np.float64), "dtype"),
        ([0.0], "list"),
    ],
    ids=("shape", "dtype", "list"),
)
def test_a_wrong_out_is_named(out: Any, word: str) -> None:
    """The error says what of out= does not fit."""
    with pytest.raises(ArgumentError, match=word):
        fresh()(*inputs(), out=out)


def test_out_may_not_overlap_an_input() -> None:
    """A result that would overwrite its own input is refused."""
    x, w, b = inputs(5, 5, 5)
    with pytest.raises(ArgumentError, match="overlaps x"):
        fresh()(x, w, b, out=x)


def test_keywords_bind_like_the_functions() -> None:
    """Arguments by name and defaults give the same call."""
    x, w, b = inputs()
    kernel = fresh()
    assert np.array_equal(kernel(x, w, b), kernel(x, b=b, w=w))


def test_a_call_by_keyword_reads_no_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read at decoration: reading it again costs more than the call."""
    x, w, b = inputs()
    kernel = fresh()
    first = kernel(x, w, b)
    monkeypatch.delattr(inspect, "signature")
    assert np.array_equal(first, kernel(x, w, b=b))


def test_defaults_are_filled_in() -> None:
    """A number with a default may be left out."""

    @tuned_kernel(budget_s=0.05)
    def scaled(x: Any, w: Any, alpha: float = 2.0) -> Any:
        return (x @ w) * alpha

    x, w, _ = inputs()
    np.testing.assert_allclose(scaled(x, w), x @ w * 2, rtol=1e-5)
    np.testing.assert_allclose(scaled(x, w), x @ w * 2, rtol=1e-5)
    np.testing.assert_allclose(scaled(x, w, 3.0), x @ w * 3, rtol=1e-5)


def test_a_static_argument_chooses_the_epilogue() -> None:
    """A string is traced per value, also when the kernel is warm."""

    @tuned_kernel(budget_s=0.05)
    def act(x: Any, w: Any, kind: str) -> Any:
        z = x @ w
        return np.maximum(z, 0) if kind == "relu" else np.tanh(z)

    x, w, _ = inputs()
    for _ in range(2):
        for kind in ("relu", "tanh"):
            expected = act.reference(x, w, kind)
            np.testing.assert_allclose(act(x, w, kind), expected, rtol=2e-5, atol=1e-6)


def test_missing_and_extra_arguments_are_type_errors() -> None:
    """The function's own signature decides."""
    x, w, b = inputs()
    with pytest.raises(TypeError, match="'b'"):
        dense(x, w)
    with pytest.raises(TypeError, match="too many"):
        dense(x, w, b, b)


def test_differing_inner_sizes_raise_as_numpy_does() -> None:
    """The reference decides what is an error, and nothing is stored for it."""
    x, w, b = inputs()
    kernel = fresh()
    with pytest.raises(ValueError, match="mismatch"):
        kernel(x[:, :-1], w, b)
    assert 0 == kernel.stats.tunings


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.tolist(), lambda a: a.view(Sub), lambda a: a.astype(object),
        lambda a: a.astype("int32"), lambda a: a.astype("complex64"),
        lambda a: a.astype(a.dtype.newbyteorder()), lambda a: a.astype("float16"),
    ],
    ids=("list", "subclass", "object", "int", "complex", "swapped", "half"),
)  # fmt: skip
def test_what_no_engine_takes_is_served_by_the_reference(change: Any) -> None:
    """The result is the function's own, type and dtype included."""
    x, w, b = inputs()
    args = (change(x), w, b)
    expected, actual = dense.reference(*args), fresh()(*args)
    assert (type(expected), expected.dtype) == (type(actual), actual.dtype)
    assert np.array_equal(np.asarray(expected), np.asarray(actual))


@pytest.mark.parametrize("sizes", [(0, 5, 6), (7, 0, 6), (7, 5, 0), (0, 0, 0)])
@pytest.mark.parametrize("pin", PINS)
def test_empty_axes_give_the_functions_result(sizes: Any, pin: str) -> None:
    """With k=0 the result is the epilogue of zeros."""
    kernel, args = fresh(), inputs(*sizes)
    kernel.pin(pin)
    expected, actual = dense.reference(*args), kernel(*args)
    assert expected.shape == actual.shape
    assert np.array_equal(expected, actual)


def test_nan_survives_the_bound() -> None:
    """np.maximum keeps NaN, and so does every variant."""
    x, w, b = inputs()
    x[2, 1] = np.nan
    for pin in PINS:
        kernel = fresh()
        kernel.pin(pin)
        assert np.isnan(kernel(x, w, b)[2]).all()


def test_inputs_are_never_written() -> None:
    """Tuning and calling leave the arguments as they were."""
    args = inputs(64, 64, 64)
    before = [a.copy() for a in args]
    fresh()(*args)
    assert all(np.array_equal(a, b) for a, b in zip(args, before, strict=True))


def test_tuning_off_runs_the_reference_and_stores_nothing() -> None:
    """Inside tuning("off") nothing is measured."""
    kernel = fresh()
    with tilewise.tuning("off"):
        kernel(*inputs())
    assert {"reference": 1} == dict(kernel.stats.dispatches)
    kernel(*inputs())
    assert 1 == kernel.stats.tunings


def test_tune_when_off_is_a_setting_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explicit tune() against TILEWISE_TUNE=off names the variable."""
    monkeypatch.setenv("TILEWISE_TUNE", "off")
    with pytest.raises(SettingError, match="TILEWISE_TUNE"):
        fresh().tune(*inputs())


def test_tune_over_shapes_decides_each() -> None:
    """Each shape has a measured resolution."""
    kernel = fresh()
    report = kernel.tune(shapes=[(4, 4, 4), (64, 32, 16)])
    assert ["measured", "measured"] == [r.grade for r in report.resolutions]


def test_a_kernel_pickles_by_name() -> None:
    """The unpickled kernel is the module's own."""
    assert dense is pickle.loads(pickle.dumps(dense))


def test_name_doc_and_signature_are_the_functions() -> None:
    """Documentation tools see the function."""
    import inspect

    assert ("dense", "Be the module's kernel.") == (dense.__name__, dense.__doc__)
    assert ["x", "w", "b"] == list(inspect.signature(dense).parameters)


def test_decoration_never_runs_the_function() -> None:
    """A function that would raise is decorated without a call."""

    @tuned_kernel
    def fails(x: Any, w: Any) -> Any:
        raise RuntimeError("called")

    assert "fails" == fails.__name__


def test_a_structure_that_cannot_fuse_raises_at_the_call() -> None:
    """A reduction is refused when the kernel is first used."""

    @tuned_kernel
    def total(x: Any, w: Any) -> Any:
        return (x @ w).sum()

    with pytest.raises(TraceError, match="sum"):
        total(*inputs()[:2])


def test_out_is_no_parameter_name() -> None:
    """A parameter called out is refused at decoration."""
    with pytest.raises(ArgumentError, match="rename"):
        tuned_kernel(lambda x, out: x @ out)


def test_a_kernel_inside_a_kernel_is_traced_through() -> None:
    """A tuned kernel used as a helper is part of the outer one."""
    outer = tuned_kernel(budget_s=0.05)(lambda x, w, b: np.tanh(dense(x, w, b)))
    args = inputs()
    np.testing.assert_allclose(outer(*args), np.tanh(dense.reference(*args)), rtol=1e-5)


def test_threads_share_one_tuning() -> None:
    """Eight threads that call at once get right results and one measurement."""
    kernel, args = fresh(), inputs(33, 17, 9)
    expected, wrong = dense.reference(*args), []

    def call() -> None:
        results = (kernel(*args) for _ in range(20))
        close = (np.allclose(r, expected, rtol=1e-4, atol=1e-5) for r in results)
        wrong.extend(1 for ok in close if not ok)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ([], 1) == (wrong, kernel.stats.tunings)


def test_square_broadcasts_are_told_apart_by_shape() -> None:
    """A row and a column of the same length do what NumPy does."""
    x, w, b = inputs(6, 6, 6)
    kernel = fresh()
    for operand in (b, b[:, None].copy(), b[None, :].copy()):
        np.testing.assert_allclose(
            kernel(x, w, operand), dense.reference(x, w, operand), rtol=1e-5, atol=1e-6
        )


def test_spec_without_arguments_has_a_digest() -> None:
    """The default forms name the factors and take the rest as rows."""
    assert "maximum(((x @ w) + b), 0)" == str(dense.spec)
    assert 64 == len(dense.spec.digest)


def test_forget_traces_again() -> None:
    """A changed global is seen after forget()."""
    space: dict[str, Any] = {"np": np, "SCALE": 2.0}
    exec("def f(x, w):\n    return x @ w * SCALE", space)
    kernel, (x, w, _) = tuned_kernel(budget_s=0.05)(space["f"]), inputs()
    kernel(x, w)
    space["SCALE"] = 3.0
    kernel.forget()
    np.testing.assert_allclose(kernel(x, w), x @ w * 3, rtol=1e-5)


@pytest.mark.parametrize(
    "shapes", [[(1, 2)], [5], 5, [(2.5, 2, 2)], [(-1, 2, 2)]], ids=str
)
def test_shapes_that_are_not_three_sizes_are_shown(shapes: Any) -> None:
    """The error has what was given."""
    with pytest.raises(ArgumentError, match="not three sizes"):
        fresh().tune(shapes=shapes)


def test_an_unknown_engine_is_a_setting_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable, the value and what there is."""
    monkeypatch.setenv("TILEWISE_ENGINES", "abacus")
    with pytest.raises(SettingError, match="cpu"):
        fresh()(*inputs())
