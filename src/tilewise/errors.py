"""The errors and warnings that tilewise raises; their parts are attributes."""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "EngineError",
    "SettingError",
    "StoreWarning",
    "TilewiseError",
    "TraceError",
    "UnsupportedOp",
]


class TilewiseError(Exception):
    """Base of every error that tilewise raises by itself."""


class TraceError(TilewiseError):
    """
    A function's structure cannot become one product with an epilogue.

    `what` says what was met, `where` is the source line with its caret (or ""),
    `allowed` says what is allowed and `instead` what to do.
    """

    def __init__(
        self, what: str, where: str = "", allowed: str = "", instead: str = ""
    ) -> None:
        self.what, self.where = what, where
        self.allowed, self.instead = allowed, instead
        super().__init__(what, where, allowed, instead)

    def __str__(self) -> str:
        parts = (self.what, self.where, self.allowed, self.instead)
        return "\n".join(part for part in parts if part)


class UnsupportedOp(TraceError):
    """An operation that has no row in the table of ops."""


class ArgumentError(TilewiseError, TypeError, ValueError):
    """
    An argument that neither NumPy nor an engine can take.

    Both a TypeError and a ValueError, because NumPy users catch either.
    """


class EngineError(TilewiseError, RuntimeError):
    """A pinned or demanded variant that can't be built, loaded or run."""


class SettingError(TilewiseError, ValueError):
    """
    A setting with a value that is not allowed, or that `forbids` something.

    Names the variable, the value met and what is allowed, or what to do.
    """

    def __init__(
        self, variable: str, value: object, allowed: str, forbids: str = ""
    ) -> None:
        self.variable, self.value, self.allowed = variable, value, allowed
        self.forbids = forbids
        super().__init__(variable, value, allowed, forbids)

    def __str__(self) -> str:
        if self.forbids:
            return (
                f"{self.variable}={self.value} forbids {self.forbids}: {self.allowed}"
            )
        return f"{self.variable}={self.value!r} is not allowed: use {self.allowed}"


class StoreWarning(UserWarning):
    """The store could not serve or keep an entry; the call went on without it."""
