"""The examples of the README and of the docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import linecache
import pkgutil
import re
from pathlib import Path
from typing import Any

import tilewise

README = Path(__file__).parents[1] / "README.md"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_block(block: str, line: int, names: dict[str, Any]) -> None:
    """Run one fenced block, with the README's own line numbers in its errors."""
    if ">>> " not in block:
        text = "\n" * line + block
        linecache.cache[str(README)] = (
            len(text), None, text.splitlines(keepends=True), str(README),
        )  # fmt: skip
        exec(compile(text, str(README), "exec"), names)
        return
    # A doctest's end is seen by its own machinery only before a blank line.
    test = doctest.DocTestParser().get_doctest(
        block, names, "README", str(README), line
    )
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert "" == "".join(report)


def test_readme_runs():
    """The README's blocks run in order, as one session."""
    text = README.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "readme"}
    blocks = list(FENCE.finditer(text))
    for block in blocks:
        run_block(block.group(1), text.count("\n", 0, block.start(1)), names)

    assert blocks


def test_readme_has_the_two_commands():
    """The README names the two commands that do everything."""
    text = README.read_text(encoding="utf-8")

    assert "python -m pip install . && tilewise demo" in text
    assert "python -m pip install nox && nox -s tests" in text


def test_docstrings_run():
    """The examples in the modules' docstrings give what they say."""
    found = pkgutil.walk_packages(tilewise.__path__, "tilewise.")
    names = [one.name for one in found if not one.name.endswith("__main__")]
    modules = [tilewise, *map(importlib.import_module, names)]
    failed = {one.__name__: doctest.testmod(one).failed for one in modules}

    assert {} == {name: count for name, count in failed.items() if count}
