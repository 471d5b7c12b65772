"""What is checked when it is stated, not when it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, EngineError, tuned_kernel
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
        ("user/mine", "lambda> has reference$"),
    ],
)
def test_a_pin_that_there_is_none_of_fails_at_once(pin: Any, told: str) -> None:
    """Not at the first call, which may be far away."""
    with pytest.raises(ArgumentError, match=told):
        fresh().pin(pin)


@pytest.mark.parametrize("pin", ["cpu/small", "cpu/fast", "abacus", "user/other"])
def test_a_kernel_with_axes_is_pinned_to_its_own(pin: str) -> None:
    """No engine makes code for it, so none is offered."""
    kernel = tuned_kernel(axes={"n": len}, name="total")(total)
    kernel.variant(block=[1, 2])(blocked)
    with pytest.raises(ArgumentError, match=": total has reference, user/blocked bl"):
        kernel.pin(pin)
    kernel.pin("user/blocked block=2")


def total(x: Any) -> Any:
    """Be a function of one array."""
    return sum(x)


def blocked(x: Any, *, block: int) -> Any:
    """Be a variant with a parameter."""
    return sum(x)


def test_a_configuration_that_there_is_none_of_is_told_the_others() -> None:
    """The reason is followed by those of the method."""
    kernel, args = fresh(), [np.ones((4, 4), "f4")] * 2
    kernel.pin("cpu/packed threads=99")
    with pytest.raises(EngineError, match="; there is cpu/packed threads=1"):
        kernel(*args)


def test_every_variant_is_of_a_method_that_its_engine_states() -> None:
    """So that none can be refused as a pin."""
    kernel, args = fresh(), [np.ones((4, 4), "f4")] * 2
    problem = ask(kernel._subject, tuple(args)).problem
    assert problem is not None
    for name, engine in engines().items():
        known = engine.variants(problem, resolver().workshop.target_of(name, 0))
        assert {v.method for v in known} <= set(engine.methods)
