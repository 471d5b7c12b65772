"""Import the module that a user names on the command line, by name or by path."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from tilewise.errors import ArgumentError, TilewiseError

__all__ = ["imported"]


def imported(place: str) -> ModuleType:
    """
    Import a module by dotted name, or by a path that ends in .py.

    A file's directory, or else the current one, comes first on the module path, as
    for a script. Raises ArgumentError for what is not there or fails to import.
    """
    path = Path(place)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise ArgumentError(f"there is no file {place}")
    folder = str(path.resolve().parent) if is_file else ""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return loaded(path) if is_file else importlib.import_module(place)
    except TilewiseError:
        raise
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}"
        raise ArgumentError(f"{where}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        told = error if isinstance(error, ImportError) else repr(error)
        raise ArgumentError(f"can't import {place}: {told}") from error


def loaded(path: Path) -> ModuleType:
    """Return the module of a file under the file's name."""
    known = sys.modules.get(path.stem)
    file = getattr(known, "__file__", None) or ""
    own = known is None or Path(file).resolve() == path.resolve()
    if not own or path.stem in sys.stdlib_module_names:
        raise ArgumentError(
            f"{path} has the name of another module, {path.stem}: rename the file"
        )
    return known or importlib.import_module(path.stem)
