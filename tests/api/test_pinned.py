"""Each engine and method forced by pin, over kernels, shapes, layouts and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewise import EngineError, tuned_kernel
from tilewise.engines.cpu import engine
from tilewise.runtime.once import resolver
from tilewise.runtime.question import ask

KERNELS: dict[str, Callable[..., Any]] = {
    "relu": lambda x, w, b: np.maximum(x @ w + b, 0),
    "gelu": lambda x, w, b: 0.5 * (x @ w) * (1 + np.tanh(0.8 * (x @ w + b))),
    "swish": lambda x, w, b: (x @ w + b) / (1 + np.exp(-(x @ w))),
    "mask": lambda x, w, b: (x @ w > b) & ~np.isnan(b),
    "choose": lambda x, w, b: np.where(x @ w < 0, b, np.clip(x @ w, -3, 3)),
    "wide": lambda x, w, b: x @ w * np.float64(0.1) + b,
    "transposed": lambda x, w, b: np.abs(x.T @ w.T - b) ** 3,
}
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
}
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, 3.0])
METHODS = ("cpu/blas_serial", "cpu/blas_parallel", "cpu/small", "cpu/packed")
TUNED = {name: tuned_kernel(function) for name, function in KERNELS.items()}


@st.composite
def calls(draw: Any) -> tuple[str, list[Any]]:
    """Draw a kernel with arguments: whole numbers, so that every product is exact."""
    name = draw(st.sampled_from(sorted(KERNELS)))
    m, n, k = (draw(st.integers(0, 18)) for _ in "mnk")
    dtype = draw(st.sampled_from(("float32", "float64")))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = ((k, m), (n, k)) if name == "transposed" else ((m, k), (k, n))
    factors = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    x, w = map(LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))], factors)
    kind = draw(st.sampled_from(((n,), (m, 1), (m, n), ())))
    b = np.asarray(rng.integers(-3, 4, kind)).astype(dtype)
    hit = rng.random(kind) < draw(st.sampled_from((0.0, 0.3)))
    return name, [x, w, np.where(hit, rng.choice(SPECIAL, kind), b).astype(dtype)]


@pytest.mark.parametrize("method", METHODS)
def test_a_forced_method_gives_the_functions_values(
    method: str,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Values to the last digits, NaN and infinities in place, dtype and shape."""
    # Threads serve small results too, so that every case reaches them.
    monkeypatch.setattr(engine, "THREADED_ELEMENTS", 0)
    served: Counter[str] = Counter()
    known = {v.name for name in TUNED for v in variants(name)}
    if method not in known:
        pytest.fail(f"there is no method {method}; there are {sorted(known)}")

    @settings(
        max_examples=50,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    def check(call: tuple[str, list[Any]]) -> None:
        name, args = call
        kernel = TUNED[name]
        kernel.pin(method)
        with np.errstate(all="ignore"):
            expected = KERNELS[name](*args)
            try:
                actual = kernel(*args)
            except EngineError:
                served["refused"] += 1
                return
        assert (expected.shape, expected.dtype) == (actual.shape, actual.dtype)
        close = 1e-5 if args[0].dtype == np.float32 else 1e-12
        np.testing.assert_allclose(actual, expected, rtol=close, atol=close)
        served[method] += 1

    check()
    record_property("served", dict(served))
    assert served[method] >= 15


def variants(name: str) -> list[Any]:
    """Return the CPU variants that there are for a kernel at common arguments."""
    args = [np.ones((8, 8)), np.ones((8, 8)), np.ones(8)]
    question = ask(TUNED[name]._subject, tuple(args))
    workshop = resolver().workshop
    target = workshop.target_of("cpu", 0)
    assert question.problem is not None
    return list(workshop.engines["cpu"].variants(question.problem, target))
