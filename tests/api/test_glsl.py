"""The glsl engine behind the decorator: who may race, pins, and what there isn't."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from tests.opengl import needs_opengl, quarters
from tilewise import tuned_kernel
from tilewise.device import gl
from tilewise.errors import EngineError

X, W, B = quarters((20, 30)), quarters((30, 10), 2), quarters((10,), 3)


@pytest.fixture
def opengl() -> None:
    """Skip by name where there is no context."""
    needs_opengl()


def layer(number: int) -> Any:
    """Return a layer that no other test has: decisions stay in memory."""

    def dense(x, w, b):
        return np.maximum(x @ w + b, number)

    return dense


def rejected(kernel: Any) -> dict[str, str]:
    """Return why engines were not asked, by the names that explain shows."""
    found = kernel.explain(X, W, B).candidates
    return {str(c.variant): c.reason for c in found if c.status == "rejected"}


def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let OpenGL be what it is on a machine without a driver."""
    monkeypatch.setattr(gl, "STATE", "no OpenGL 4.3 context: no driver")
    monkeypatch.setattr(gl, "installed", lambda: True)


def test_without_a_driver_the_kernel_works_and_explain_says_why(monkeypatch):
    """It is never an exception."""
    no_driver(monkeypatch)
    dense = layer(-1)
    kernel = tuned_kernel(dense)

    assert np.array_equal(dense(X, W, B), kernel(X, W, B))
    assert "no OpenGL 4.3 context: no driver" == rejected(kernel)["glsl"]


def test_without_a_driver_a_pin_raises_the_reason(monkeypatch):
    """A pin is a demand."""
    no_driver(monkeypatch)
    dense = layer(-2)
    kernel = tuned_kernel(dense)
    kernel.pin("glsl/plain")

    with pytest.raises(EngineError, match=r"no OpenGL 4\.3 context: no driver"):
        kernel(X, W, B)


@pytest.mark.usefixtures("opengl")
def test_a_renderer_on_the_cpu_does_not_race_by_itself():
    """Every tuning would be longer for nothing; explain says how to have it."""
    dense = layer(-3)
    kernel = tuned_kernel(dense)
    kernel(X, W, B)
    reason = rejected(kernel).get("glsl", "")
    if not gl.Renderer(gl.gl_target().arch, "", 0).is_software:
        pytest.skip("OpenGL has a GPU here")

    assert "it serves only where glsl is named" in reason


@pytest.mark.usefixtures("opengl")
@pytest.mark.parametrize("by", ["environment", "decorator"])
def test_where_it_is_named_it_races(by: str, monkeypatch: pytest.MonkeyPatch):
    """Its variants are verified and measured as those of any engine."""
    if by == "environment":
        monkeypatch.setenv("TILEWISE_ENGINES", "glsl")
    dense = layer(3 + (by == "decorator"))
    kernel = tuned_kernel(dense, engines=["glsl"] if by == "decorator" else [])
    kernel.tune(X, W, B, budget_s=20)
    found = {str(c.variant): c.status for c in kernel.explain(X, W, B).candidates}

    assert {"glsl/plain", "glsl/shared tile=32x32", "reference"} <= set(found)
    assert {"measured", "chosen"} >= {s for n, s in found.items() if "glsl" in n}


@pytest.mark.usefixtures("opengl")
def test_a_pin_runs_without_being_named():
    """Pinned, it serves and is counted."""
    dense = layer(-5)
    kernel = tuned_kernel(dense)
    kernel.pin("glsl/plain")

    assert np.array_equal(dense(X, W, B), kernel(X, W, B))
    assert {"glsl/plain": 1} == kernel.stats.dispatches


@pytest.mark.usefixtures("opengl")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_in_a_forked_process_the_next_candidate_serves():
    """What was loaded in the parent gives way in the child, loudly, and is right."""
    dense = layer(-6)
    kernel = tuned_kernel(dense)
    kernel.pin("glsl/plain")
    kernel(X, W, B)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kernel(X, W, B)
        except EngineError as error:
            os.write(writing, str(error).encode())
        kernel.unpin()
        os.write(writing, str(np.array_equal(dense(X, W, B), kernel(X, W, B))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(child, 0)

    assert f"{gl.FORKED}True" == said
