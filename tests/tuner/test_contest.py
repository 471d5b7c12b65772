"""The reference as a contestant."""

from __future__ import annotations

import numpy as np

from tests.tuner import contestants as c
from tilewise.model.resolution import REFERENCE
from tilewise.tuner.contest import filling
from tilewise.tuner.verify import verify


def test_the_reference_fills_an_output() -> None:
    """Wrapped as a contestant the reference is right, and called by its name."""
    contestant = filling(c.case())
    assert REFERENCE == contestant.variant
    assert verify(contestant.run, c.case()).ok


def test_it_fills_scalars() -> None:
    """A result without axes is filled too."""
    x = np.arange(4, dtype=np.float32)
    posed = c.Case((x, x), np.dot, None, (), x.dtype, 4)
    assert 14.0 == filling(posed).run(x, x, np.empty((), np.float32))
