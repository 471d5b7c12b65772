"""
A worker process for contestants that may crash, hang or exhaust memory.

The worker is a fork: it has the loaded code and the trials without importing or
pickling anything, so that scripts without a main guard work. It answers one line of
JSON to each line that it is sent. Code that uses CUDA cannot run in a fork.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import select
import signal
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

__all__ = [
    "LIMITS",
    "Answers",
    "Limits",
    "Lost",
    "Relay",
    "Worker",
    "bounded",
    "ending_of",
]

Answers = Mapping[str, Callable[..., Any]]
"""What a worker does, by the first word that it is sent; values must be JSON."""


GRACE_S = 5.0
"""A worker whose parent was killed ends itself so long after the limit."""


class Lost(Exception):
    """A worker that ended or was ended; the text says how."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What one answer may take: seconds, `why` so many, and bytes on top of those in use.

    `total_s` is what verifying all contestants may take: who is not reached by then is
    not tried, and one answer may take a quarter of it.
    """

    seconds: float = 60.0
    bytes: int = 4 << 30
    total_s: float = math.inf
    why: str = "the most that any gets"


LIMITS = Limits()

LEAST_S, BUDGETS, CALLS = 2.0, 20, 100
"""An answer may take 20 budgets or 100 of the reference's calls, and at least 2 s: the
first compiles (numba took 20 s for a parallel loop on a loaded host), the longest runs
all trials, and who takes more than that is no winner."""


def bounded(limits: Limits, budget_s: float, call_s: float) -> Limits:
    """Return limits for a race of a budget, where the reference takes `call_s`."""
    seconds, why = max(
        (LEAST_S, "the least that any gets"),
        (BUDGETS * budget_s, f"{BUDGETS} times the budget"),
        (CALLS * call_s, f"{CALLS} calls of the reference"),
    )
    most = min(limits.seconds, max(LEAST_S, limits.total_s / 4))
    if seconds > most:
        return replace(limits, seconds=most)
    return replace(limits, seconds=seconds, why=why)


class Worker:
    """One forked process; `ask` raises Lost once it has crashed or overrun."""

    def __init__(self, answers: Answers, limits: Limits = LIMITS) -> None:
        if not hasattr(os, "fork"):
            raise Lost("cannot be isolated: this system has no os.fork")
        self.limits, self.ended = limits, ""
        self.late = f"ran past {limits.seconds:.3g} s, {limits.why}"
        with ExitStack() as undoing:
            try:
                theirs, self.sending = opened(undoing)
                self.receiving, ours = opened(undoing)
                self.pid = forked()
            except OSError as error:  # Out of descriptors or processes.
                raise Lost(f"cannot be isolated: {error}") from error
            undoing.pop_all()
        if self.pid == 0:
            os.close(self.sending)
            os.close(self.receiving)
            serve(answers, theirs, ours, limits)
        os.close(theirs)
        os.close(ours)

    def ask(self, *words: object) -> Any:
        """Send a line and return the answer; raises Lost with the reason."""
        if self.ended:
            raise Lost(self.ended)
        try:
            os.write(self.sending, (" ".join(map(str, words)) + "\n").encode())
            line = self.line()
        except BrokenPipeError:
            line = b""
        except BaseException:
            self.close("was interrupted")
            raise
        if not line.endswith(b"\n"):
            raise Lost(self.close())
        try:
            kind, value = json.loads(line)
        except ValueError:  # A fork of the worker's answers too.
            raise Lost(self.close("answers in other words")) from None
        if kind == "raised":
            raise Lost(value)
        return value

    def line(self) -> bytes:
        """Read one line; what is there when time is up or the worker is gone."""
        text, end = b"", time.monotonic() + self.limits.seconds
        waiting = select.poll()  # select() takes no descriptor beyond 1023.
        waiting.register(self.receiving, select.POLLIN)
        while not text.endswith(b"\n"):
            left = max(0.0, end - time.monotonic())
            if not waiting.poll(left * 1000):
                self.close(self.late)
                return b""
            part = os.read(self.receiving, 1 << 16)
            if not part:
                return text
            text += part
        return text

    def close(self, reason: str = "") -> str:
        """End the worker, once, and return how it ended."""
        if not self.ended:
            if reason:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            os.close(self.sending)
            _, status = os.waitpid(self.pid, 0)
            os.close(self.receiving)
            alarmed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            self.ended = reason or (self.late if alarmed else ending(status))
        return self.ended


class Relay:
    """
    Workers one after the other: where one is lost, a new one serves the rest.

    Whose answer loses a worker that has served others may not be to blame: it has one
    more try, in the new one. One that ran past its time has none.
    """

    def __init__(self, answers: Answers, limits: Limits = LIMITS) -> None:
        self.answers, self.limits = answers, limits
        self.worker: Worker | None = None
        self.served: set[int] = set()
        self.spared: set[int] = set()

    def ask(self, word: str, who: int, *rest: object) -> Any:
        """Ask for one of those served; raises Lost with the reason."""
        worker = self.worker
        if worker is None or worker.ended:
            worker = self.worker = Worker(self.answers, self.limits)
        self.served.add(who)
        try:
            return worker.ask(word, who, *rest)
        except Lost:
            if not worker.ended:
                raise
            alone, self.served = self.served == {who}, set()
            if alone or worker.ended == worker.late or who in self.spared:
                raise
        self.spared.add(who)
        return self.ask(word, who, *rest)

    def close(self) -> None:
        """End the worker that is left."""
        if self.worker is not None:
            self.worker.close("was stopped")


def opened(undoing: ExitStack) -> tuple[int, int]:
    """Open a pipe that `undoing` closes."""
    ends = os.pipe()
    for end in ends:
        undoing.callback(os.close, end)
    return ends


def forked() -> int:
    """Fork; Python warns of threads, but the worker takes no lock that one may hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def ending(status: int) -> str:
    """Say in words how a process ended."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exits with code {code}"
    return f"is killed by {signal.Signals(-code).name}"


def serve(answers: Answers, incoming: int, outgoing: int, limits: Limits) -> None:
    """Answer until the parent is gone; never returns, and runs no exit handlers."""
    code = 1
    try:
        settle(limits)
        with os.fdopen(incoming, "rb") as lines:
            for line in lines:
                word, *rest = line.decode().split()
                signal.setitimer(signal.ITIMER_REAL, limits.seconds + GRACE_S)
                told = answer(answers[word], rest)
                signal.setitimer(signal.ITIMER_REAL, 0)
                os.write(outgoing, json.dumps(told).encode())
                os.write(outgoing, b"\n")
        code = 0
    finally:
        os._exit(code)


def answer(step: Callable[..., Any], words: list[str]) -> tuple[str, Any]:
    """Take one step; whatever it raises, sys.exit and Ctrl-C too, is the answer."""
    try:
        return "value", step(*words)
    except BaseException as error:
        return "raised", ending_of(error)


def ending_of(error: BaseException) -> str:
    """Say in words what a contestant raised."""
    if isinstance(error, SystemExit):
        return f"exits with code {error.code}"
    return f"raises {type(error).__name__}: {error}"[:500]


def settle(limits: Limits) -> None:
    """
    Make a fork a worker: the terminal's Ctrl-C is the parent's, memory is capped.

    Nothing is tuned in it: a kernel that a contestant calls runs what is decided for
    it, or its own function, and forks no workers of its own.
    """
    os.setpgid(0, 0)
    os.environ["TILEWISE_TUNE"] = "off"
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.disable()
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        cap = pages * resource.getpagesize() + limits.bytes
        resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
