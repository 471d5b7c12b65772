"""What a kernel did so far, its retired entries' calls included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewise.api.explain import Stats
from tilewise.build.build import Counts
from tilewise.runtime.dispatch import Entry

__all__ = ["Tally"]


@dataclass(slots=True)
class Tally:
    """The counts of one kernel that no living entry holds."""

    counts: Counts = field(default_factory=Counts)
    retired: Counter[str] = field(default_factory=Counter)
    tunings: int = 0
    fallbacks: int = 0
    tuning_ms: float = 0.0
    saved_us: float = 0.0

    def retire(self, entries: Iterable[Entry]) -> None:
        """Take over the counts of entries, which start again at zero."""
        for entry in entries:
            count, entry.count = entry.count, 0
            self.retired[entry.variant] += count
            self.fallbacks += count if entry.fallback else 0
            self.saved_us += count * entry.saving_us

    def stats(self, entries: Iterable[Entry]) -> Stats:
        """Return the counts, those of living entries included."""
        dispatches, fallbacks = Counter(self.retired), self.fallbacks
        saved_us, counts = self.saved_us, self.counts
        for entry in entries:
            dispatches[entry.variant] += entry.count
            fallbacks += entry.count if entry.fallback else 0
            saved_us += entry.count * entry.saving_us
        return Stats(
            dict(sorted((+dispatches).items())),
            counts.compiles,
            counts.artifact_hits,
            counts.memory_hits,
            fallbacks,
            self.tunings,
            counts.compile_ms,
            self.tuning_ms,
            saved_us / 1e3,
        )
