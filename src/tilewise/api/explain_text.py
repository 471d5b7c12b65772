"""Explanations and tuning reports as text for people, in 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tilewise.model.decision import Decision, Point
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.resolution import REFERENCE, Resolution
from tilewise.model.variant import Variant

__all__ = [
    "age_s",
    "age_text",
    "aligned",
    "beyond_text",
    "candidate_rows",
    "candidates_of",
    "distance",
    "explained",
    "microseconds",
    "refusals",
    "sizes_text",
    "tuned",
    "wrapped",
]

WIDTH = 79
FIGURES = (1, 2, 3)
"""The columns of figures, which stand at the right."""

UNITS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def explained(resolution: Resolution, assumed: str) -> list[str]:
    """Return the lines of an explanation below its title."""
    found = candidates_of(resolution)
    lines = [*facts(resolution, assumed), *aligned(candidate_rows(resolution), FIGURES)]
    return [*wrapped(resolution.reason), *lines, *refusals(found)]


def tuned(resolutions: Sequence[Resolution], assumed: str) -> list[str]:
    """
    Return the lines of a tuning report: a table a problem.

    Who was measured in none of them follows, with the first reason.
    """
    lines = assumption_text(assumed)
    for one in resolutions:
        head = f"{one.variant}, {one.reason}"
        if one.problem is not None:
            head = f"{sizes_text(one.problem.point)}: {head}"
        rows = aligned(candidate_rows(one), FIGURES)
        lines += [*wrapped(head), *(f"  {row}" for row in rows), ""]
    every = [c for one in resolutions for c in candidates_of(one)]
    seen = {c.variant for c in every if c.timing is not None}
    first = {c.variant: c for c in reversed(every) if c.variant not in seen}
    return [*lines, *refusals(reversed(first.values()))]


def facts(resolution: Resolution, assumed: str) -> list[str]:
    """Return what is known of a problem and its decision, a line each."""
    problem, decided = resolution.problem, resolution.decision
    lines = []
    if problem is not None:
        lines += [f"problem: {sizes_text(problem.point)}", *wrapped(problem.label)]
    lines += assumption_text(assumed)
    if decided is not None:
        lines.append("region: " + ", ".join(map(str, decided.region)))
        lines += wrapped(evidence(decided, problem.point if problem else ()))
    return lines


def evidence(decided: Decision, point: Point) -> str:
    """Say where and when a decision was measured, and what it may cost."""
    told = f"measured at {sizes_text(decided.point)}"
    if point != decided.point:
        told += f", sizes within {distance(point, decided.point):.2g}x of these"
    seconds = age_s(decided.made_utc)
    if seconds is not None:
        told += f", {age_text(seconds)} ago"
    if decided.regret is not None:
        told += f"; expected loss in the region {decided.regret:.1%}"
    return told


def assumption_text(assumed: str) -> list[str]:
    """Say which signature was assumed for made arguments, if one was."""
    told = f"arguments made as {assumed}: assumed, no signature is stated"
    return wrapped(told) if assumed else []


def distance(one: Point, other: Point) -> float:
    """Return the largest ratio between sizes of two points; inf to or from zero."""
    pairs = [(a, b) for (_, a), (_, b) in zip(one, other, strict=False) if a != b]
    ratios = [max(a, b) / min(a, b) if a and b else math.inf for a, b in pairs]
    return max(ratios, default=1.0)


def sizes_text(point: Point) -> str:
    """Write a point as `m=64, n=32, k=16`."""
    return ", ".join(f"{axis}={size}" for axis, size in point)


def candidates_of(resolution: Resolution) -> tuple[Candidate, ...]:
    """Return every variant that was looked at: those decided on, then refused now."""
    found = resolution.decision.candidates if resolution.decision else ()
    seen = {c.variant for c in found}
    return (*found, *(c for c in resolution.rejected if c.variant not in seen))


def candidate_rows(resolution: Resolution) -> list[tuple[str, ...]]:
    """Return a heading and a row per measured candidate, the fastest first."""
    decided = resolution.decision
    ties = decided.ties if decided else ()
    timed = [(c, c.timing) for c in candidates_of(resolution) if c.timing is not None]
    timed.sort(key=lambda pair: pair[1].median_us)
    base = next((t.median_us for c, t in timed if c.variant == REFERENCE), None)
    rows: list[tuple[str, ...]] = [
        ("variant", "median", "95 % interval", "speed", "status")
    ]
    for candidate, time in timed:
        speed = f"{base / time.median_us:.2f}x" if base else "-"
        figures = (microseconds(time.median_us), span_text(time.low_us, time.high_us))
        status = status_of(candidate, resolution.variant, ties) or here(
            time, resolution
        )
        rows.append((str(candidate.variant), *figures, speed, status))
    return rows if len(rows) > 1 else []


def status_of(candidate: Candidate, chosen: Variant, ties: Iterable[Variant]) -> str:
    """Say in a few words what became of a measured candidate."""
    if candidate.variant == chosen:
        return "chosen"
    if candidate.status != "measured":
        return f"{candidate.status}: {candidate.reason}"
    if candidate.variant in ties:
        return "tied"
    return candidate.reason.partition(" after ")[0]  # "can't win after 3 rounds"


def here(time: Timing, resolution: Resolution) -> str:
    """
    Say how a rival stands to the winner where both were measured, or "".

    A sweep's region is won on the whole, and its ties are by forecast: at the point of
    its evidence another may be as fast or faster.
    """
    from tilewise.tuner.rule import TIE

    decided = resolution.decision
    if decided is None or decided.origin == "cell":
        return ""
    best = decided.timing(resolution.variant)
    if best is None:
        least = min(c.timing.median_us for c in decided.candidates if c.timing)
        return "fastest at this point" if time.median_us == least else ""
    if time.high_us * (1 + TIE) < best.low_us:
        return "faster at this point"
    return "near-equal" if time.low_us < best.high_us * (1 + TIE) else ""


def refusals(candidates: Iterable[Candidate]) -> list[str]:
    """Return lines for those without figures, the variants of one reason together."""
    names: dict[str, list[str]] = {}
    for one in candidates:
        if one.timing is None:
            status = "" if one.status in ("rejected", "not tried") else one.status
            reason = f"{status}: {one.reason}" if status else one.reason
            names.setdefault(reason, []).append(str(one.variant))
    told = [
        line
        for reason, variants in names.items()
        for line in wrapped(f"{', '.join(dict.fromkeys(variants))}: {reason}", "  ")
    ]
    return ["not measured:", *told] if told else []


def span_text(low_us: float, high_us: float) -> str:
    """Write an interval of times with one unit."""
    unit, scale = ("us", 1.0) if high_us < 1e3 else ("ms", 1e3)
    return f"{low_us / scale:.2f} .. {high_us / scale:.2f} {unit}"


def microseconds(value: float) -> str:
    """Write a time with its unit."""
    return f"{value:.2f} us" if value < 1e3 else f"{value / 1e3:.2f} ms"


def age_s(made_utc: str) -> float | None:
    """Return how long ago a time was (s), or None when it is no time."""
    try:
        made = datetime.fromisoformat(made_utc)
    except ValueError:
        return None
    made = made if made.tzinfo else made.replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - made).total_seconds())


def beyond_text(count: int) -> str:
    """Stand for the regions that are only extrapolated: there may be many."""
    return f"and {count} region{'s' * (count != 1)} beyond these, extrapolated"


def age_text(seconds: float) -> str:
    """Write a time span in the largest unit that it holds two of, or in seconds."""
    for size, unit in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def wrapped(text: str, indent: str = "") -> list[str]:
    """Break a text into lines of at most 77 columns, later ones indented."""
    return textwrap.wrap(
        text,
        WIDTH - 2,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def aligned(rows: Sequence[tuple[str, ...]], right: Sequence[int] = ()) -> list[str]:
    """Align rows of text in columns; those numbered in `right` at their right."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
