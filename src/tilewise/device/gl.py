"""
One OpenGL context for the process, on a thread of its own.

A context is current in one thread at a time: a thread that keeps it serves every
caller, and no program's own context is touched. It is made when first asked for and
never on import; what stands against it is a reason, told again to whoever asks.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from tilewise.errors import EngineError
from tilewise.model.variant import Target

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Renderer", "gl_aside", "gl_target", "on_context"]

T = TypeVar("T")
Job = Callable[[Any], T]

VERSION = 430
"""OpenGL 4.3 is the first with compute shaders and storage buffers."""
PATIENCE_S = 20.0
"""How long a driver may take to make a context before it counts as hung."""
SOFTWARE = re.compile("(?i)llvmpipe|softpipe|swrast|software|swiftshader|gdi")
"""Renderers, by a part of their name, that compute on the CPU."""
GPU_FILES = ("dri/render*", "nvidia[0-9]*", "dxg", "mali*", "kgsl-3d0")
"""What Linux has in /dev for a GPU that OpenGL could use."""
NAMED = "it serves only where glsl is named: engines=, TILEWISE_ENGINES or pin"
FORKED = "OpenGL was used before this process was forked, and does not survive that"
ABSENT = "moderngl is not installed: it comes with tilewise[glsl]"


@dataclass(frozen=True, slots=True)
class Renderer:
    """What draws: its names, and the bytes of the largest buffer of a shader."""

    name: str
    version: str
    buffer_bytes: int

    @property
    def is_software(self) -> bool:
        """Whether the CPU does the work."""
        return SOFTWARE.search(self.name) is not None


class Studio(threading.Thread):
    """The thread that makes the context and does what is asked of it, in turn."""

    def __init__(self) -> None:
        from concurrent.futures import Future  # It brings logging (5 ms).

        super().__init__(name="tilewise-gl", daemon=True)
        self.jobs: SimpleQueue[tuple[Job[Any], Future[Any]]] = SimpleQueue()
        self.made: Future[Renderer] = Future()

    def run(self) -> None:
        """Make the context, then serve as long as the process lives."""
        try:
            context = made_context()
            self.made.set_result(renderer_of(context))
        except BaseException as error:
            self.made.set_exception(error)
            return
        while True:
            serve(context, *self.jobs.get())

    def ask(self, job: Job[T]) -> T:
        """Run a job with the context and return what it returns."""
        from concurrent.futures import Future

        future: Future[T] = Future()
        self.jobs.put((job, future))
        return future.result()


def serve(context: Any, job: Job[T], future: Future[T]) -> None:
    """Do a job, and release in the one right thread what nobody holds any more."""
    try:
        result = job(context)
        context.gc()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


LOCK = threading.Lock()
STATE: Studio | str | None = None
"""The thread that has the context, why there is none, or None: not asked yet."""


def studio() -> Studio | str:
    """Return the thread that has the context, made once, or why there is none."""
    global STATE  # noqa: PLW0603 - one context for the process
    with LOCK:
        if STATE is None:
            STATE = opened() if installed() else ABSENT
        return STATE


def opened() -> Studio | str:
    """Start the thread; returns the reason where it makes no context in time."""
    thread = Studio()
    thread.start()
    try:
        thread.made.result(PATIENCE_S)
    except TimeoutError:
        return f"no OpenGL context came within {PATIENCE_S:g} s"
    except Exception as error:
        return f"no OpenGL 4.3 context: {error}".strip()
    return thread


def made_context() -> Any:
    """Make a context without a window; on Linux through EGL, which needs no display."""
    import moderngl

    backend: dict[str, Any] = {"backend": "egl"} if sys.platform == "linux" else {}
    context = moderngl.create_context(standalone=True, require=VERSION, **backend)
    context.gc_mode = "context_gc"
    return context


def renderer_of(context: Any) -> Renderer:
    """Ask a context who draws."""
    told = context.info
    limit = int(told["GL_MAX_SHADER_STORAGE_BLOCK_SIZE"])
    return Renderer(told["GL_RENDERER"], told["GL_VERSION"], min(limit, 2**31 - 4))


def on_context(job: Job[T]) -> T:
    """
    Run a job with the process's context, after those asked for before it.

    Raises EngineError where there is no context, or with OpenGL's own words.
    """
    thread = studio()
    if isinstance(thread, str):
        raise EngineError(thread)

    def checked(context: Any) -> T:
        result = job(context)
        fault = context.error
        if fault != "GL_NO_ERROR":
            raise EngineError(f"OpenGL says {fault}")
        return result

    try:
        return thread.ask(checked)
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(f"OpenGL fails: {error}") from error


def gl_target() -> Target:
    """Return the target of the context; `arch` is empty where there is none."""
    thread = studio()
    if isinstance(thread, str):
        return Target("gl", "", reason=thread)
    found = thread.made.result()
    arch = f"{found.name}; {found.version}"
    return Target("gl", arch, buffer_bytes=found.buffer_bytes)


def gl_aside(residency: str) -> str:
    """
    Return why OpenGL stands aside where nobody names it, or "".

    A CPU that computes as a GPU has no chance against the CPU's own code, and would
    make every race longer. A context is made only where a GPU may be behind it.
    """
    if residency != "host":
        return "OpenGL takes arrays of the host"
    if not installed():
        return ABSENT
    if STATE is None and not has_gpu():
        return f"there is no GPU for OpenGL here: {NAMED}"
    thread = studio()
    if isinstance(thread, str):
        return thread
    found = thread.made.result()
    return f"{found.name} computes on the CPU: {NAMED}" if found.is_software else ""


@cache
def has_gpu() -> bool:
    """Say whether a GPU may be here: on Linux by its files, elsewhere it may."""
    if sys.platform != "linux":
        return True
    return any(next(Path("/dev").glob(name), None) for name in GPU_FILES)


@cache
def installed() -> bool:
    """Say whether moderngl is there, without importing it."""
    return find_spec("moderngl") is not None


def after_fork() -> None:
    """Let go of the parent's context: its threads are not in this process."""
    global LOCK, STATE  # noqa: PLW0603
    LOCK = threading.Lock()
    if isinstance(STATE, Studio):
        STATE = FORKED


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
