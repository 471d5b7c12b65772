"""A code version changes with what code does, and with nothing else."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made import made
from tilewise import TraceError, code_version
from tilewise.errors import ArgumentError

HELPERS = """
SCALE = 2.0

def helper(x):
    return deeper(x) * SCALE

def deeper(x):
    return x + 1
"""
USER = """
import numpy as np
from helpers_under_test import helper
import helpers_under_test

def f(x):
    '''Say what it does.'''
    return np.maximum(helper(x), 0)  # a comment

def g(x):
    return helpers_under_test.helper(x)

def h(x):
    from helpers_under_test import deeper
    return deeper(x)
"""


def factory(captured: Any) -> Callable[[float], Any]:
    """Return a closure over a value."""

    def inner(x: float) -> Any:
        return x, captured

    return inner


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, helpers: str) -> Any:
    """Import the two modules above afresh from a folder."""
    (folder / "helpers_under_test.py").write_text(helpers)
    (folder / "user_under_test.py").write_text(USER)
    monkeypatch.syspath_prepend(str(folder))
    for name in ("helpers_under_test", "user_under_test"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import importlib

    return importlib.import_module("user_under_test")


def versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, edited: str
) -> tuple[str, str]:
    """Return a function's versions before and after its helpers were edited."""
    both = []
    for number, helpers in enumerate((HELPERS, edited)):
        folder = tmp_path / str(number)
        folder.mkdir()
        module = package(folder, monkeypatch, helpers)
        both.append(code_version(getattr(module, name)))
        monkeypatch.undo()
    return both[0], both[1]


BASE = "def f(x, s=2):\n    return np.maximum(x, 0) * s\n"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (float("nan"), float("inf")),
        ("__global__ void k() {}", "__global__ void k() { }"),
        (b"1", "1"),
        ((1, 2), (1, (2,))),
        (frozenset({1, 2}), frozenset({1, 3})),
        (np.float32(1), np.float64(1)),
        (np.dtype("f4"), np.dtype("f8")),
        (np.float32, np.float64),
        (np.maximum, np.minimum),
        (None, ()),
        (len, sum),
        (slice(1), slice(2)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
    ],
)
def test_closures_and_globals_count(one: Any, two: Any):
    """Another captured value is other code, in a closure and as a global."""
    source = "def f(x):\n    return x, captured\n"

    assert code_version(factory(one)) != code_version(factory(two))
    assert code_version(made(source, captured=one)) != code_version(
        made(source, captured=two)
    )


def test_equal_captures_are_equal():
    """Two closures over equal values are the same code."""
    assert code_version(factory((1, "a", 2.5))) == code_version(factory((1, "a", 2.5)))


def test_unused_globals_do_not_count():
    """A global that a function does not read is not its code."""
    assert code_version(made(BASE, unused=1)) == code_version(made(BASE, unused=2))


def test_generated_functions_are_told_apart():
    """Functions made by exec with one name and signature differ by their code."""
    tiles = {code_version(made(f"def f(x):\n    return x * {n}\n")) for n in (8, 16)}

    assert 2 == len(tiles)


def test_swapped_code_counts():
    """A function whose code object is replaced is other code."""
    function = made(BASE)
    before = code_version(function)
    function.__code__ = made("def f(x, s=2):\n    return x\n").__code__

    assert before != code_version(function)


@pytest.mark.parametrize("name", ["f", "g", "h"])
@pytest.mark.parametrize(
    "edited",
    [
        HELPERS.replace("x + 1", "x + 2"),
        HELPERS.replace("deeper(x) * SCALE", "deeper(x) / SCALE"),
        HELPERS.replace("SCALE = 2.0", "SCALE = 3.0"),
    ],
    ids=["deeper", "helper", "constant"],
)
def test_helpers_in_other_modules_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, edited: str
):
    """An edit of a helper counts for who uses it, however it was imported."""
    used = name != "h" or "x + 2" in edited
    before, after = versions(tmp_path, monkeypatch, name, edited)

    assert used == (before != after)


@pytest.mark.parametrize("name", ["f", "g"])
def test_comments_in_helpers_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    """An edit of a helper's comments and of what isn't used counts for nobody."""
    edited = "# new\nOTHER = 1\n" + HELPERS + "\ndef unused(x):\n    return x\n"
    before, after = versions(tmp_path, monkeypatch, name, edited)

    assert before == after


def test_decorated_function_is_seen_through_its_wrapper():
    """A wrapper of Python's library with the user's function inside is the latter."""
    one = functools.cache(made("def f(x):\n    return x\n"))
    two = functools.cache(made("def f(x):\n    return -x\n"))

    assert code_version(one) != code_version(two)


def test_wrapper_that_bears_a_library_name_is_read():
    """A function that calls itself np.maximum is not taken for NumPy's."""

    def named(constant: int) -> Callable[..., Any]:
        @functools.wraps(np.maximum)
        def maximum(x: Any, y: Any) -> Any:
            return x * constant

        maximum.__module__, maximum.__qualname__ = "numpy", "maximum"
        return maximum

    assert code_version(named(1)) != code_version(named(2))


def test_classes_count():
    """A class that a function uses counts with its methods and bases."""
    source = "class A:\n    def m(self):\n        return {}\nclass B(A):\n    t = 4\n"
    source += "def f(x):\n    return B().m()\n"

    assert code_version(made(source.format(1))) != code_version(made(source.format(2)))


