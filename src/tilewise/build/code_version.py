"""
Tell whether code is the same code: a digest of functions and all that they use.

Seen are a function's instructions, defaults, closure values, the globals that it
reads and the helpers that it calls, also in other modules and on through theirs.
Code of installed packages counts by name and version, that of Python's library and of
the libraries that provenance records by name. What cannot be identified is refused by
name, since a digest that misses something would serve old results for new code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any

from tilewise.build.code_text import Reference, references, text
from tilewise.build.code_values import Unidentified, encode
from tilewise.build.keys import digest
from tilewise.build.origin import foreign
from tilewise.errors import ArgumentError, TraceError

__all__ = ["code_version"]

SCHEMA = 1
PLACES = ("__file__", "__name__", "__doc__", "__package__", "__spec__", "__loader__")
UNREADABLE = ("eval", "exec", "globals", "locals", "vars", "__import__")
ALLOWED = (
    "Code may use numbers, texts, tuples, frozen dataclasses, enums, read-only arrays, "
    "functions, classes and kernels of numba, CuPy and tilewise."
)


def code_version(*functions: object) -> str:
    """
    Return 64 hexadecimal digits that change when the code of functions does.

    `functions` are Python functions, numba or CuPy kernels, source texts, or anything
    else that a function may use; their order does not count. Comments, docstrings,
    line numbers, names of files and of the functions themselves do not either.

    Raises TraceError naming what cannot be identified and who uses it.
    """
    if not functions:
        raise ArgumentError("code_version needs at least one function")
    versions = sorted(Reader().start(function) for function in functions)
    return digest((("function", version) for version in versions), SCHEMA)


@dataclass(slots=True)
class Reader:
    """
    Reads one function with what it uses.

    `seen` numbers the functions and classes in the order in which they were met, so
    that those that call each other come to an end; `package` is the one whose code is
    always read, also where it is installed; `users` are the functions being read.
    """

    seen: dict[int, int] = field(default_factory=dict)
    alive: list[object] = field(default_factory=list)
    package: str = ""
    users: list[FunctionType] = field(default_factory=list)

    def start(self, value: object) -> str:
        """Return the encoding of the value that was asked about."""
        name = str(getattr(value, "__module__", None) or "")
        self.package = name.partition(".")[0]
        return self.named("the argument", value)

    def named(self, name: str, value: object) -> str:
        """Return a value's encoding; TraceError with its name when there is none."""
        try:
            return encode(value, self, name)
        except Unidentified as error:
            raise self.refusal(name, str(error)) from None

    def once(self, value: object, encoding: Callable[[], str]) -> str:
        """Return the encoding at the first meeting, the meeting's number later."""
        known = self.seen.get(id(value))
        if known is not None:
            return f"met {known}"
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)  # An id may be used again once its object is gone.
        return encoding()

    def function(self, function: FunctionType) -> str:
        """Return the encoding of a Python function with all that it uses."""
        if not self.package:
            name = str(function.__globals__.get("__name__", ""))
            self.package = name.partition(".")[0]
        self.users.append(function)
        parts = [("code", text(function.__code__)), *self.used(function)]
        self.users.pop()
        return "function " + digest(parts, SCHEMA)

    def used(self, function: FunctionType) -> Iterator[tuple[str, str]]:
        """Yield the labelled encodings of what a function uses."""
        for at, value in enumerate(function.__defaults__ or ()):
            yield f"default {at}", self.named(f"the default number {at}", value)
        for name, value in sorted((function.__kwdefaults__ or {}).items()):
            yield f"default {name}", self.named(f"the default of {name}", value)
        cells = closure(function)
        found = references(function.__code__)
        heads = {one.path[0] for one in found if "cell" in one.kind}
        found += [Reference("cell", (name,)) for name in cells if name not in heads]
        for reference in found:
            if "cell" in reference.kind and reference.path[0] not in cells:
                continue  # A variable of the function itself, used by an inner one.
            encoding = self.referred(reference, function, cells)
            yield f"{reference.kind} {reference}", encoding

    def referred(
        self, reference: Reference, function: FunctionType, cells: dict[str, CellType]
    ) -> str:
        """Return the encoding of what a reference stands for."""
        name, *attributes = reference.path
        if reference.kind.endswith("write"):
            raise self.refusal(name, "it is written here, so it changes with each call")
        if reference.kind == "import":
            return self.imported(reference, function)
        if reference.kind == "cell":
            found = contents(cells[name])
            return self.followed(found[0], reference.path) if found else "unbound"
        if name in PLACES:
            return "place"
        for scope in (function.__globals__, builtins_of(function)):
            if name in scope:
                if name in UNREADABLE and scope is not function.__globals__:
                    raise self.refusal(name, "it reads what this can't see")
                return self.followed(scope[name], (name, *attributes))
        return "unbound"

    def followed(self, value: object, path: tuple[str, ...]) -> str:
        """Follow attributes through modules, then return the value's encoding."""
        name, *attributes = path
        while isinstance(value, ModuleType) and attributes:
            if foreign(value.__name__, self.package) is not None:
                break
            name = attributes.pop(0)
            if not hasattr(value, name):
                return "unbound"
            value = getattr(value, name)
        return self.named(name, value)

    def imported(self, reference: Reference, function: FunctionType) -> str:
        """Return the encoding of what a function imports inside itself."""
        module, *names = reference.path
        if not reference.level:
            known = foreign(module, self.package)
            if known is not None:
                return f"module {known}"
        if not names:
            raise self.refusal(module, "a module imported whole inside a function")
        package = str(function.__globals__.get("__package__", ""))
        loaded = importlib.import_module("." * reference.level + module, package)
        values = (self.followed(loaded, (module, name)) for name in names)
        return digest((("name", value) for value in values), SCHEMA)

    def refusal(self, name: str, reason: str) -> TraceError:
        """Make the error that names what cannot be identified and who uses it."""
        what = f"code_version cannot identify {name}: {reason}"
        where = [
            f"  {user.__code__.co_filename}, line {user.__code__.co_firstlineno}, "
            f"in {user.__qualname__}"
            for user in self.users
        ]
        instead = "Use a value that can't change instead, or pass it as an argument."
        return TraceError(what, "\n".join(where), ALLOWED, instead)


def closure(function: FunctionType) -> dict[str, CellType]:
    """Return a function's cells by the names of their variables."""
    names = function.__code__.co_freevars
    return dict(zip(names, function.__closure__ or (), strict=True))


def contents(cell: CellType) -> tuple[Any, ...]:
    """Return a cell's value in a tuple, or an empty one where it has none yet."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def builtins_of(function: FunctionType) -> dict[str, Any]:
    """Return the names that a function finds behind its globals."""
    found = function.__globals__.get("__builtins__", sys.modules["builtins"])
    return vars(found) if isinstance(found, ModuleType) else dict(found)
