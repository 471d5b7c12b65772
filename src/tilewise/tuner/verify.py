"""
Verification before timing: a variant that is wrong is never fast.

Each run gets fresh copies of the arguments in the caller's layouts and a fresh output
of poison, all between guard bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.tuner.contest import Case, Run
from tilewise.tuner.expect import Expected, Fault, expect
from tilewise.tuner.inputs import Guarded, guarded, is_plain, makers
from tilewise.tuner.isolate import ending_of
from tilewise.tuner.returned import Returned, is_lent, returned
from tilewise.tuner.spots import Spots, expect_spots

__all__ = ["GUARDS", "Exam", "Trial", "Verdict", "prepare", "verify"]

POISONS = (0xFF, 0x3F)
"""Bytes: NaN, and a number below 1; what keeps both was never written."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Whether a variant's results are right.

    `status` is "right", "wrong", "failed" (it raised) or "not tried"; `reason` says
    what was found, and `error` is the largest error in units of the bound (<= 1 is
    right), or None where nothing could be compared.
    """

    status: str
    reason: str = ""
    error: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the variant may compete."""
        return self.status == "right"


@dataclass(frozen=True, slots=True)
class Trial:
    """
    One set of arguments with what is right for them.

    `laid` are guarded copies of the arguments, which all contestants share as long as
    none has failed, so that none can have changed them.
    """

    name: str
    args: tuple[Any, ...]
    expected: Expected | Spots | Returned
    likely: bool = False
    laid: dict[int, Guarded] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Exam:
    """All trials of a case; computed once and given to every contestant."""

    case: Case
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Sitting:
    """
    What one run left behind: guarded arguments and output, and what it returned.

    `result` is what is compared: the output, or what was returned where none is filled.
    """

    args: tuple[Any, ...]
    guards: Mapping[int, Guarded]
    output: Guarded
    poison: Any
    returned: Any
    result: Any


def prepare(case: Case, seed: int = 0) -> Exam:
    """
    Make the trials of a case: the caller's arguments, then telling ones.

    Only floating arrays are replaced; integers, bools and numbers keep the caller's
    values, which may be indices or sizes.
    """
    if not case.fills:
        return Exam(case, (Trial("your arguments", case.args, returned(case)),))
    trials = [Trial("your arguments", case.args, right(case, case.args, False))]
    sizes = int(np.prod(case.shape)), sum(map(np.size, case.args))
    for number, (name, make) in enumerate(makers(case.depth, *sizes)):
        random = np.random.default_rng((seed, number))
        args = tuple(replaced(arg, make, random, case.depth) for arg in case.args)
        trials.append(Trial(name, args, right(case, args, True), True))
    return Exam(case, tuple(trials))


def right(case: Case, args: tuple[Any, ...], likely: bool) -> Expected | Spots:
    """Compute what is right for some arguments; of a large result, at spots of it."""
    return expect_spots(case, args, likely) or expect(case, args, likely=likely)


def replaced(
    arg: Any, make: Callable[..., Any], random: np.random.Generator, depth: int
) -> Any:
    """Return an array of new values in the same layout; other arguments as they are."""
    if not isinstance(arg, np.ndarray) or arg.dtype.kind not in "fc":
        return arg
    with np.errstate(all="ignore"):
        values = make(random, arg.shape, depth)
        if arg.dtype.kind == "c":
            values = values + 1j * make(random, arg.shape, depth)
        return guarded(arg, values.astype(arg.dtype)).array


def verify(run: Run, case: Case, exam: Exam | None = None) -> Verdict:
    """
    Check a run against the reference on every trial of a case.

    Stops at the first fault. What raises is "failed"; KeyboardInterrupt passes.
    """
    exam = exam or prepare(case)
    largest = 0.0
    for number, trial in enumerate(exam.trials):
        twice = POISONS if number == 0 else POISONS[:1]
        verdict = sit(run, case, trial, twice)
        if not verdict.ok:
            trial.laid.clear()
            return verdict
        largest = max(largest, verdict.error or 0.0)
    return Verdict("right", "", largest)


def sit(run: Run, case: Case, trial: Trial, poisons: tuple[int, ...]) -> Verdict:
    """Run one trial, once for each poison, and judge what is left behind."""
    sittings = []
    for poison in poisons:
        try:
            with np.errstate(all="ignore"):
                sittings.append(seated(run, case, trial, poison))
        except (Exception, SystemExit) as raised:
            return Verdict("failed", ending_of(raised))
        for guard in RETURNING if not case.fills else GUARDS:
            reason = guard(sittings)
            if reason:
                return Verdict("wrong", f"{reason} ({trial.name})")
    lent = lends(trial.expected, sittings[-1])
    if lent:
        return Verdict("wrong", f"{lent} ({trial.name})")
    error, fault = worst(trial.expected, sittings)
    if fault is not None and fault.doubtful and small(case):
        closer = expect(case, trial.args, likely=trial.likely, closely=True)
        error, fault = closer.judge(sittings[0].result)
    if fault is not None:
        hint = "; tolerance= states another bound" if np.isfinite(error) else ""
        return Verdict("wrong", f"{fault} ({trial.name}){hint}", error)
    return Verdict("right", "", error)


