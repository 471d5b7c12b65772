"""
Settling what is undecided, one at a time: who measures, who waits, who goes on.

One thread of a process measures, since two would disturb each other, and one process
measures a table. A call that comes meanwhile uses what there is; `tune` waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tilewise.model.decision import TableKey
from tilewise.model.resolution import Resolution
from tilewise.model.variant import Variant
from tilewise.runtime.mode import mode_of
from tilewise.runtime.question import Question
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.tally import Tally
from tilewise.store.decisions import table_name

__all__ = ["PATIENT_S", "resolved", "settled", "turn"]

PATIENT_S = 120.0
"""How long `tune` waits for another that measures the same table (seconds)."""
POLL_S = 0.05
NOWHERE = Path("/nonexistent/tilewise")


def resolved(
    resolver: Resolver, question: Question, pin: Variant | None, tally: Tally
) -> tuple[Resolution, bool]:
    """
    Return what a call runs, measuring first what is undecided, and whether it lasts.

    It does not where another is measuring: the next call asks again. What is bound
    waits instead, since it asks once.
    """
    found = resolver.look(question, pin)
    if not wants_tuning(question, found):
        return found, True
    wait_s = PATIENT_S if question.bound else 0.0
    return settled(resolver, question, found, tally, wait_s=wait_s)


def wants_tuning(question: Question, resolution: Resolution) -> bool:
    """Say whether a call is to measure before it runs."""
    mode = mode_of(question)
    undecided = resolution.grade != "measured" or mode == "force"
    return mode != "off" and undecided and not resolution.final


def settled(
    resolver: Resolver,
    question: Question,
    found: Resolution,
    tally: Tally,
    *,
    force: bool = False,
    budget_s: float | None = None,
    wait_s: float = 0.0,
) -> tuple[Resolution, bool]:
    """
    Measure a question unless it is decided; return what is decided then.

    `found` is what a look gave. The second value says whether it was this one's turn
    within `wait_s` seconds. What it cost is counted.
    """
    if found.final or found.problem is None:
        return found, True
    force = force or mode_of(question) == "force"
    with turn(resolver, resolver.key(found.problem), wait_s) as mine:
        resolution = resolver.look(question)  # Another may have decided it by now.
        if not mine or not (force or wants_tuning(question, resolution)):
            return resolution, mine
        from tilewise.runtime.race import measured  # A warm process never measures.

        begun = time.perf_counter()
        done = measured(resolver, question, tally.built, force=force, budget_s=budget_s)
        if done is not None:
            tally.tunings += 1
        tally.tuning_ms += 1e3 * (time.perf_counter() - begun)
        return resolver.look(question), True


@contextmanager
def turn(resolver: Resolver, key: TableKey, wait_s: float = 0.0) -> Iterator[bool]:
    """
    Have the right to measure a table; yields False when another has it by then.

    A process that ends, however it ends, gives it back.
    """
    from tilewise.tuner.claims import claim

    end = time.monotonic() + wait_s
    if not resolver.tuning.acquire(timeout=wait_s):
        yield False
        return
    folder = (resolver.store_of().directory or NOWHERE) / "claims"
    try:
        while True:
            with ExitStack() as holding:
                mine = holding.enter_context(claim(folder, table_name(key)))
                if mine or time.monotonic() >= end:
                    yield mine
                    return
            time.sleep(POLL_S)
    finally:
        resolver.tuning.release()
