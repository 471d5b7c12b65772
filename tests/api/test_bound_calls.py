"""Calls of a bound kernel: what `out` may be, what is counted, who steps in."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

from tests.api.test_bound import close, dense, inputs, pinned
from tilewise import ArgumentError, EngineError

BAD_OUT = {
    "(8, 7)": lambda x: np.empty((8, 7), "f4"),
    "float64": lambda x: np.empty((8, 6), "f8"),
    "read-only": lambda x: np.broadcast_to(np.float32(0), (8, 6)),
    "MaskedArray": lambda x: np.ma.masked_array(np.empty((8, 6), "f4")),
    "overlaps x": lambda x: np.lib.stride_tricks.as_strided(x, (8, 6)),
}


@pytest.mark.parametrize("told", BAD_OUT)
def test_a_bad_out_is_named(told: str) -> None:
    """The error says what is wrong, and nothing is counted or written."""
    x, w, b = inputs()
    kernel = pinned()
    bound = kernel.bind(x, w, b, constant=("w", "b"))
    before = x.copy()
    with pytest.raises(ArgumentError, match=re.escape(told)):
        bound(x, out=BAD_OUT[told](x))
    assert np.array_equal(before, x)


def test_an_out_of_any_order_is_filled() -> None:
    """Strides that no guard knows are served all the same."""
    x, w, b = inputs()
    out = np.zeros((6, 8), "f4").T
    assert pinned().bind(x, w, b, constant=("w", "b"))(x, out=out) is out
    assert close(out, dense.reference(x, w, b))


def test_a_subclass_names_both() -> None:
    """A masked array is no array of the bound form."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant=("w", "b"))
    with pytest.raises(ArgumentError, match=r"bound as float32.*MaskedArray float32"):
        bound(np.ma.masked_array(x))


def test_calls_of_bound_kernels_are_counted() -> None:
    """Those of living, updated, released and forgotten ones add up."""
    x, w, b = inputs()
    kernel, out = pinned(), np.empty((8, 6), "f4")
    one = kernel.bind(x, w, b, constant=("w", "b"))
    with kernel.bind(x, w, b, constant=("w",)) as other:
        other(x, b)
    kernel.bind(x, w, b, constant=("b",))(x, w, out=out)
    one(x), one(x, out=out), one.update(w=w), one(x, out=np.empty((6, 8), "f4").T)
    assert {"cpu/small": 5} == kernel.stats.dispatches
    one(x)
    assert {"cpu/small": 6} == kernel.stats.dispatches


def test_a_variant_that_cannot_be_launched_gives_way() -> None:
    """The reference serves, with one warning, with and without `out`."""
    x, w, b = inputs()
    kernel = pinned()
    bound = kernel.bind(x, w, b, constant=("w", "b"))
    kernel.unpin()

    def failing(*args: Any) -> Any:
        raise EngineError("lost")

    bound._entry.run = failing
    bound._arm()
    out = np.empty((8, 6), "f4")
    with pytest.warns(RuntimeWarning, match=r"cpu/small failed.*lost"):
        bound(x, out=out)
    assert close(out, dense.reference(x, w, b))
    assert close(bound(x), dense.reference(x, w, b))
    assert {"reference": 2} == kernel.stats.dispatches
    assert 2 == kernel.stats.fallbacks


def test_threads_may_call_while_a_constant_is_replaced() -> None:
    """Each result is that of the old or of the new w."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant=("w", "b"))
    right = [dense.reference(x, w, b), dense.reference(x, -w, b)]
    stop = threading.Event()
    wrong: list[Any] = []

    def calling() -> None:
        while not stop.is_set():
            result = bound(x)
            if not any(close(result, one) for one in right):
                wrong.append(result)

    threads = [threading.Thread(target=calling) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        bound.update(w=w if turn % 2 else -w)
    stop.set()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_open_arguments_may_be_named() -> None:
    """By name in any order, they are the same arguments."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant="w")
    expected = dense.reference(x, w, b)
    assert close(bound(b=b, x=x), expected)
    assert close(bound(x, b=b, out=np.empty_like(expected)), expected)


@pytest.mark.parametrize(
    ("count", "named"), [(1, ()), (3, ()), (1, ("x",)), (2, ("w",)), (0, ("x", "w"))]
)
def test_a_wrong_call_is_told_the_open_arguments(count: int, named: Any) -> None:
    """One that is missing, given twice, bound, or too many."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant="w")
    with pytest.raises(ArgumentError, match="its open arguments in order: x, b; given"):
        bound(*(x, b, b)[:count], **dict.fromkeys(named, x))


def test_an_update_of_what_is_open_is_told_what_is_bound() -> None:
    """The error names both."""
    x, w, b = inputs()
    with pytest.raises(ArgumentError, match="x is not bound: dense is bound to w, b"):
        pinned().bind(x, w, b, constant=("w", "b")).update(x=x)


def test_a_missing_argument_names_the_kernel() -> None:
    """So that it is found among many."""
    x, w, _ = inputs()
    with pytest.raises(TypeError, match="dense: missing a required argument: 'b'"):
        dense(x, w)
