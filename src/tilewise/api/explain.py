"""What a kernel tells people: explanations, tuning reports and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise.model.decision import Region
from tilewise.model.measurement import Candidate
from tilewise.model.resolution import REFERENCE, Resolution
from tilewise.model.variant import Variant
from tilewise.runtime.tally import Tally

__all__ = [
    "Explanation",
    "Stats",
    "TuneReport",
    "aligned",
    "candidate_rows",
    "stats_of",
]


@dataclass(frozen=True, slots=True)
class Stats:
    """
    Counts of one kernel in this process.

    `dispatches` are calls per variant; `compiles`, `artifact_hits` (from disk) and
    `memory_hits` say where code came from; `fallbacks` are calls that only the
    reference could serve; `tunings` are problems measured. `compile_ms` and
    `tuning_ms` are what both cost here; `saved_ms` is what the winners saved over the
    reference, by the medians that chose them.
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


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a call would run and why; `str()` is for people."""

    kernel: str
    resolution: Resolution

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
        decided = self.resolution.decision
        found = list(decided.candidates) if decided else []
        seen = {c.variant for c in found}
        return (*found, *(c for c in self.resolution.rejected if c.variant not in seen))

    def __str__(self) -> str:
        lines = [f"{self.kernel}: {self.variant} ({self.grade})", f"  {self.reason}"]
        problem = self.resolution.problem
        if problem is not None:
            sizes = ", ".join(f"{axis}={size}" for axis, size in problem.point)
            lines += [f"  problem: {sizes}", f"  {problem.label}"]
        if self.region is not None:
            lines.append("  region: " + ", ".join(map(str, self.region)))
        lines += ["  " + row for row in aligned(candidate_rows(self))]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as plain values for JSON."""
        import msgspec

        decided = self.resolution.decision
        return {
            "kernel": self.kernel,
            "variant": str(self.variant),
            "grade": self.grade,
            "reason": self.reason,
            "region": [str(span) for span in self.region or ()],
            "point": dict(decided.point) if decided else None,
            "regret": decided.regret if decided else None,
            "candidates": msgspec.to_builtins(self.candidates),
        }


def stats_of(tally: Tally) -> Stats:
    """Return a tally's counts as they are shown."""
    built = tally.built
    return Stats(
        dict(sorted((+tally.dispatches).items())),
        built.compiles,
        built.artifact_hits,
        built.memory_hits,
        tally.fallbacks,
        tally.tunings,
        built.compile_ms,
        tally.tuning_ms,
        tally.saved_us / 1e3,
    )


def candidate_rows(explanation: Explanation) -> list[tuple[str, ...]]:
    """Return a heading and one row per candidate, all text."""
    decided = explanation.resolution.decision
    ties = set(decided.ties) if decided else set()
    base = next(
        (c.timing for c in explanation.candidates if c.variant == REFERENCE), None
    )
    rows: list[tuple[str, ...]] = [
        ("variant", "median", "95 % interval", "speed", "status")
    ]
    for candidate in explanation.candidates:
        time = candidate.timing
        figures = ("-", "-", "-")
        if time is not None:
            speed = f"{base.median_us / time.median_us:.2f}x" if base else "-"
            span = f"{microseconds(time.low_us)} .. {microseconds(time.high_us)}"
            figures = (microseconds(time.median_us), span, speed)
        status = candidate.status
        if candidate.variant == explanation.variant:
            status = "chosen"
        elif candidate.variant in ties:
            status = "tied"
        told = f"{status}: {candidate.reason}" if candidate.reason else status
        rows.append((str(candidate.variant), *figures, told))
    return rows if len(rows) > 1 else []


def microseconds(value: float) -> str:
    """Write a time with its unit."""
    return f"{value:.2f} us" if value < 1e3 else f"{value / 1e3:.2f} ms"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align rows of text in columns."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        "  ".join([c.ljust(w) for c, w in zip(row, widths, strict=False)] + [row[-1]])
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class TuneReport:
    """
    The resolutions after a tuning, one per problem; `str()` is a table.

    `interrupted` says that Ctrl-C ended it before the last problem.
    """

    kernel: str
    resolutions: tuple[Resolution, ...]
    interrupted: bool = False

    def __str__(self) -> str:
        parts = [str(Explanation(self.kernel, r)) for r in self.resolutions]
        if self.interrupted:
            parts.append(
                f"{self.kernel}: interrupted; what stands above is kept, "
                f"{len(self.resolutions)} problems"
            )
        return "\n\n".join(parts)
