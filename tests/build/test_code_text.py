"""A code object's text says what it does, not where it stands or how it looks."""

from __future__ import annotations

import sys

import pytest

from tests.made import made
from tilewise import code_version

BASE = "def f(x, s=2):\n    return np.maximum(x, 0) * s\n"


@pytest.mark.parametrize(
    "other",
    [
        "def f(x, s=2):\n    # why\n    return np.maximum(x, 0) * s  # how\n",
        "def f(x, s=2):\n    '''Say it.'''\n    return np.maximum(x, 0) * s\n",
        "\n\n\ndef f(x, s=2):\n\n    return (np.maximum(x,\n      0)\n      * s)\n",
        "def f(x: int, s: float = 2) -> int:\n    return np.maximum(x, 0) * s\n",
        "def g(x, s=2):\n    return np.maximum(x, 0) * s\nf = g\n",
    ],
    ids=["comment", "docstring", "lines", "annotations", "name"],
)
def test_what_code_looks_like_does_not_count(other: str):
    """Comments, docstrings, lines, annotations and the name leave it as it is."""
    assert code_version(made(BASE)) == code_version(made(other))


def test_file_does_not_count():
    """The same text from two files is the same code."""
    here, there = made(BASE, file="/a/x.py"), made(BASE, file="/b/y.py")

    assert code_version(here) == code_version(there)


@pytest.mark.parametrize(
    "other",
    [
        "def f(x, s=2):\n    return np.minimum(x, 0) * s\n",
        "def f(x, s=2):\n    return np.maximum(x, 1) * s\n",
        "def f(x, s=2):\n    return np.maximum(x, 0.0) * s\n",
        "def f(x, s=2):\n    return np.maximum(x, False) * s\n",
        "def f(x, s=2):\n    return np.maximum(x, 0) + s\n",
        "def f(x, s=3):\n    return np.maximum(x, 0) * s\n",
        "def f(x, *, s=2):\n    return np.maximum(x, 0) * s\n",
        "def f(x, t=2):\n    return np.maximum(x, 0) * t\n",
        "def f(x, s=2):\n    return np.maximum(0, x) * s\n",
    ],
    ids=[
        "call",
        "number",
        "float",
        "bool",
        "operator",
        "default",
        "keyword",
        "parameter",
        "order",
    ],
)
def test_what_code_does_counts(other: str):
    """Another operation, constant, type, default or parameter is other code."""
    assert code_version(made(BASE)) != code_version(made(other))


def test_what_a_handler_guards_counts():
    """A call inside or behind a `try` is the same text but for the guarded range."""
    one = made("def f(x):\n try:\n  a()\n  b()\n except E:\n  raise\n")
    two = made("def f(x):\n try:\n  a()\n except E:\n  raise\n b()\n")

    assert code_version(one) != code_version(two)


def test_where_a_jump_leads_counts():
    """A statement inside or behind an `if` is the same text but for the jump."""
    one = made("def f(x):\n if x:\n  a()\n  b()\n c()\n")
    two = made("def f(x):\n if x:\n  a()\n b()\n c()\n")

    assert code_version(one) != code_version(two)


def test_wide_instructions_leave_no_trace():
    """A docstring that moves constants past the 256th changes no jump."""
    body = "".join(f"  y = 'constant {n}'\n" for n in range(255))
    one = made(f"def f(x):\n for i in x:\n{body} return y\n")
    two = made(f"def f(x):\n '''Say it.'''\n for i in x:\n{body} return y\n")

    assert code_version(one) == code_version(two)


def test_inner_functions_count():
    """A lambda inside a function is part of it."""
    one = made("def f(x):\n    return sorted(x, key=lambda v: v)\n")
    two = made("def f(x):\n    return sorted(x, key=lambda v: -v)\n")

    assert code_version(one) != code_version(two)


def test_tracing_and_use_do_not_count():
    """A debugger's trace and Python's own specialising leave the version alone."""
    function = made(
        "def f(x):\n    t = 0\n    for i in range(x):\n        t += i\n    return t\n"
    )
    before = code_version(function)
    previous = sys.gettrace()
    sys.settrace(lambda *_: None)
    for _ in range(50):
        function(50)
    sys.settrace(previous)

    assert before == code_version(function)
