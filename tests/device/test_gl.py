"""The one OpenGL context: made when asked for, shared by threads, refused by reason."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from tests.opengl import needs_opengl
from tilewise.device import gl
from tilewise.errors import EngineError
from tilewise.model.variant import Target


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test see a process that has not asked yet, with moderngl there."""
    monkeypatch.setattr(gl, "STATE", None)
    monkeypatch.setattr(gl, "installed", lambda: True)
    monkeypatch.setattr(gl, "has_gpu", lambda: True)


@pytest.fixture
def opengl() -> None:
    """Skip by name where there is no context."""
    needs_opengl()


@pytest.mark.usefixtures("fresh")
def test_without_moderngl_the_target_says_so(monkeypatch: pytest.MonkeyPatch):
    """The reason names the extra that brings it."""
    monkeypatch.setattr(gl, "installed", lambda: False)
    told = "moderngl is not installed: it comes with tilewise[glsl]"

    assert Target("gl", "", reason=told) == gl.gl_target()
    assert told == gl.gl_aside("host")


@pytest.mark.usefixtures("fresh")
def test_a_driver_that_refuses_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    """The driver's words are told, to whoever asks, and it is asked once."""
    asked = []

    def refuse() -> None:
        asked.append(1)
        raise Exception("libEGL.so not loaded")

    monkeypatch.setattr(gl, "made_context", refuse)
    told = "no OpenGL 4.3 context: libEGL.so not loaded"

    assert told == gl.gl_target().reason
    assert told == gl.gl_aside("host")
    with pytest.raises(EngineError, match=told):
        gl.on_context(lambda context: None)
    assert [1] == asked


@pytest.mark.usefixtures("fresh")
def test_a_driver_that_hangs_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    """After its time the process goes on without OpenGL."""
    monkeypatch.setattr(gl, "PATIENCE_S", 0.05)
    released = threading.Event()
    monkeypatch.setattr(gl, "made_context", released.wait)
    begun = time.monotonic()

    assert "no OpenGL context came within 0.05 s" == gl.gl_target().reason
    assert time.monotonic() - begun < 10
    released.set()


@pytest.mark.skipif(sys.platform != "linux", reason="names a library of Linux")
@pytest.mark.parametrize("library", ["libNoEGL.so", "libc.so.6"])
def test_a_missing_or_wrong_library_is_a_reason(library: str):
    """A real process, told to load what is no EGL, goes on and says why."""
    pytest.importorskip("moderngl")
    code = "from tilewise.device.gl import gl_target; print(gl_target().reason)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "GLCONTEXT_LINUX_LIBEGL": library},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.startswith("no OpenGL 4.3 context: "), done
    assert 0 == done.returncode


@pytest.mark.usefixtures("fresh")
def test_without_a_gpu_no_context_is_made_for_a_race(monkeypatch: pytest.MonkeyPatch):
    """A process that does not name glsl does not pay for a context."""
    monkeypatch.setattr(gl, "has_gpu", lambda: False)
    monkeypatch.setattr(gl, "studio", lambda: pytest.fail("asked for a context"))

    assert gl.gl_aside("host").startswith("there is no GPU for OpenGL here: it serves")


def test_device_arrays_are_not_for_opengl():
    """No context is made for them either."""
    assert "OpenGL takes arrays of the host" == gl.gl_aside("device")


@pytest.mark.parametrize(
    ("name", "software"),
    [
        ("llvmpipe (LLVM 15.0.6, 256 bits)", True),
        ("softpipe", True),
        ("NVIDIA GeForce RTX 4070/PCIe/SSE2", False),
        ("AMD Radeon Graphics (radeonsi, renoir, LLVM 15.0.7)", False),
        ("Mesa Intel(R) UHD Graphics 620 (KBL GT2)", False),
    ],
)
def test_renderers_that_are_the_cpu(name: str, software: bool):
    """They race only where glsl is named; a GPU races like any engine."""
    assert software is gl.Renderer(name, "4.5", 0).is_software


@pytest.mark.usefixtures("opengl")
def test_a_software_renderer_stands_aside():
    """The reason names it and how to have it all the same."""
    arch = gl.gl_target().arch
    if not gl.Renderer(arch, "", 0).is_software:
        pytest.skip(f"{arch} is a GPU")

    told = gl.gl_aside("host")
    assert told.endswith("it serves only where glsl is named: engines=, "
                         "TILEWISE_ENGINES or pin")  # fmt: skip
    assert told.partition(" computes on the CPU")[0] in arch


@pytest.mark.usefixtures("opengl")
def test_jobs_of_all_threads_run_in_one_thread():
    """A context is current in one thread at a time."""
    found: list[Any] = []

    def ask() -> None:
        found.append(gl.on_context(lambda context: threading.get_ident()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == len(set(found))
    assert threading.get_ident() not in found


@pytest.mark.usefixtures("opengl")
def test_what_a_job_raises_comes_back_as_an_engine_error():
    """Its own words are kept, and the thread goes on serving."""
    with pytest.raises(EngineError, match="OpenGL fails: division by zero"):
        gl.on_context(lambda context: 1 / 0)

    assert 7 == gl.on_context(lambda context: 7)


@pytest.mark.usefixtures("opengl")
def test_an_opengl_error_comes_back_as_an_engine_error():
    """A dispatch with too many groups leaves OpenGL's error behind, which is told."""
    source = "#version 430\nlayout(local_size_x = 1) in;\nvoid main() {}\n"

    def job(context: Any) -> None:
        context.compute_shader(source).run(1 << 30)

    with pytest.raises(EngineError, match="OpenGL says GL_INVALID_VALUE"):
        gl.on_context(job)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.usefixtures("opengl")
def test_a_forked_process_refuses_by_reason():
    """The parent's context does not survive a fork: no hang, and the parent goes on."""
    gl.on_context(lambda context: None)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            gl.on_context(lambda context: None)
        except EngineError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert gl.FORKED == told.read()
    os.waitpid(child, 0)

    assert 7 == gl.on_context(lambda context: 7)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
@pytest.mark.usefixtures("opengl")
def test_a_process_forked_before_has_a_context_of_its_own():
    """Neither parent nor child had asked; each makes one, and both end."""
    code = (
        "import os\n"
        "from tilewise.device.gl import gl_target\n"
        "child = os.fork()\n"
        "print(bool(gl_target().arch), flush=True)\n"
        "if child: os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ["True", "True"] == done.stdout.split(), done.stderr
    assert 0 == done.returncode


@pytest.mark.usefixtures("opengl")
def test_buffers_that_are_dropped_elsewhere_are_released():
    """What another thread lets go of waits for the context's own thread."""
    kept = [gl.on_context(lambda context: context.buffer(reserve=64))]
    context = kept[0].ctx
    kept.clear()
    assert 1 == len(context.objects)
    gl.on_context(lambda context: None)

    assert 0 == len(context.objects)
