"""How far a tuning is: a live bar for a person, plain lines for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewise.model.resolution import Resolution

__all__ = ["Progress", "progress_of"]


class Progress:
    """Says nothing; the base of the two that do."""

    def __init__(self, kernel: str, count: int) -> None:
        self.kernel, self.count, self.done = kernel, count, 0
        self.begun = time.monotonic()

    def begin(self, what: str) -> None:
        """Note the problem that is measured now."""

    def end(self, resolution: Resolution) -> None:
        """Note what was decided for it."""
        self.done += 1

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show progress inside a `with` block."""
        yield self


class Lines(Progress):
    """One line a problem, on standard error."""

    def end(self, resolution: Resolution) -> None:
        """Print what was decided, with the time so far."""
        super().end(resolution)
        spent = time.monotonic() - self.begun
        print(
            f"{self.kernel}: problem {self.done} of {self.count}, {told(resolution)}, "
            f"{spent:.1f} s",
            file=sys.stderr,
        )


class Bar(Progress):
    """A live bar that names the problem and the best so far."""

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show the bar inside a `with` block."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns: tuple[Any, ...] = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[best]}"),
        )  # fmt: skip
        with RichProgress(*columns, console=Console(stderr=True)) as self.bar:
            self.task = self.bar.add_task(self.kernel, total=self.count, best="")
            yield self

    def begin(self, what: str) -> None:
        """Name the problem."""
        self.bar.update(self.task, description=f"{self.kernel} {what}")

    def end(self, resolution: Resolution) -> None:
        """Move on and show what won."""
        super().end(resolution)
        self.bar.update(self.task, advance=1, best=told(resolution))


def told(resolution: Resolution) -> str:
    """Write a resolution in a few words."""
    return f"{resolution.variant} ({resolution.reason})"


def progress_of(kernel: str, count: int, wanted: bool | None) -> Progress:
    """
    Return a progress: a bar on a terminal, lines elsewhere, nothing for False.

    None shows a bar on a terminal and nothing elsewhere.
    """
    watched = sys.stderr.isatty()
    if wanted is False or (wanted is None and not watched):
        return Progress(kernel, count)
    return Bar(kernel, count) if watched else Lines(kernel, count)