@pytest.mark.parametrize("kind", ["staticmethod", "classmethod", "property"])
def test_methods_of_all_kinds_count(kind: str):
    """A static method, a class method and a property are read as methods are."""
    source = (
        f"class A:\n @{kind}\n def m(self=0):\n  return {{}}\ndef f(x):\n return A\n"
    )

    assert code_version(made(source.format(1))) != code_version(made(source.format(2)))


def test_recursion_ends():
    """Functions that call each other have a version."""
    source = "def f(n):\n    return g(n)\ndef g(n):\n    return f(n - {})\n"

    assert code_version(made(source.format(1))) != code_version(made(source.format(2)))


def test_order_of_functions_does_not_count():
    """Variants listed in another order are the same variants."""
    one, two = made(BASE), made("def f(x):\n    return x\n")

    assert code_version(one, two) == code_version(two, one)


def test_number_of_functions_counts():
    """One variant more is another version."""
    assert code_version(made(BASE)) != code_version(made(BASE), made(BASE))


def test_other_process_agrees():
    """Another process, with another hash seed, gives the same version."""
    code = (
        "from tilewise import code_version\n"
        "S = frozenset({'a', 'b', 'c', 'd'})\n"
        "def f(x): return x in {'p', 'q', 'r'}, S\n"
        "print(code_version(f))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert 1 == len(found)


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("captured", "reason"),
    [
        ([1], "a list can change"),
        ({"a": 1}, "a dict can change"),
        ({1}, "a set can change"),
        (np.ones(2), "a numpy.ndarray can change"),
        (LOCK, "nothing tells one _thread.lock from another"),
        (object(), "nothing tells one object from another"),
        (np.frompyfunc(len, 1, 1), "nothing tells one numpy.ufunc from another"),
        (np.random.default_rng(), "Generator from another"),
        ((1, [2]), "item 1 of it: a list can change"),
        (sys.modules[__name__], "a module is used whole"),
    ],
)
def test_what_cannot_be_identified_is_refused(captured: Any, reason: str):
    """A value that has no certain form is refused by name and reason."""
    function = made("def f(x):\n    return x, captured\n", captured=captured)

    with pytest.raises(TraceError, match=rf"cannot identify captured: .*{reason}"):
        code_version(function)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def f(x):\n    return eval('x')\n", "eval"),
        ("def f(x):\n    return globals()['y']\n", "globals"),
        ("def f(x):\n    exec('y = x')\n", "exec"),
        ("def f(x):\n    return __import__(x)\n", "__import__"),
        ("def f(x):\n    global n\n    del n\n", "n"),
        ("n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n", "n"),
        ("def f(x, seen=[]):\n    return seen\n", "the default number 0"),
        ("def f(x, *, seen={}):\n    return seen\n", "the default of seen"),
    ],
)
def test_what_this_cannot_see_is_refused(source: str, name: str):
    """Code that reads or writes unseen values is refused by name."""
    with pytest.raises(TraceError, match=f"cannot identify {name}:"):
        code_version(made(source))


def test_written_closure_is_refused():
    """A closure that counts its own calls would change with each of them."""
    source = (
        "def outer():\n    n = 0\n    def f(x):\n        nonlocal n\n        n += 1\n"
        "        return n\n    return f\nf = outer()\n"
    )

    with pytest.raises(TraceError, match="cannot identify n: it is written"):
        code_version(made(source))


def test_own_variable_of_an_inner_function_is_fine():
    """A counter inside the function is no value from outside."""
    source = (
        "def f(x):\n    n = 0\n    def step():\n        nonlocal n\n        n += x\n"
        "    step()\n    return n\n"
    )

    assert 64 == len(code_version(made(source)))


def test_refusal_says_who_uses_it():
    """The error leads from the function asked about to the one that reads."""
    source = "def inner():\n    return LOCK\ndef f(x):\n    return inner()\n"

    with pytest.raises(TraceError) as caught:
        code_version(made(source, file="mine.py", LOCK=LOCK))
    assert "  mine.py, line 3, in f\n  mine.py, line 1, in inner" == caught.value.where


def test_read_only_array_counts_by_content():
    """A table that nobody can write is identified by its bytes."""

    def table(value: float) -> Any:
        array = np.full(3, value)
        array.flags.writeable = False
        return made("def f(x):\n    return x, t\n", t=array)

    assert code_version(table(1)) == code_version(table(1))
    assert code_version(table(1)) != code_version(table(2))


def test_nothing_is_no_code():
    """A version of no function is a mistake."""
    with pytest.raises(ArgumentError, match="at least one"):
        code_version()


def test_closure_that_is_filled_later_counts():
    """A closure's variable without a value yet is not one that has a value."""
    source = "def outer(fill):\n def f(x):\n  return n\n if fill:\n  n = 1\n return f\n"
    outer = made(source, name="outer")

    assert code_version(outer(fill=False)) != code_version(outer(fill=True))


def test_method_is_seen_with_the_class_it_calls_up_to():
    """A method that calls super() depends on the base class."""
    source = (
        "class A:\n def m(self):\n  return {}\n"
        "class B(A):\n def m(self):\n  return super().m()\nf = B.m\n"
    )

    assert code_version(made(source.format(1))) != code_version(made(source.format(2)))
