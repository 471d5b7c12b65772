"""The guard lets through what it was armed for, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewise.device.guard import Guard, native_guard
from tilewise.errors import EngineError

pytestmark = pytest.mark.skipif(
    not native_guard(), reason="this Python's objects are laid out in another way"
)

Made = tuple[Callable[..., Any], dict[str, Any], Guard]


def run(*args: Any) -> Any:
    """Fill and return the last argument."""
    args[-1][...] = 7
    return args[-1]


def slow(*args: Any, **kwargs: Any) -> Any:
    """Return what came."""
    return ("slow", args, kwargs)


def made(run: Callable[..., Any] = run, number: Any = 2.0) -> Made:
    """Arm a guard for (x, _, number), where the middle argument is kept."""
    x, w = np.arange(6, dtype="f4").reshape(2, 3), np.ones((3, 4), "f4")
    guard = Guard(slow)
    guard.arm(run, (x, w, number), (0, 2), (2, 4), np.dtype("f4"))
    out = np.zeros((2, 4), "f4")
    return guard.call, {"x": x, "w": w, "number": number, "out": out}, guard


def test_a_known_call_runs() -> None:
    """The run gets what was given and kept, and `out` comes back."""
    seen: list[Any] = []

    def noting(*args: Any) -> Any:
        seen.extend(args)
        return args[-1]

    call, a, guard = made(noting)
    assert call(a["x"], 3.5, out=a["out"]) is a["out"]
    assert [id(a["x"]), id(a["w"]), id(a["out"])] == [id(seen[i]) for i in (0, 1, 3)]
    assert (3.5, 1) == (seen[2], guard.calls)


def test_without_out_one_is_allocated() -> None:
    """Each call fills an array of its own."""
    call, a, _ = made()
    first, second = call(a["x"], 2.0), call(a["x"], 2.0)
    assert ((2, 4), np.float32, True) == (first.shape, first.dtype, (first == 7).all())
    assert not np.shares_memory(first, second)


def backwards(array: Any) -> Any:
    """Return an equal array of negative strides."""
    return array[::-1, ::-1].copy()[::-1, ::-1]


def unaligned(array: Any) -> Any:
    """Return an equal array at an odd address."""
    raw = np.zeros(array.nbytes + 1, "u1")[1:]
    made = raw.view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def read_only(array: Any) -> Any:
    """Return a copy that is not written."""
    made = array.copy()
    made.flags.writeable = False
    return made


class Sub(np.ndarray[Any, Any]):
    """A subclass, whose operators may be other ones."""


OTHER_X: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[:1],
    "columns": lambda x: x[:, :2].copy(),
    "axes": lambda x: x.ravel(),
    "dtype": lambda x: x.astype("f8"),
    "integers of the same size": lambda x: x.astype("i4"),
    "byte order": lambda x: x.astype(">f4"),
    "strides": backwards,
    "order": np.asfortranarray,
    "alignment": unaligned,
    "subclass": lambda x: x.view(Sub),
    "masked": np.ma.masked_array,
    "list": lambda x: x.tolist(),
    "None": lambda x: None,
}


@pytest.mark.parametrize("change", OTHER_X.values(), ids=OTHER_X)
@pytest.mark.parametrize("with_out", [True, False])
def test_an_argument_of_another_form_goes_the_slow_way(
    change: Callable[[Any], Any], with_out: bool
) -> None:
    """It arrives there as it was given, and nothing ran."""
    call, a, guard = made()
    x, named = change(a["x"]), {"out": a["out"]} if with_out else {}
    assert ("slow", (x, 2.0), named) == tuple(
        call(x, 2.0, **named) if isinstance(x, list) else idle(call(x, 2.0, **named), x)
    )
    assert (0, 0) == (guard.calls, a["out"].sum())


def idle(result: Any, x: Any) -> Any:
    """Put back an array that came through unchanged, which == would compare."""
    word, (first, second), named = result
    assert first is x
    return word, (x, second), named


OTHER_OUT: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: np.zeros((3, 4), "f4"),
    "dtype": lambda a: np.zeros((2, 4), "f8"),
    "order": lambda a: np.zeros((4, 2), "f4").T,
    "read-only": lambda a: read_only(a["out"]),
    "alignment": lambda a: unaligned(a["out"]),
    "subclass": lambda a: a["out"].view(Sub),
    "None": lambda a: None,
    "text": lambda a: "out",
}


@pytest.mark.parametrize("change", OTHER_OUT.values(), ids=OTHER_OUT)
def test_an_out_of_another_form_goes_the_slow_way(
    change: Callable[[Any], Any],
) -> None:
    """Wrong shape, dtype, order, flags or type."""
    call, a, guard = made()
    out = change(a)
    word, _, named = call(a["x"], 2.0, out=out)
    assert ("slow", True, 0) == (word, named["out"] is out, guard.calls)


@pytest.mark.parametrize("shift", [-7, -1, 0, 1, 5])
def test_an_out_that_overlaps_goes_the_slow_way(shift: int) -> None:
    """Whichever end of `out` reaches into x."""
    pool = np.zeros(40, "f4")
    call, _, guard = made()
    x, out = (
        pool[16:22].reshape(2, 3),
        pool[16 + shift : 24 + shift].reshape(2, 4),
    )
    assert "slow" == call(x, 2.0, out=out)[0]
    assert 0 == guard.calls


@pytest.mark.parametrize("shift", [-8, 6])
def test_an_out_beside_an_argument_runs(shift: int) -> None:
    """Neighbours that share no byte are no overlap."""
    pool = np.zeros(40, "f4")
    call, _, guard = made()
    out = pool[16 + shift : 24 + shift].reshape(2, 4)
    assert call(pool[16:22].reshape(2, 3), 2.0, out=out) is out
    assert 1 == guard.calls


def test_other_calls_go_the_slow_way() -> None:
    """Too few, too many, a number of another type, another keyword."""
    call, a, guard = made()
    x, out = a["x"], a["out"]
    odd = [
        call(x), call(x, 2.0, out), call(x, 2, out=out), call(x, np.float32(2)),
        call(x, True), call(x, 2.0, ous=out), call(x, 2.0, out=out, more=1), call(),
    ]  # fmt: skip
    assert (["slow"] * len(odd), 0) == ([answer[0] for answer in odd], guard.calls)


def test_a_singleton_is_that_object() -> None:
    """A guard armed with True lets neither False nor 1 through."""
    call, a, guard = made(number=True)
    assert "slow" == call(a["x"], False)[0] == call(a["x"], 1)[0]
    assert (2, 4) == call(a["x"], True).shape
    assert 1 == guard.calls


def test_what_no_guard_can_tell_goes_the_slow_way() -> None:
    """A text among the open arguments disarms it."""
    call, a, _ = made(number="text")
    assert "slow" == call(a["x"], "text")[0]


@pytest.mark.parametrize("error", [OverflowError("large"), EngineError("lost")])
def test_an_error_that_python_mends_goes_the_slow_way(error: Exception) -> None:
    """The call arrives there as it came."""

    def failing(*args: Any) -> Any:
        raise error

    call, a, guard = made(failing)
    assert "slow" == call(a["x"], 2.0, out=a["out"])[0] == call(a["x"], 2.0)[0]
    assert 0 == guard.calls


def test_any_other_error_is_the_callers() -> None:
    """Ctrl-C in a run reaches the caller."""

    def failing(*args: Any) -> Any:
        raise KeyboardInterrupt

    call, a, _ = made(failing)
    with pytest.raises(KeyboardInterrupt):
        call(a["x"], 2.0, out=a["out"])


def test_a_disarmed_guard_lets_nothing_through() -> None:
    """Not even a call without arguments."""
    call, a, guard = made()
    guard.disarm()
    assert "slow" == call(a["x"], 2.0)[0] == call()[0]


def test_no_reference_leaks() -> None:
    """Whatever way calls go, the arguments' counts are what they were."""
    call, a, guard = made()
    things = (a["x"], a["w"], a["out"], call, guard._state, guard._state[0])
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(1000):
        call(a["x"], 2.0, out=a["out"])
        call(a["x"], 2.0)
        call(a["x"], 2, out=a["out"])
        call(a["x"], 2.0, out=a["x"])
        call(a["x"])
    assert before == [sys.getrefcount(thing) for thing in things]
    assert sys.getrefcount(np.zeros(2)) == sys.getrefcount(call(a["x"], 2.0))
