"""
Check how long files and functions are: `python .ci/sizes.py src tests`.

Ruff counts the positional parameters, but has no rule for these two.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 40


def main(names: list[str]) -> int:
    """Print what is too large in the named files and folders; 1 if anything is."""
    found = [text for path in sources(names) for text in too_large(path)]
    print("\n".join(found) or "every file and function is within its limits")
    return bool(found)


def sources(names: list[str]) -> Iterator[Path]:
    """Yield the Python files among paths and below folders."""
    for path in map(Path, names):
        below = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (file for file in below if "venv" not in file.parts)


def too_large(path: Path) -> Iterator[str]:
    """Yield a line for the file and for each function over a limit."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines, at most {FILE_LINES}"
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                where = f"{path}:{node.lineno}: {node.name}"
                yield f"{where} has {lines} lines, at most {FUNCTION_LINES}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
