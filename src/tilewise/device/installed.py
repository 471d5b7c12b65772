"""
The versions of installed distributions, from the names of their metadata.

importlib.metadata brings 60 modules, e-mail's among them (40 ms), and reads a file a
name; a directory's listing says the same.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache

__all__ = ["installed_version"]

NAMED = re.compile(r"(.+?)-([^-]+)(?:-.*)?\.(?:dist-info|egg-info)")


def installed_version(name: str) -> str:
    """Return a distribution's version, or "" where it is not installed."""
    for place in sys.path:
        found = versions_in(place or ".").get(normal(name))
        if found:
            return found
    return ""


def normal(name: str) -> str:
    """Write a distribution's name as the packaging rules compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def versions_in(place: str) -> dict[str, str]:
    """Return the versions of a directory's distributions by normal name."""
    if os.path.isfile(place):  # noqa: PTH113 - a zipped directory
        from importlib import metadata

        zipped = metadata.distributions(path=[place])
        return {normal(one.name): one.version for one in zipped}
    try:
        names = os.listdir(place)  # noqa: PTH208 - pathlib costs more than the rest
    except OSError:
        return {}
    found: dict[str, str] = {}
    for matched in filter(None, map(NAMED.fullmatch, names)):
        found.setdefault(normal(matched[1]), matched[2])
    return found
