"""At the end of a process, tell the store what its kernels cost and saved."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tilewise.api.explain import Stats
from tilewise.model.totals import Totals, summed
from tilewise.settings import current

if TYPE_CHECKING:
    from tilewise.api.kernel import TunedKernel

__all__ = ["WORTH_MS", "tell"]

WORTH_MS = 100.0
"""A process that neither tuned nor compiled tells only savings from here on, so that
short ones don't fill the disk."""

PID = os.getpid()


def tell(kernels: Iterable[TunedKernel[Any, Any]]) -> None:
    """
    Keep the totals of kernels that cost or saved something worth a file.

    Never raises: an interpreter that ends has nobody to tell. A forked child is not
    counted, since it has its parent's counts too, nor is what TILEWISE_TUNE=off ran.
    """
    if os.getpid() != PID:
        return
    try:
        if current().tune == "off":
            return
        told = [(k._subject.name, k.stats) for k in kernels]
        worth = [(name, stats) for name, stats in told if is_worth(stats)]
        if worth:
            from tilewise.runtime.once import resolver

            hardware = resolver().fingerprint_of(0)
            rows = summed(totals(name, hardware, stats) for name, stats in worth)
            resolver().store_of().totals.add(rows)
    except Exception:
        return


def is_worth(stats: Stats) -> bool:
    """Say whether a kernel's counts are kept."""
    return bool(stats.tunings or stats.compiles) or stats.saved_ms >= WORTH_MS


def totals(name: str, hardware: str, stats: Stats) -> Totals:
    """Return the totals of one process."""
    return Totals(
        name,
        hardware,
        1,
        sum(stats.dispatches.values()),
        stats.fallbacks,
        stats.tunings,
        stats.compiles,
        stats.artifact_hits,
        stats.tuning_ms,
        stats.compile_ms,
        stats.saved_ms,
    )