def lends(expected: Expected | Spots | Returned, last: Sitting) -> str:
    """Say whether an argument is returned where the reference returns a new array."""
    if not isinstance(expected, Returned) or expected.lends:
        return ""
    found = [str(i) for i, arg in enumerate(last.args, 1) if is_lent(last.result, arg)]
    return f"returns memory of argument {', '.join(found)}" if found else ""


def worst(
    expected: Expected | Spots | Returned, sittings: list[Sitting]
) -> tuple[float, Fault | None]:
    """Judge the results of all runs of a trial and return the worst."""
    found = [expected.judge(sitting.result) for sitting in sittings]
    return max(found, key=lambda one: (one[1] is not None, one[0]))


def small(case: Case) -> bool:
    """Say whether a closer look is affordable (64 evaluations, some 0.1 s)."""
    return int(np.prod(case.shape)) * max(case.depth, 64) <= 1 << 24


def seated(run: Run, case: Case, trial: Trial, poison: int) -> Sitting:
    """Run once on guarded copies of the arguments and a poisoned output."""
    args, sealed = trial.args, trial.laid if case.fills else {}
    if not sealed:
        plain = {i: arg for i, arg in enumerate(args) if is_plain(arg)}
        sealed.update({i: guarded(a, a).sealed() for i, a in plain.items()})
    own = tuple(sealed[i].array if i in sealed else a for i, a in enumerate(args))
    output = guarded(np.empty(case.shape, case.dtype), fill=poison)
    outs = [output] if case.fills else []
    if case.bench is None:
        found = run(*own, *(out.array for out in outs))
    else:
        found = case.bench.carried(run, own, sealed, *outs)
    result = output.array if case.fills else found
    return Sitting(own, sealed, output, poison, found, result)


def changes_input(sittings: list[Sitting]) -> str:
    """Say whether an argument, or memory around it, is not what it was."""
    last = sittings[-1]
    spoilt = [str(i + 1) for i, guard in last.guards.items() if guard.changed]
    return f"changes argument {', '.join(spoilt)}" if spoilt else ""


def writes_outside(sittings: list[Sitting]) -> str:
    """Say whether memory around the output, which has no gaps, was written."""
    last = sittings[-1].output
    start = last.array.ctypes.data - last.buffer.ctypes.data
    ends = (last.buffer[:start], last.buffer[start + last.array.nbytes :])
    kept = all((end == sittings[-1].poison).all() for end in ends)
    return "" if kept else "writes outside its output"


def returns_another(sittings: list[Sitting]) -> str:
    """Say whether something else than the output was returned."""
    last = sittings[-1]
    if last.returned is last.output.array:
        return ""
    arrays = [i for i, a in enumerate(last.args) if isinstance(a, np.ndarray)]
    if isinstance(last.returned, np.ndarray):
        for i in arrays:
            if np.may_share_memory(last.returned, last.args[i]):
                return f"returns argument {i + 1} instead of its output"
    return f"returns {type(last.returned).__name__} instead of its output"


def leaves_unwritten(sittings: list[Sitting]) -> str:
    """Say how many elements kept the poison of two runs."""
    if len(sittings) < len(POISONS):
        return ""
    kept = untouched(sittings[0])
    if kept.any():
        kept &= untouched(sittings[1])
    count = int(np.count_nonzero(kept))
    return f"leaves {count} of {kept.size} elements unwritten" if count else ""


def untouched(sitting: Sitting) -> Any:
    """Return which elements of an output still consist of poison."""
    array = sitting.output.array
    size = min(array.itemsize, 8)
    words = array.reshape(-1).view(f"u{size}").reshape(-1, array.itemsize // size)
    kept = words == int.from_bytes(bytes([sitting.poison]) * size, "little")
    return kept[:, 0] if kept.shape[1] == 1 else kept.all(axis=1)


def returns_its_own(sittings: list[Sitting]) -> str:
    """Say whether two calls returned the same memory."""
    results = [sitting.result for sitting in sittings]
    arrays = [one for one in results if isinstance(one, np.ndarray)]
    shared = len(arrays) > 1 and np.may_share_memory(arrays[0], arrays[1])
    return "returns the same memory at each call" if shared else ""


GUARDS: list[Callable[[list[Sitting]], str]] = [
    changes_input, writes_outside, returns_another, leaves_unwritten,
]  # fmt: skip
"""What is looked for besides wrong numbers; each says what it found, or ""."""

RETURNING = [changes_input, returns_its_own]
"""The same where a result is returned."""
