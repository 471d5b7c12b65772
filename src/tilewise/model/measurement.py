"""What was measured, and under which protocol."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.model.variant import Variant

__all__ = ["Candidate", "Protocol", "Provenance", "Timing"]

Provenance = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Protocol:
    """
    How a number was taken.

    `clock` names the timer, `cache` is "warm" or "cold", `order` says how the
    candidates shared the machine, `calls` is the number of calls in one sample.
    """

    clock: str = "perf_counter_ns"
    cache: str = "warm"
    order: str = "interleaved, shuffled"
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Timing:
    """
    The samples of one variant on one problem, summarised.

    `median_us` is the median time of one call in microseconds; `low_us` and
    `high_us` bound it (95 % interval of the median); `rounds` is the number of
    samples and `busy` the share of the machine (0..1) that others used.
    """

    median_us: float
    low_us: float
    high_us: float
    rounds: int
    protocol: Protocol = Protocol()
    busy: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    One variant's part in a decision.

    `status` is "measured", "rejected" (the engine can't), "failed" (build, load
    or run), "wrong" (verification), or "not tried" (budget); `reason` says why in
    words and `timing` is there when it was measured. `compile_ms` is counted
    apart from measuring; `error` is the largest error against the wider
    reference, in units of the bound (<= 1 is right). `version` identifies the
    code: its figures hold for no other.
    """

    variant: Variant
    status: str
    reason: str = ""
    timing: Timing | None = None
    compile_ms: float = 0.0
    error: float | None = None
    version: str = ""
