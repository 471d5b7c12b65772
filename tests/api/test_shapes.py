"""Default forms and arguments from a signature, or from the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, tuned_kernel
from tilewise.api.shapes import arguments_at, assumption, parse_signature
from tilewise.device.arrays import EmulatedArray


@tuned_kernel
def plain(x: Any, w: Any, b: Any, scale: float = 2.0) -> Any:
    """Have no signature."""
    return (x.T @ w + b) * scale


@tuned_kernel(signature="(m,k),(k,n),(m,n)->(m,n)")
def residual(x: Any, w: Any, r: Any) -> Any:
    """Have a signature."""
    return x @ w + r


def shapes(kernel: Any) -> list[Any]:
    """Return the shapes of the arguments at (m, n, k) = {"m": 2, "n": 3, "k": 4}."""
    args = arguments_at(kernel._subject, {"m": 2, "n": 3, "k": 4}, "float64", "host")
    return [np.shape(arg) for arg in args]


def test_without_a_signature_the_trace_names_the_factors() -> None:
    """A transposed factor is (k, m), other arrays are rows, defaults stay."""
    assert [(4, 2), (4, 3), (3,), ()] == shapes(plain)


def test_a_signature_says_the_shapes() -> None:
    """A residual is a matrix because its signature says so."""
    assert [(2, 4), (4, 3), (2, 3)] == shapes(residual)


def test_arguments_repeat() -> None:
    """The same sizes give the same values."""
    first, second = (
        arguments_at(plain._subject, {"m": 2, "n": 3, "k": 4}, "f4", "host")
        for _ in "ab"
    )
    assert np.array_equal(first[0], second[0])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("(m,k),(k,n)", "is not like"),
        ("(m,k),(k,n)->(m,n)", "3 parameters"),
        ("(m,k),(k,n),(q)->(m,n)", "other than"),
    ],
)
def test_a_bad_signature_says_what_is_wrong(text: str, word: str) -> None:
    """Form, number of operands and axes are checked."""
    with pytest.raises(ArgumentError, match=word):
        parse_signature(text, ("x", "w", "b"))


def test_sizes_below_zero_are_refused() -> None:
    """The error shows them."""
    with pytest.raises(ArgumentError, match="n=-3 is no size"):
        arguments_at(plain._subject, {"m": 2, "n": -3, "k": 4}, "f4", "host")


def test_what_is_assumed_is_written_as_a_signature() -> None:
    """The transposed factor, the row and the number that keeps its default."""
    assert "(k,m),(k,n),(n),()->(m,n)" == assumption(plain._subject, None)


@pytest.mark.parametrize(
    ("kernel", "given"), [(residual, None), (plain, "(k,m),(k,n),(m,n),()->(m,n)")]
)
def test_a_stated_signature_assumes_nothing(kernel: Any, given: str | None) -> None:
    """The decorator's or the caller's is what is used."""
    assert "" == assumption(kernel._subject, given)


def test_a_callers_signature_makes_the_arguments() -> None:
    """What the decorator leaves open is stated by who asks."""
    args = arguments_at(
        plain._subject,
        {"m": 2, "n": 3, "k": 4},
        "f4",
        "host",
        "(k,m),(k,n),(m,n),()->(m,n)",
    )
    assert (2, 3) == args[2].shape


def test_the_report_says_what_was_assumed() -> None:
    """Both explain and tune name the signature that they took."""
    told = str(plain.explain(m=8, n=8, k=8))
    assert "(k,m),(k,n),(n),()->(m,n): assumed" in told
    report = plain.tune(shapes=[(8, 8, 8)], budget_s=0.01)
    assert "(k,m),(k,n),(n),()->(m,n): assumed" in str(report)


def test_device_arguments_hold_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """residency="device" copies the host's arguments to the device in use."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    x, *_ = arguments_at(plain._subject, {"m": 2, "n": 3, "k": 4}, "f4", "device")
    assert isinstance(x, EmulatedArray)
    host, *_ = arguments_at(plain._subject, {"m": 2, "n": 3, "k": 4}, "f4", "host")
    assert np.array_equal(host, x.get())


def test_tuning_on_the_emulated_device_says_that_it_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The report has the reason in place of times."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    report = plain.tune(shapes=[(8, 8, 8)], residency="device")
    assert "the emulated device decides nothing" in " ".join(str(report).split())


@pytest.mark.parametrize(
    ("residency", "word"), [("device", "no CUDA device"), ("moon", "host or device")]
)
def test_a_residency_that_is_not_here_is_refused(
    monkeypatch: pytest.MonkeyPatch, residency: str, word: str
) -> None:
    """The error says what is there, or what the words are."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    with pytest.raises(ArgumentError, match=word):
        arguments_at(plain._subject, {"m": 2, "n": 3, "k": 4}, "f4", residency)


@tuned_kernel(signature="(m,k),(k,n),(),()->(m,n)")
def gauss(x: Any, w: Any, scale: float, shift: float) -> Any:
    """Take two numbers that have no default."""
    return np.exp(-np.abs(x @ w) * scale) + shift


@pytest.mark.parametrize(
    ("dtype", "kind"), [("f4", float), ("f8", float), ("c8", complex), ("i8", int)]
)
def test_an_operand_without_axes_is_a_number(dtype: str, kind: type) -> None:
    """A signature's () is a Python number that suits the dtype, as callers write."""
    args = arguments_at(gauss._subject, {"m": 2, "n": 3, "k": 4}, dtype, "host")
    assert [kind, kind] == [type(arg) for arg in args[2:]]


def test_calls_with_numbers_are_served_by_what_was_tuned_by_shapes() -> None:
    """What tune(shapes=) decides is what a call with floats finds: none measures."""
    gauss.tune(shapes=[(24, 16, 40)], budget_s=0.01)
    before = gauss.stats.tunings
    x, w = np.ones((24, 40), "f4"), np.ones((40, 16), "f4")
    explained = gauss.explain(x, w, 0.5, 2.0)
    gauss(x, w, 0.5, 2.0)
    assert ("measured", before) == (explained.grade, gauss.stats.tunings)


def test_a_signature_names_no_other_axis_in_its_result() -> None:
    """A misspelt axis of the result is refused like one of an operand."""
    with pytest.raises(ArgumentError, match="has axes other than m, n, k and 1"):
        parse_signature("(m,k),(k,n)->(m,q)", ("x", "w"))
