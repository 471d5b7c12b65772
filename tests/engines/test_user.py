"""A user's method as an engine: its variants, and why it serves or not."""

from __future__ import annotations

from typing import Any

import pytest

from tilewise.engines.user import UserEngine, UserMethod
from tilewise.model.axes import AxesProblem


def problem(residency: str = "host") -> AxesProblem:
    """Return a problem of n=100."""
    return AxesProblem("digest", (("n", 100),), ("x: float64 1-D C",), residency)


def method(**options: Any) -> UserMethod:
    """Return a method with two parameters."""
    choices = (("block", (8, 16)), ("kind", ("a",)))
    return UserMethod(
        "mine", lambda x, block, kind: (x, block, kind), choices, **options
    )


def test_every_combination_is_a_variant() -> None:
    """The lists are multiplied out in their order."""
    assert ["user/mine block=8 kind=a", "user/mine block=16 kind=a"] == [
        str(v) for v in method().variants
    ]


def test_a_variant_is_called_with_its_parameters() -> None:
    """The configuration comes by keyword."""
    engine = UserEngine({"mine": method()})
    assert (5, 16, "a") == engine.bare(engine.variants()[1])(5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, None),
        ({"where": "host"}, None),
        ({"where": "device"}, "takes arguments on the device, these are on the host"),
        ({"valid": lambda block: block == 8}, None),
        ({"valid": lambda n, kind: n < 9}, "valid= says no for n=100, kind=a"),
        ({"valid": lambda **all: all == {"n": 100, "block": 8, "kind": "a"}}, None),
        ({"valid": lambda n: n / 0}, "valid= raises ZeroDivisionError for n=100: "),
    ],
    ids=range(7),
)
def test_rejections(options: Any, reason: str | None) -> None:
    """What keeps a variant out is said in words."""
    found = method(**options).rejects(method().variants[0], problem())
    assert found == reason if reason is None else str(found).startswith(reason)
