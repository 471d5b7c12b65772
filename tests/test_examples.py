"""The examples of the README and of the docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import linecache
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import tilewise
from tilewise.cli.app import app

README = Path(__file__).parents[1] / "README.md"
FILE = re.compile(r"^```\w+\n(?:#|//) (\S+\.\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    (tilewise .*)$", re.MULTILINE)
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


def console(text: str) -> list[tuple[str, str]]:
    """Return the commands of the README's console blocks, each with its output."""
    found = []
    for block in CONSOLE.finditer(text):
        for part in block.group(1).removeprefix("$ ").split("\n$ "):
            command, _, output = part.replace("\\\n", "").partition("\n")
            found.append((command, output.rstrip("\n")))
    return found


def first_word(text: str) -> str:
    """Return what an output begins with, which does not depend on the machine."""
    return text.split(maxsplit=1)[0]


@pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's")
def test_readme_commands_run(tmp_path: Path):
    """Its files and its commands, one after another in one store, do what is shown."""
    text = README.read_text(encoding="utf-8")
    for name, body in FILE.findall(text):
        (tmp_path / name).write_text(body)
    for name, words in (("python", ""), ("tilewise", "-m tilewise")):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    for command, output in console(text):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True,
            text=True, timeout=200, check=False,
        )  # fmt: skip
        assert (0, first_word(output)) == (done.returncode, first_word(done.stdout))
        assert ("exit code 1" in output) == ("exit code 1" in done.stdout)


def test_readme_has_no_command_that_there_is_none_of():
    """Every other command of its text is one with such options."""
    text = README.read_text(encoding="utf-8")
    words = [line.replace("\\", "").split()[1:] for line in INDENTED.findall(text)]
    command = typer.main.get_command(app)

    for name, *rest in words:
        command.commands[name].make_context(name, rest)
    assert words


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
