"""Judging a decision for a problem: who serves, how sure it is, and why in words."""

from __future__ import annotations

from dataclasses import replace

from tilewise.device.provenance import provenance_changed
from tilewise.errors import SettingError
from tilewise.model.axes import Posed
from tilewise.model.decision import Decision
from tilewise.model.measurement import Candidate, Provenance
from tilewise.model.resolution import REFERENCE, Resolution
from tilewise.model.variant import Variant

__all__ = [
    "changed_fields",
    "judged",
    "passed_over",
    "reasons",
    "serving",
    "stale_fields",
    "why_undecided",
]

REGRET_LIMIT = 0.03
"""An extrapolated decision serves under tune="off" up to this expected loss."""


CPU_FIELDS = ("blas", "llvmlite", "numba", "numpy", "python", "tilewise")
"""The versions that a decision between CPU variants depends on."""


def stale_fields(
    decision: Decision, now: Provenance
) -> dict[str, tuple[str | None, str | None]]:
    """Return the versions that changed since a decision and matter to it."""
    raced = (c for c in decision.candidates if c.status != "rejected")
    return changed_fields({c.variant.engine for c in raced}, decision.provenance, now)


def changed_fields(
    engines: set[str], then: Provenance, now: Provenance
) -> dict[str, tuple[str | None, str | None]]:
    """Return the versions that changed and matter to some engines."""
    if not then:
        return {}
    changed = provenance_changed(then, now)
    if engines <= {"reference", "cpu"}:
        return {n: both for n, both in changed.items() if n in CPU_FIELDS}
    return changed


def reasons(rejected: list[Candidate]) -> str:
    """Write the different reasons of rejected candidates in one line, each once."""
    names: dict[str, dict[str, None]] = {}
    for one in rejected:
        names.setdefault(one.reason, {})[one.variant.name] = None
    return "; ".join(f"{', '.join(who)}: {reason}" for reason, who in names.items())


def serving(decision: Decision | None, usable: set[Variant]) -> Decision | None:
    """
    Return a decision for those who can serve: its winner, or the next best measured.

    None where nobody who can serve was measured.
    """
    if decision is None or decision.variant in usable:
        return decision
    timed = [
        (c.timing.median_us, c.variant)
        for c in decision.candidates
        if c.timing is not None and c.variant in usable
    ]
    return replace(decision, variant=min(timed)[1]) if timed else None


def passed_over(won: Decision | None, serves: Decision, unable: list[Candidate]) -> str:
    """Say why a region's winner does not serve a problem, or return ""."""
    if won is None or won.variant == serves.variant:
        return ""
    why = next((c.reason for c in unable if c.variant == won.variant), "is not allowed")
    return f"{won.variant} won here, but {why}; next best: "


def why_undecided(stops: SettingError | None) -> str:
    """Say why nothing measured serves a problem, and what stops the measuring."""
    if stops is not None:
        by = f"{stops.variable}={stops.value}"
        return f"nothing is measured for these sizes and tuning is off, by {by}"
    return "nothing is measured for these sizes yet: the next call measures"


def judged(
    decision: Decision, problem: Posed, mode: str, rejected: tuple[Candidate, ...]
) -> Resolution:
    """Grade a decision for a problem and say why it serves."""
    grade, variant, reason = decision.grade, decision.variant, why_chosen(decision)
    if decision.source:
        reason = f"{reason}, as {decision.source} ships it"
    loss = decision.regret
    if (
        grade == "extrapolated"
        and mode == "off"
        and (loss is None or loss > REGRET_LIMIT)
    ):
        variant = REFERENCE
        reason = "tuning is off and no stored regret covers these sizes"
    elif grade == "extrapolated" and mode != "off":
        reason = f"{reason}; beyond what is measured: the next call measures"
    return Resolution(variant, grade, reason, problem, decision, rejected)


def why_chosen(decision: Decision) -> str:
    """Say in words how the winner stood against the reference."""
    best, base = decision.timing(decision.variant), decision.timing(REFERENCE)
    load = ", under load from others" if decision.contended else ""
    if decision.variant == REFERENCE:
        return f"no variant beat the reference by more than the margin{load}"
    if best is None or base is None:
        return f"it is expected to be the fastest in this region{load}"
    ratio = base.median_us / best.median_us
    return f"{ratio:.2f}x of the reference's speed where it was measured{load}"
