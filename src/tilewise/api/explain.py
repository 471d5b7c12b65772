"""What a kernel tells people: explanations, tuning reports and counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewise.api.explain_text import candidates_of, distance, explained, tuned
from tilewise.api.sweep_text import swept_text
from tilewise.model.decision import Region
from tilewise.model.measurement import Candidate
from tilewise.model.resolution import Resolution
from tilewise.model.swept import Swept
from tilewise.model.variant import Variant
from tilewise.runtime.tally import Tally

__all__ = ["Explanation", "Stats", "TuneReport", "stats_of"]


@dataclass(frozen=True, slots=True)
class Stats:
    """
    Counts of one kernel in this process.

    `dispatches` are calls per variant; `compiles`, `artifact_hits` (from disk) and
    `memory_hits` say where code came from; `fallbacks` are calls that only the
    reference could serve, `reasons` those by why; `tunings` are problems measured.
    `compile_ms` and `tuning_ms` are what both cost here; `saved_ms` is what the winners
    saved over the reference, by the medians that chose them.
    """

    dispatches: Mapping[str, int]
    compiles: int
    artifact_hits: int
    memory_hits: int
    fallbacks: int
    tunings: int
    compile_ms: float = 0.0
    tuning_ms: float = 0.0
    saved_ms: float = 0.0
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """
    What a call would run and why; `str()` is for people.

    `assumed` is the signature by which arguments were made where none is stated.
    """

    kernel: str
    resolution: Resolution
    assumed: str = ""

    @property
    def variant(self) -> Variant:
        """The variant that a call runs."""
        return self.resolution.variant

    @property
    def grade(self) -> str:
        """How the choice is known: "measured", "extrapolated" or "none"."""
        return self.resolution.grade

    @property
    def reason(self) -> str:
        """Why this variant, in words."""
        return self.resolution.reason

    @property
    def region(self) -> Region | None:
        """The box of sizes that the decision holds for."""
        return self.resolution.decision.region if self.resolution.decision else None

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every variant that was looked at, with figures or the reason why not."""
        return candidates_of(self.resolution)

    def __str__(self) -> str:
        lines = explained(self.resolution, self.assumed)
        title = f"{self.kernel}: {self.variant} ({self.grade})"
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as plain values for JSON."""
        import msgspec

        decided, problem = self.resolution.decision, self.resolution.problem
        away = distance(problem.point, decided.point) if problem and decided else None
        return {
            "kernel": self.kernel,
            "variant": str(self.variant),
            "grade": self.grade,
            "reason": self.reason,
            "region": [str(span) for span in self.region or ()],
            "point": dict(decided.point) if decided else None,
            "distance": away if away != math.inf else None,
            "made": decided.made_utc if decided else None,
            "ties": [str(v) for v in decided.ties] if decided else [],
            "regret": decided.regret if decided else None,
            "contended": decided.contended if decided else None,
            "assumed": self.assumed or None,
            "candidates": [
                {**msgspec.to_builtins(one), "variant": str(one.variant)}
                for one in self.candidates
            ],
        }


def stats_of(tally: Tally) -> Stats:
    """Return a tally's counts as they are shown."""
    built = tally.built
    return Stats(
        dict(sorted((+tally.dispatches).items())),
        built.compiles,
        built.artifact_hits,
        built.memory_hits,
        tally.fallbacks.total(),
        tally.tunings,
        built.compile_ms,
        tally.tuning_ms,
        tally.saved_us / 1e3,
        dict((+tally.fallbacks).most_common()),
    )


@dataclass(frozen=True, slots=True)
class TuneReport:
    """
    The resolutions after a tuning, one per problem; `str()` is a table.

    `interrupted` says that Ctrl-C ended it before the last problem; `assumed` is the
    signature by which arguments were made where none is stated. `sweeps` are those of
    ranges of sizes, one a table.
    """

    kernel: str
    resolutions: tuple[Resolution, ...]
    interrupted: bool = False
    assumed: str = ""
    sweeps: tuple[Swept, ...] = ()

    def __str__(self) -> str:
        count = len(self.resolutions)
        title = f"{self.kernel}: {count} problem{'s' * (count != 1)}"
        if self.sweeps:
            count = len(self.sweeps)
            title = f"{self.kernel}: {count} table{'s' * (count != 1)} swept"
        if self.interrupted:
            title += ", then interrupted: what is decided is kept"
        lines = tuned(self.resolutions, self.assumed)
        lines += [line for one in self.sweeps for line in swept_text(one)]
        return "\n".join([title, *(f"  {one}".rstrip() for one in lines)]).rstrip()
