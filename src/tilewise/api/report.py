"""What all kernels of the process did, cost and saved."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.api.explain import Stats
from tilewise.api.explain_text import aligned
from tilewise.api.registry import kernels

__all__ = ["Report", "report"]


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of each kernel by name; `str()` is a table."""

    kernels: tuple[tuple[str, Stats], ...]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("kernel", "calls", "compiles", "disk hits", "memory hits", "fallbacks",
             "tunings", "cost", "saved", "variants")
        ]  # fmt: skip
        for name, stats in self.kernels:
            cost = f"{stats.tuning_ms:.0f} ms"
            variants = ", ".join(f"{v} {n}" for v, n in stats.dispatches.items())
            counts = (
                sum(stats.dispatches.values()), stats.compiles, stats.artifact_hits,
                stats.memory_hits, stats.fallbacks, stats.tunings,
            )  # fmt: skip
            saved = f"{stats.saved_ms:.2f} ms"
            rows.append((name, *map(str, counts), cost, saved, variants or "-"))
        why = [
            f"{name}: {calls} call{'s' * (calls != 1)} by the reference, {reason}"
            for name, stats in self.kernels
            for reason, calls in stats.reasons.items()
        ]
        return "\n".join([*aligned(rows), *why]) if self.kernels else "no kernels yet"


def report() -> Report:
    """
    Return what every kernel of this process did.

    `cost` is the time spent tuning, compiling included; `saved` what the winners
    saved over the reference, by the medians that chose them.
    """
    return Report(tuple((k._subject.name, k.stats) for k in kernels()))
