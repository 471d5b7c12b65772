"""Where the store is, and whether native code from there may be loaded."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tilewise.settings import Settings

__all__ = ["default_directory", "private", "untrusted"]


def default_directory(settings: Settings) -> Path | str:
    """Return the store's directory, or why there is none."""
    if settings.cache_dir is not None:
        return settings.cache_dir
    import platformdirs

    try:
        found = platformdirs.user_cache_path("tilewise", appauthor=False)
    except (RuntimeError, OSError, KeyError) as error:
        return f"the user has no cache directory: {error}"
    return found if found.is_absolute() else "the user has no home directory"


def private(directory: Path) -> str | None:
    """Make a directory that only its user reads; returns why that failed."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(directory, os.W_OK) and owned(directory):
            directory.chmod(0o700)
    except OSError as error:
        return f"the directory can't be made: {error.strerror or error}"
    return None


def owned(path: Path) -> bool:
    """Say whether a path belongs to this user (always where systems have no uid)."""
    getuid = getattr(os, "getuid", None)
    return getuid is None or path.stat().st_uid == getuid()


def untrusted(directory: Path) -> str | None:
    """
    Return why native code from a directory may not be loaded, or None.

    It must belong to this user, and no one else may write it.
    """
    try:
        if not owned(directory):
            return "it belongs to another user"
        mode = directory.stat().st_mode
    except OSError as error:
        return f"it can't be looked at: {error.strerror or error}"
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write it"
    return None
