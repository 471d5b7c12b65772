"""Where in the user's source something happened, with its caret."""

from __future__ import annotations

import linecache
import sys
from types import FrameType
from typing import Any

__all__ = ["caret", "user_frame"]

OWN = ("tilewise.model", "numpy", "scipy")


def user_frame() -> FrameType | None:
    """Return the innermost frame that runs neither our code nor NumPy's."""
    frame: FrameType | None = sys._getframe(1)
    while frame and str(frame.f_globals.get("__name__", "")).startswith(OWN):
        frame = frame.f_back
    return frame


def caret() -> str:
    """
    Describe the user's current line: file, line, function and a caret line.

    Returns "" when no source is at hand (a function made by exec).
    """
    frame = user_frame()
    if frame is None:
        return ""
    code = frame.f_code
    first, last, start, end = positions(frame)
    head = f"  {code.co_filename}, line {first}, in {code.co_name}"
    text = linecache.getline(code.co_filename, first, frame.f_globals).rstrip("\n")
    if not text:
        return head
    if last != first or end is None:
        end = len(text)
    body = text.lstrip()
    indent = len(text) - len(body)
    begin = max((start or 0) - indent, 0)
    width = max(end - (start or 0), 1)
    return f"{head}\n    {body}\n    {' ' * begin}{'^' * width}"


def positions(frame: FrameType) -> tuple[int, int, int | None, int | None]:
    """Return the first and last line, first and last column of what a frame runs."""
    places: list[Any] = list(frame.f_code.co_positions())
    first, last, start, end = places[frame.f_lasti // 2]
    line = frame.f_lineno
    return first or line, last or line, start, end
