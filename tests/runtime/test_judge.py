"""A decision for those who can serve."""

from __future__ import annotations

from tilewise.model.decision import Decision, Range
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant
from tilewise.runtime.judge import reasons, serving

SMALL, BLAS, TALL = (Variant("test", name) for name in ("small", "blas", "tall"))


def test_the_next_best_serves_where_the_winner_cannot() -> None:
    """Where an engine rejects the winner the fastest that can serve does."""
    parts = tuple(
        Candidate(v, "measured", "", Timing(us, us, us, 9))
        for v, us in ((REFERENCE, 9.0), (SMALL, 1.0), (BLAS, 3.0), (TALL, 5.0))
    )
    decision = Decision((Range("m"),), SMALL, (("m", 1),), parts)

    def winner(*usable: Variant) -> Variant | None:
        found = serving(decision, set(usable))
        return found.variant if found else None

    assert [SMALL, BLAS, REFERENCE, None] == [
        winner(REFERENCE, SMALL, BLAS, TALL),
        winner(REFERENCE, BLAS, TALL),
        winner(REFERENCE),
        winner(),
    ]


def test_variants_with_one_reason_share_it() -> None:
    """A reason is told once, with each name once whatever the configurations."""
    tiled = Variant("test", "tall", (("tile", 8),))
    why = ((SMALL, "too deep"), (TALL, "no GPU"), (tiled, "no GPU"), (BLAS, "too deep"))
    told = reasons([Candidate(variant, "rejected", reason) for variant, reason in why])
    assert "test/small, test/blas: too deep; test/tall: no GPU" == told
