"""Regions: boxes without gap or overlap, each with the variant that loses least."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewise.model.decision import Range
from tilewise.tuner.regions import grow, leaf_of, opened

SPANS = (("m", 1, 4096), ("n", 1, 64))


def random_leaves(seed: int):
    """Grow boxes from random losses of three variants."""
    random = np.random.default_rng(seed)
    sizes = np.stack([random.integers(1, 4097, 40), random.integers(1, 65, 40)], axis=1)
    loss = random.exponential(1, (40, 3)) * random.integers(0, 2, (40, 3))
    return grow(SPANS, sizes, loss)


@given(st.integers(0, 500), st.integers(1, 4096), st.integers(1, 64))
@settings(deadline=None)
def test_leaves_cover_the_space_once(seed: int, m: int, n: int) -> None:
    """Each point of the space lies in exactly one box."""
    leaves = random_leaves(seed)
    hits = [m in leaf.region[0] and n in leaf.region[1] for leaf in leaves]
    assert 1 == sum(hits)


@given(st.integers(0, 500), st.integers(0, 10**6), st.integers(0, 10**6))
@settings(deadline=None)
def test_opened_leaves_cover_what_lies_beyond_once(seed: int, m: int, n: int) -> None:
    """Each point outside the space lies in exactly one opened box."""
    if 1 <= m <= 4096 and 1 <= n <= 64:
        return
    beyond = [region for _, region in opened(random_leaves(seed))]
    assert 1 == sum(m in region[0] and n in region[1] for region in beyond)


def test_splits_where_the_winner_changes() -> None:
    """The border lies between the two sizes at which different variants win."""
    sizes = np.array([[1, 1], [16, 1], [64, 1], [1024, 1]])
    loss = np.array([[0, 1.0], [0, 1.0], [1.0, 0], [1.0, 0]])
    regions = {leaf.variant: leaf.region[0] for leaf in grow(SPANS, sizes, loss)}
    assert {0: Range("m", 1, 32), 1: Range("m", 33, 4096)} == regions


def test_finds_a_corner() -> None:
    """A variant that wins only where both sizes are small gets that corner."""
    sizes = np.array([[m, n] for m in (2, 8, 32, 128) for n in (2, 8, 32)])
    small = (sizes <= 8).all(axis=1)
    loss = np.stack([np.where(small, 1.0, 0.0), np.where(small, 0.0, 1.0)], axis=1)
    corner = [leaf.region for leaf in grow(SPANS, sizes, loss) if leaf.variant == 1]
    assert [(Range("m", 1, 16), Range("n", 1, 16))] == corner


def test_one_winner_is_one_box() -> None:
    """Where a variant wins everywhere nothing is split."""
    sizes = np.array([[1, 1], [64, 8], [4096, 64]])
    leaves = grow(SPANS, sizes, np.array([[1.0, 0.0]] * 3))
    assert [(1, (0, 1, 2), 0.0)] == [(v.variant, v.rows, v.loss) for v in leaves]


def test_ties_go_to_the_simpler() -> None:
    """Variants that lose equally are told apart by their order."""
    sizes = np.array([[1, 1], [64, 8]])
    assert 0 == grow(SPANS, sizes, np.zeros((2, 3)))[0].variant


def test_never_chooses_what_cannot_serve() -> None:
    """A variant that is barred at a point is not chosen for a box that holds it."""
    sizes = np.array([[1, 1], [64, 8]])
    loss = np.array([[0.5, 0.0], [0.5, np.inf]])
    leaf = leaf_of(grow(SPANS, sizes, loss), sizes[1])
    assert 0 == leaf.variant


def test_tuning_and_applying_round_alike() -> None:
    """The box of a measured size is the box that is looked up for it."""
    sizes = np.array([[1, 1], [5, 1], [6, 1], [7, 1]])
    loss = np.array([[0, 1.0], [0, 1.0], [1.0, 0], [1.0, 0]])
    leaves = grow(SPANS, sizes, loss)
    assert [0, 0, 1, 1] == [leaf_of(leaves, place).variant for place in sizes]
