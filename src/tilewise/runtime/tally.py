"""What one kernel did in this process, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewise.build.order import Counts
from tilewise.runtime.dispatch import Entry

__all__ = ["Tally"]


@dataclass(slots=True)
class Tally:
    """
    The counts of entries that are gone, and of building and measuring.

    `dispatches` counts calls by variant, `fallbacks` those that only the reference
    could serve, by reason; `saved_us` and `tuning_ms` are times.
    """

    built: Counts = field(default_factory=Counts)
    dispatches: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    saved_us: float = 0.0
    tunings: int = 0
    tuning_ms: float = 0.0

    def retire(self, entry: Entry) -> None:
        """Take over the calls of an entry that is dropped."""
        self.add(entry, entry.count)
        entry.count = 0

    def add(self, entry: Entry, calls: int) -> None:
        """Count calls of an entry."""
        self.dispatches[entry.variant] += calls
        if entry.fallback:
            self.fallbacks[entry.fallback] += calls
        self.saved_us += calls * entry.saving_us

    def with_live(self, entries: Iterable[Entry]) -> Tally:
        """Return the counts with those of entries that are in use."""
        whole = Tally(
            self.built, Counter(self.dispatches), Counter(self.fallbacks),
            self.saved_us,
            self.tunings, self.tuning_ms,
        )  # fmt: skip
        for entry in entries:
            whole.add(entry, entry.count)
        return whole
