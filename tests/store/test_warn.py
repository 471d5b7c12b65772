"""A fault is told once, however often it is met."""

from __future__ import annotations

import warnings

from tilewise.errors import StoreWarning
from tilewise.store.warn import forget_warnings, warn_once


def told(*pairs: tuple[str, str]) -> list[str]:
    """Return what is said when faults are met in turn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for place, reason in pairs:
            warn_once(place, reason)
    assert all(one.category is StoreWarning for one in caught)
    return [str(one.message) for one in caught]


def test_same_fault_is_told_once():
    """The second time nothing is said."""
    assert ["here: full"] == told(("here", "full"), ("here", "full"))


def test_each_place_and_reason_is_told():
    """Another place or another reason is another warning."""
    expected = ["here: full", "there: full", "here: locked"]

    assert expected == told(("here", "full"), ("there", "full"), ("here", "locked"))


def test_forgotten_faults_are_told_again():
    """A long session may ask to be told again."""
    told(("here", "full"))
    forget_warnings()

    assert ["here: full"] == told(("here", "full"))
