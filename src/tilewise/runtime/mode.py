"""Whether calls may measure: the settings, `tuning` blocks and the decorator's word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tilewise.errors import ArgumentError, SettingError
from tilewise.runtime.question import Question
from tilewise.settings import current

__all__ = ["forbidden", "is_passing", "mode_of", "tuning"]

forced_mode: ContextVar[str | None] = ContextVar("tilewise_tuning", default=None)


@contextmanager
def tuning(mode: str) -> Iterator[None]:
    """
    Tune ("auto") or don't ("off") inside a `with` block, in this context.

    Raises ArgumentError for another mode.
    """
    if mode not in ("auto", "off"):
        raise ArgumentError(f'tuning({mode!r}): use "auto" or "off"')
    token = forced_mode.set(mode)
    try:
        yield
    finally:
        forced_mode.reset(token)


def is_passing() -> bool:
    """Say whether a `tuning` block is open: what it leaves undecided does not last."""
    return forced_mode.get() is not None


def mode_of(question: Question) -> str:
    """Return "auto", "off" or "force" for a call, by the stated precedence."""
    stated = question.subject.options.tune
    if forbidden(stated):
        return "off"
    return forced_mode.get() or current().tune or stated


def forbidden(stated: str) -> SettingError | None:
    """Return what forbids tuning where a decorator states "auto" or "off"; or None."""
    settings, forced = current(), forced_mode.get()
    if settings.tune == "off":
        return SettingError("TILEWISE_TUNE", "off", "unset it or use auto", "tuning")
    if settings.readonly:
        return SettingError("TILEWISE_READONLY", "1", "unset it or use 0", "tuning")
    if forced == "off":
        return SettingError("tuning", "off", "tune outside `with tuning`", "tuning")
    if stated == "off" and forced is None:
        return SettingError("tune", "off", "say auto in the decorator", "tuning")
    return None
