"""Where the store is, and whether native code from there may be loaded."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tilewise.settings import Settings

__all__ = ["default_directory", "private", "untrusted"]


def default_directory(settings: Settings) -> Path | str:
    """Return the store's directory, absolute, or why there is none."""
    if settings.cache_dir is not None:
        return settings.cache_dir.absolute()
    import platformdirs

    try:
        found = platformdirs.user_cache_path("tilewise", appauthor=False)
    except (RuntimeError, OSError, KeyError) as error:
        return f"the user has no cache directory ({error}); set TILEWISE_CACHE_DIR"
    if not found.is_absolute():
        return "the user has no home directory; set TILEWISE_CACHE_DIR"
    return found


def private(directory: Path) -> str | None:
    """
    Make a directory, and those above it, for this user alone.

    Returns why that failed, or None. What is there already keeps its mode: a
    directory that others could write may hold what they put there.
    """
    missing = [directory, *directory.parents]
    try:
        while missing and missing[-1].exists():
            missing.pop()
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
        if not directory.is_dir():
            return "it is no directory"
    except OSError as error:
        return f"it can't be made: {error.strerror or error}"
    return None


def untrusted(directory: Path) -> str | None:
    """
    Return why native code from a directory may not be loaded, or None.

    It must belong to this user, no one else may write it, and no directory above it
    may be one where anyone can exchange another's entries.
    """
    if os.name != "posix":
        return None
    try:
        found = directory.stat()
        above = [(path, path.stat().st_mode) for path in directory.absolute().parents]
    except OSError as error:
        return f"it can't be looked at: {error.strerror or error}"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write it"
    for path, mode in above:
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"other users can write {path}"
    return None
