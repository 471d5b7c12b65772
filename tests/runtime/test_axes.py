"""What an argument is besides its size, in words that make a table's key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise.runtime.axes import forms_of


def of_module(name: str, *bases: type) -> Any:
    """Return a class `Sub` as a module of a name has it."""
    return type("Sub", bases, {"__module__": name})


@pytest.mark.parametrize("base", [np.ndarray, object])
def test_types_of_one_name_are_two(base: type) -> None:
    """Classes of two modules have a table each: what is fast for one may not be."""
    made = (of_module("here", base), of_module("there", base))
    values = [kind((3,)) if base is np.ndarray else kind() for kind in made]

    assert 2 == len({forms_of(["x"], [value]) for value in values})


def test_what_everyone_knows_is_written_plainly() -> None:
    """NumPy's and Python's types by their names, arrays by dtype, axes and layout."""
    args = (np.ones((2, 3), "f4").T, 4, np.float32(1), "mean")
    words = ["x: float32 2-D strided", "bins: int", "f: float32", "how: 'mean'"]

    assert tuple(words) == forms_of(["x", "bins", "f", "how"], args)
