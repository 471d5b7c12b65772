"""The TILEWISE_* variables, read in one place and checked by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tilewise.errors import SettingError

__all__ = ["Settings", "current", "current_device", "origin"]


@dataclass(frozen=True, slots=True)
class Settings:
    """
    One reading of the environment.

    `cache_dir` is None for the user's default place; `cache_max_bytes` caps the
    artifacts (bytes); `num_threads` is 0 for all usable threads.
    """

    cache_dir: Path | None = None
    cache_max_bytes: int = 1 << 30
    tune: str = ""
    engines: tuple[str, ...] = ()
    readonly: bool = False
    bundle: Path | None = None
    device: str = "auto"
    num_threads: int = 0


def current() -> Settings:
    """
    Read the settings from the environment.

    Raises SettingError naming the variable, its value and what is allowed.
    """
    engines = os.environ.get("TILEWISE_ENGINES", "").replace(",", " ").split()
    return Settings(
        cache_dir=path("TILEWISE_CACHE_DIR"),
        cache_max_bytes=integer("TILEWISE_CACHE_MAX_BYTES", 1 << 30, 1 << 20),
        tune=word("TILEWISE_TUNE", ("", "auto", "off", "force")),
        engines=tuple(engines),
        readonly=word("TILEWISE_READONLY", ("", "0", "1")) == "1",
        bundle=path("TILEWISE_BUNDLE"),
        device=current_device(),
        num_threads=integer("TILEWISE_NUM_THREADS", 0, 1),
    )


def current_device() -> str:
    """Read the setting `device` alone: a call that copies to a device asks for it."""
    return word("TILEWISE_DEVICE", ("", "auto", "none", "emulated")) or "auto"


def origin(name: str) -> str:
    """Return the variable that states a setting by its field's name, or "default"."""
    variable = f"TILEWISE_{name.upper()}"
    return variable if os.environ.get(variable) else "default"


def path(variable: str) -> Path | None:
    """Read a path; unset or empty is None."""
    value = os.environ.get(variable, "")
    if "\0" in value:
        raise SettingError(variable, value, "a path")
    try:
        return Path(value).expanduser() if value else None
    except RuntimeError:
        raise SettingError(variable, value, "a path without ~") from None


def word(variable: str, allowed: tuple[str, ...]) -> str:
    """Read one of some words; unset is the first."""
    value = os.environ.get(variable, allowed[0])
    if value not in allowed:
        raise SettingError(variable, value, ", ".join(filter(None, allowed)))
    return value


def integer(variable: str, default: int, least: int) -> int:
    """Read an integer of at least `least`; unset or empty is the default."""
    value = os.environ.get(variable, "")
    if not value:
        return default
    if not value.isdecimal() or int(value) < least:
        raise SettingError(variable, value, f"an integer of at least {least}")
    return int(value)
