"""Checking what was decided: stored winners measured again, reported or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewise.api.explain_text import sizes_text, wrapped
from tilewise.api.kernel import TunedKernel
from tilewise.api.shapes import arguments_at, on_device
from tilewise.model.decision import TableKey
from tilewise.runtime.drifting import drifted
from tilewise.runtime.mode import forbidden
from tilewise.runtime.question import Question, Subject, ask
from tilewise.tuner.drift import Drift

__all__ = ["DriftReport", "check_drift"]


@dataclass(frozen=True, slots=True)
class DriftReport:
    """
    What came of checking a kernel; `str()` is for people.

    `unchecked` says in words which tables were left out and why; `repaired` that
    those who lost were to be replaced: each says whether the store has its successor.
    """

    kernel: str
    checked: tuple[Drift, ...]
    unchecked: tuple[str, ...]
    repaired: bool
    interrupted: bool = False

    def __str__(self) -> str:
        lost = sum(not one.kept for one in self.checked)
        title = (
            f"{self.kernel}: {len(self.checked)} winners measured again, {lost} lost"
        )
        replaced = sum(one.written is True for one in self.checked)
        if lost:
            told = f"{replaced or 'none'} of them replaced"
            title += " and were replaced" if replaced == lost else f", {told}"
        if self.interrupted:
            title += "; then interrupted"
        lines = [
            line
            for one in self.checked
            for line in wrapped(f"{sizes_text(one.stored.point)}: {one}", "  ")
        ]
        lines += [
            line
            for told in self.unchecked
            for line in wrapped(f"not checked, {told}", "  ")
        ]
        return "\n".join([title, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as plain values for JSON."""
        return {
            "kernel": self.kernel,
            "repaired": self.repaired,
            "interrupted": self.interrupted,
            "not_checked": list(self.unchecked),
            "checked": [
                {
                    "point": dict(one.stored.point),
                    "stored": str(one.stored.variant),
                    "winner": str(one.decision.variant),
                    "kept": one.kept,
                    "loss": one.loss,
                    "written": one.written,
                }
                for one in self.checked
            ],
        }


def question_of(
    subject: Subject,
    signature: str | None,
    sizes: Mapping[str, int],
    key: TableKey,
    device: int,
) -> Question:
    """Make arguments as a table says, on the GPU of a number where it is for one."""
    dtype = key.dtype or "float32"
    args = arguments_at(subject, sizes, dtype, "host", signature)
    if key.residency == "device":
        args = tuple(on_device(arg, device) for arg in args)
    return ask(subject, subject.bind(args, {}))


def check_drift(
    kernel: TunedKernel[Any, Any],
    *,
    signature: str | None = None,
    repair: bool = False,
    budget_s: float | None = None,
) -> DriftReport:
    """
    Measure a kernel's stored winners again, at the points of their evidence.

    Arguments are made as each table says, on the device that it is for; `signature`
    replaces the decorator's. With `repair` those that lost by more than the margin are
    replaced. Raises SettingError naming what forbids tuning.
    """
    subject, resolver = kernel._subject, kernel._resolver()
    error = forbidden(subject.options.tune)
    if error is not None:
        raise error
    made = partial(question_of, subject, signature)
    checked: list[Drift] = []
    unchecked: list[str] = []
    interrupted = False
    try:
        for one in drifted(
            resolver, made, subject.name, repair=repair,
            budget_s=budget_s or subject.options.budget_s,
        ):  # fmt: skip
            if isinstance(one, str):
                unchecked.append(one)
            else:
                checked.append(one)
    except KeyboardInterrupt:
        interrupted = True
    kernel._clear()
    found = tuple(checked), tuple(unchecked)
    return DriftReport(subject.name, *found, repair, interrupted)
