"""How far a tuning is: live for a person who watches, plain lines for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tilewise.api.explain_text import microseconds
from tilewise.model.resolution import Resolution
from tilewise.tuner.watch import Step

__all__ = ["Progress", "progress_of"]


class Progress:
    """Says nothing; the base of the two that do."""

    def __init__(self, kernel: str, count: int | None) -> None:
        self.kernel, self.count, self.done = kernel, count, 0
        self.begun = time.monotonic()

    def place(self, number: int) -> str:
        """Say which problem it is, and of how many where that is known."""
        if self.count is None:
            return f"problem {number}"
        return f"problem {min(number, self.count)} of {self.count}"

    def begin(self, what: str) -> None:
        """Note the problem that is measured now."""

    def step(self, step: Step) -> None:
        """Note what is done for it now."""

    def end(self, resolution: Resolution) -> None:
        """Note what was decided for it."""
        self.done += 1

    @property
    def spent_s(self) -> float:
        """The time since the first problem began (s)."""
        return time.monotonic() - self.begun

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show progress inside a `with` block."""
        yield self


class Lines(Progress):
    """One line a problem, on standard error."""

    def end(self, resolution: Resolution) -> None:
        """Print what was decided, with the time so far."""
        super().end(resolution)
        print(
            f"{self.kernel}: {self.place(self.done)}, {told(resolution)}, "
            f"{self.spent_s:.1f} s",
            file=sys.stderr,
        )


class Live(Progress):
    """
    Two live lines for a person: how far it is, and what is being done.

    They are drawn when something is told, between samples: a thread that redraws would
    disturb what is measured.
    """

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show the lines inside a `with` block."""
        from rich.console import Console
        from rich.live import Live as RichLive

        console = Console(stderr=True)
        self.what, self.doing, self.last = "", "", ""
        with RichLive(console=console, auto_refresh=False) as self.live:
            yield self

    def begin(self, what: str) -> None:
        """Name the problem."""
        self.what, self.doing = what, ""
        self.draw()

    def step(self, step: Step) -> None:
        """Show what is done now."""
        self.doing = doing(step)
        self.draw()

    def end(self, resolution: Resolution) -> None:
        """Move on and show what won."""
        super().end(resolution)
        self.what, self.doing, self.last = "", "", f"last: {told(resolution)}"
        self.draw()

    def draw(self) -> None:
        """Draw both lines, each cut at the terminal's width."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(f"{self.kernel} {self.what}".rstrip()),
            ProgressBar(self.count, self.done, width=20) if self.count else "",
            Text(f"{self.place(self.done + 1)}, {self.spent_s:.0f} s"),
        )
        below = Text(f"  {self.doing or self.last}", no_wrap=True, overflow="ellipsis")
        self.live.update(Group(head, below), refresh=True)


def doing(step: Step) -> str:
    """Write a step in a few words."""
    if step.best is None:
        return f"{step.doing} {step.variant}"
    best = f"best so far {step.best} {microseconds(step.best_us)}"
    return f"{step.doing}: {best}, {step.left_s:.1f} s left"


def told(resolution: Resolution) -> str:
    """Write a resolution in a few words."""
    return f"{resolution.variant} ({resolution.reason})"


def progress_of(kernel: str, count: int | None, wanted: bool | None) -> Progress:
    """
    Return a progress: live on a terminal, lines elsewhere, nothing for False.

    None shows it on a terminal and nothing elsewhere. A `count` of None is not known.
    """
    watched = sys.stderr.isatty()
    if wanted is False or (wanted is None and not watched):
        return Progress(kernel, count)
    return Live(kernel, count) if watched else Lines(kernel, count)
