"""Tell who watches a tuning what it does now; without anyone it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tilewise.model.variant import Variant

__all__ = ["Step", "tell", "watching"]


@dataclass(frozen=True, slots=True)
class Step:
    """
    What a tuning is doing: "building", "verifying" or "measuring" a variant.

    Once all were measured a few times, `best` is the leader so far with its median
    (us), and `left_s` what is left of the budget (s).
    """

    doing: str
    variant: Variant
    best: Variant | None = None
    best_us: float = 0.0
    left_s: float = 0.0


watcher: ContextVar[Callable[[Step], None] | None] = ContextVar(
    "tilewise_watcher", default=None
)


@contextmanager
def watching(told: Callable[[Step], None]) -> Iterator[None]:
    """Have `told` called with each step inside a `with` block, in this context."""
    token = watcher.set(told)
    try:
        yield
    finally:
        watcher.reset(token)


def tell(
    doing: str,
    variant: Variant,
    best: Variant | None = None,
    best_us: float = 0.0,
    left_s: float = 0.0,
) -> None:
    """Tell the watcher, if there is one; between samples, never while one is taken."""
    told = watcher.get()
    if told is not None:
        told(Step(doing, variant, best, best_us, left_s))
