"""
The one miss path: from a question to the resolution that a call acts on.

`look` reads what is decided and changes nothing: `explain` prints what it returns.
What it finds undecided is measured (settle.py, race.py); then it is asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tilewise.build.build import Workshop
from tilewise.build.order import Counts, Prepared
from tilewise.errors import ArgumentError, EngineError, SettingError
from tilewise.model.axes import Posed
from tilewise.model.decision import Decision, TableKey
from tilewise.model.fold import folded_run
from tilewise.model.measurement import Candidate, Provenance
from tilewise.model.problem import Problem
from tilewise.model.resolution import REFERENCE, Resolution
from tilewise.model.variant import Variant
from tilewise.runtime.judge import (
    judged,
    passed_over,
    reasons,
    serving,
    stale_fields,
    why_undecided,
)
from tilewise.runtime.mode import forbidden, mode_of
from tilewise.runtime.own import (
    matching,
    pinned_own,
    survey_own,
    unraced,
)
from tilewise.runtime.question import Question
from tilewise.runtime.tables import Tables
from tilewise.settings import current
from tilewise.store.stack import Store
from tilewise.store.warn import warn_once

__all__ = ["Resolver"]

UNTRIED = "not tried", "able to compete, but tuning is off"


@dataclass(slots=True)
class Resolver:
    """Looks up and settles questions with one workshop, store and fingerprint."""

    workshop: Workshop
    store_of: Callable[[], Store]
    fingerprint_of: Callable[[int], str]
    provenance_of: Callable[[], Provenance]
    tables: Tables
    tuning: threading.RLock = field(default_factory=threading.RLock)

    def renew_locks(self) -> None:
        """Replace locks that another thread may have held when a child was forked."""
        self.tables.lock, self.tuning = threading.RLock(), threading.RLock()
        self.workshop.renew_locks()

    def key(self, problem: Posed) -> TableKey:
        """Return the key of the decision table that a problem belongs to."""
        return TableKey(
            self.fingerprint_of(problem.device),
            problem.digest,
            problem.table,
            problem.residency,
            problem.dtype,
            problem.label,
        )

    def allowed(self, question: Question) -> tuple[str, ...]:
        """Return the engines that may serve a question; () is all."""
        return question.subject.options.engines or current().engines

    def check_engines(self, question: Question) -> None:
        """
        Raise for an engine that there is not.

        ArgumentError where the kernel names it, SettingError for the environment.
        """
        known = {"reference", "user", *self.workshop.engines}
        told = ", ".join(sorted(known))
        for name in question.subject.options.engines:
            if name not in known:
                raise ArgumentError(f"engines= names {name!r}: there are {told}")
        for name in current().engines:
            if name not in known:
                raise SettingError("TILEWISE_ENGINES", name, told)

    def survey(
        self, question: Question, problem: Posed
    ) -> tuple[list[Variant], list[Candidate]]:
        """Return who can serve a problem, the user's last, and who can't and why."""
        able: list[Variant] = []
        unable: list[Candidate] = []
        allowed = self.allowed(question)
        if isinstance(problem, Problem):
            able, unable = self.workshop.survey(problem, allowed)
        if not allowed or "user" in allowed:
            own, unfit = survey_own(question.subject, problem)
            able, unable = able + own, unable + unfit
        return able, unable

    def candidates(
        self, question: Question, problem: Posed
    ) -> tuple[list[Variant], list[Candidate]]:
        """Return who may race for a problem, and who may not with the reason."""
        able, unable = self.survey(question, problem)
        if problem.residency == "device" or current().device != "emulated":
            return able, unable
        made = [v for v in able if v.engine != "user"]
        targets = {v: self.workshop.target_of(v.engine, 0).kind for v in made}
        emulated = [v for v in made if targets[v] == "cuda"]
        reason = "its times on the emulated device decide nothing"
        unable += [Candidate(v, "rejected", reason) for v in emulated]
        return [v for v in able if v not in emulated], unable

    def look(self, question: Question, pin: Variant | None = None) -> Resolution:
        """Return what a call would run now, reading memory and the store only."""
        problem = question.problem
        if problem is None:
            if pin not in (None, REFERENCE):
                raise EngineError(f"the pinned {pin} can't run: {question.reason}")
            return Resolution(REFERENCE, "none", question.reason, final=True)
        if pin is not None:
            return self.pinned(pin, question, problem)
        self.check_engines(question)
        able, unable = self.candidates(question, problem)
        if able and on_emulated(problem):
            reason = (
                "the emulated device decides nothing: this is the first that applies"
            )
            return Resolution(
                able[0], "none", reason, problem, None, tuple(unable), final=True
            )
        if not able:
            told = reasons(unable) or "the kernel has no variants"
            reason = f"no engine takes this problem: {told}"
            return Resolution(
                REFERENCE, "none", reason, problem, None, tuple(unable), final=True
            )
        return self.graded(question, problem, able, unable)

    def graded(
        self,
        question: Question,
        problem: Posed,
        able: list[Variant],
        unable: list[Candidate],
    ) -> Resolution:
        """Return what is decided for those who can serve, and how far that holds."""
        won, mode = self.decision(problem), mode_of(question)
        fresh, changed = unraced(won, question.subject, able)
        decision = serving(won, {REFERENCE, *able} - changed)
        if decision is None:
            stops = forbidden(question.subject.options.tune)
            reason = why_undecided(stops)
            if stops is not None:
                unable = [*unable, *(Candidate(v, *UNTRIED) for v in able)]
            return Resolution(
                REFERENCE, "none", reason, problem, rejected=tuple(unable)
            )
        resolution = judged(decision, problem, mode, tuple(unable))
        reason = passed_over(won, decision, unable) + resolution.reason
        resolution = replace(resolution, reason=reason)
        if fresh | changed and mode != "off":
            told = ", ".join(map(str, sorted(fresh | changed)))
            reason = f"{told} did not race, or changed since: the next call measures"
            return replace(resolution, grade="none", reason=reason)
        return self.aged(resolution, mode)

    def explained(self, question: Question, pin: Variant | None) -> Resolution:
        """Return what `look` does, and where else an undecided problem is decided."""
        found = self.look(question, pin)
        if found.problem is None or found.final or found.decision is not None:
            return found
        key, store = self.key(found.problem), self.store_of()
        told = [found.reason]
        others = store.elsewhere(key)
        if others:  # All tables were read for this: no call does.
            told.append(f"(it is decided for other hardware: {', '.join(others)})")
        named = (
            t.key for t in store.tables() if t.kernel_name == question.subject.name
        )
        here = (k for k in named if k.fingerprint == key.fingerprint)
        labels = [
            k.label for k in here if k.table != key.table or k.kernel != key.kernel
        ]
        if labels:
            told.append(f"(it is decided for other arguments: {' and '.join(labels)})")
        return replace(found, reason=" ".join(told))

    def aged(self, resolution: Resolution, mode: str) -> Resolution:
        """
        Return the resolution, or what becomes of it when its decision is stale.

        A decision is stale when a version that it was made with has changed: it is
        measured again, or, where tuning is off, used with one warning.
        """
        decision = resolution.decision
        changed = decision and stale_fields(decision, self.provenance_of())
        if not changed or decision is None:
            return resolution
        told = ", ".join(f"{n} {a} -> {b}" for n, (a, b) in changed.items())
        if mode != "off":
            reason = f"stale, {told}: the next call measures again"
            return replace(resolution, variant=REFERENCE, grade="none", reason=reason)
        warn_once(f"the decision for {resolution.variant}", f"it is stale, {told}")
        return replace(
            resolution, grade="extrapolated", reason=f"stale, {told}; tuning is off"
        )

    def pinned(self, pin: Variant, question: Question, problem: Posed) -> Resolution:
        """Return the pinned variant; raises EngineError with the reason it can't."""
        if pin == REFERENCE:
            return Resolution(pin, "none", "pinned", problem, final=True)
        if pin.engine == "user" or not isinstance(problem, Problem):
            found = pinned_own(pin, question.subject, problem)
            if isinstance(found, str):
                raise EngineError(f"the pinned {pin} can't run: {found}")
            return Resolution(found, "none", "pinned", problem, final=True)
        refused = []
        listed = self.matching(pin, problem)
        for variant in listed or [pin]:
            reason = self.workshop.rejects(variant, problem)
            if reason is None:
                return Resolution(variant, "none", "pinned", problem, final=True)
            refused.append(reason)
        if not listed:
            known = self.matching(replace(pin, config=()), problem)
            refused.append(f"there is {', '.join(map(str, known)) or 'none'}")
        raise EngineError(f"the pinned {pin} can't run: {'; '.join(refused)}")

    def matching(self, pin: Variant, problem: Problem) -> list[Variant]:
        """Return the variants that a pin names: itself, or all of its method."""
        engine = self.workshop.engines.get(pin.engine)
        if engine is None:
            return []
        target = self.workshop.target_of(pin.engine, problem.device)
        return matching(pin, engine.variants(problem, target))

    def decision(self, problem: Posed) -> Decision | None:
        """Return the stored decision for a problem, from memory or the store."""
        return self.tables.find(self.key(problem), problem.point)

    def prepared(self, variant: Variant, problem: Problem, counts: Counts) -> Prepared:
        """Return a variant's run for the caller's shapes, and how it was made."""
        made = self.workshop.prepare(variant, problem, counts)
        run = folded_run(made.run, problem.spec, problem.fold, problem.shape)
        return replace(made, run=run)


def on_emulated(problem: Posed) -> bool:
    """Say whether a problem's arrays live on the emulated device."""
    return problem.residency == "device" and current().device == "emulated"
