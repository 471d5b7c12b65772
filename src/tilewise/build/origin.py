"""
Say where code comes from: from a package that is known by name, or from the user.

Code of Python's library and of the libraries that provenance records is known by its
name, code of other installed packages by name and version, and all else is the user's
and is read.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

__all__ = ["foreign", "home"]

RECORDED = frozenset(
    {"builtins", "cuda", "cupy", "cupyx", "llvmlite", "numba", "numpy", "tilewise"}
)
INSTALLED = ("site-packages", "dist-packages")


def foreign(module: str, package: str) -> str | None:
    """
    Return what identifies a module that is not read, or None for the user's.

    `package` is the user's own package, read also where it is installed.
    tilewise's examples are read as any user's code.
    """
    top = module.partition(".")[0]
    if module.startswith("tilewise.examples") or top in ("", "__main__"):
        return None
    if top in RECORDED or top in sys.stdlib_module_names:
        return module
    version = "" if top == package else version_of(top)
    return f"{module} {version}" if version else None


@cache
def version_of(top: str) -> str:
    """Return the version of the installed distribution that has a package, or ""."""
    if not is_installed(top):
        return ""
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        names = metadata.packages_distributions().get(top, [])
    return " ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names)))


def is_installed(top: str) -> bool:
    """Say whether a package lies where pip installs, not in a source tree."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    parts = {part for place in places if place for part in Path(place).parts}
    return not parts.isdisjoint(INSTALLED)


def home(value: object, hint: str, package: str) -> str | None:
    """
    Return the full name of a value that a foreign module has under that name.

    The name is looked up again, since a decorated function may bear another's name.
    `hint` is the name under which the user has it, for values that know none.
    """
    for module, name in claims(value, hint):
        known = foreign(module, package) if module else None
        if known is not None and value_at(module, name) is value:
            return f"{known} {name}"
    return None


def claims(value: object, hint: str) -> list[tuple[str, str]]:
    """Return the (module, name) pairs under which a value may be found."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    found = [(str(module or ""), str(name or hint))]
    top = type(value).__module__.partition(".")[0]
    found += [(place, str(name or hint)) for place in (top, "scipy.special")]
    return [*found, (top, hint)]


def value_at(module: str, name: str) -> object:
    """Return what a loaded module has under a dotted name, or None."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
