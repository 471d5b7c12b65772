"""What is checked when it is stated, not when it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, tuned_kernel
from tilewise.runtime.once import engines, resolver
from tilewise.runtime.question import ask


def fresh() -> Any:
    """Return a new kernel."""
    return tuned_kernel(lambda x, w: np.maximum(x @ w, 0))


@pytest.mark.parametrize(
    ("pin", "told"),
    [
        ("abacus/fast", "the engines are reference, user, cpu"),
        ("cpu/fast", "the methods are cpu/blas_serial, "),
        ("cpu", "the methods are cpu/blas_serial, "),
        ("cpu/packed 2", "is not engine/method"),
        (3, "give a variant or its text"),
    ],
)
def test_a_pin_that_there_is_none_of_fails_at_once(pin: Any, told: str) -> None:
    """Not at the first call, which may be far away."""
    with pytest.raises(ArgumentError, match=told):
        fresh().pin(pin)


def test_every_variant_is_of_a_method_that_its_engine_states() -> None:
    """So that none can be refused as a pin."""
    kernel, args = fresh(), [np.ones((4, 4), "f4")] * 2
    problem = ask(kernel._subject, tuple(args)).problem
    assert problem is not None
    for name, engine in engines().items():
        known = engine.variants(problem, resolver().workshop.target_of(name, 0))
        assert {v.method for v in known} <= set(engine.methods)
