"""The winner rule on given samples."""

from __future__ import annotations

import math

from tilewise.tuner.rule import apart, standing


def test_a_gain_below_the_margin_does_not_win() -> None:
    """4 % over the incumbent leaves it in place."""
    assert 0 == standing([[1.04] * 20, [1.0] * 20], 0, 0.05).winner


def test_a_gain_over_the_margin_wins() -> None:
    """6 % over the incumbent wins, and is settled."""
    found = standing([[1.06] * 20, [1.0] * 20], 0, 0.05)
    assert (1, True) == (found.winner, found.settled)


def test_few_samples_need_a_large_gain() -> None:
    """With two rounds 20 % is not enough and 30 % is."""
    assert 0 == standing([[1.2] * 2, [1.0] * 2], 0, 0.05).winner
    assert 1 == standing([[1.3] * 2, [1.0] * 2], 0, 0.05).winner


def test_an_open_race_is_not_settled() -> None:
    """Samples that scatter around the margin ask for more."""
    noisy = [1.0, 1.2] * 10
    assert not standing([noisy, [1.03] * 20], 0, 0.05).settled


def test_one_without_samples_never_wins() -> None:
    """A contestant that missed all rounds is neither winner nor tie."""
    found = standing([[1.0] * 9, [math.nan] * 9], 0, 0.05)
    assert (0, ()) == (found.winner, found.ties)


def test_the_slow_are_hopeless() -> None:
    """After three rounds at half the speed a contestant is out."""
    assert {1} == standing([[1.0] * 3, [2.1] * 3], 0, 0.05).hopeless


def test_unpaired_figures_need_intervals_apart() -> None:
    """Figures of two races win by the margin only with intervals apart."""
    assert 0 == apart([(1.1, 1.0, 1.2), (1.0, 0.9, 1.05)], 0, 0.05)[0]
    assert 1 == apart([(1.1, 1.09, 1.2), (1.0, 0.9, 1.05)], 0, 0.05)[0]


def test_unpaired_ties_go_to_the_simpler() -> None:
    """Of two that are 1 % apart the first wins, the other is a tie."""
    figures = [(2.0, 1.99, 2.01), (1.01, 1.0, 1.02), (1.0, 0.99, 1.01)]
    assert (1, (2,)) == apart(figures, 0, 0.05)
