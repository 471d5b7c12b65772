"""A fork while another thread compiles."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tilewise.device.forking import compiler_locks
from tilewise.device.native import prepare_llvm

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_can_compile_while_the_parent_does() -> None:
    """The fork waits for the lock that another thread holds; the child gets it."""
    import llvmlite.binding as llvm
    import numba  # noqa: F401 - its lock is one of the two

    prepare_llvm()
    assert 2 == len(compiler_locks())
    taken, done = threading.Event(), threading.Event()

    def compile_long() -> None:
        with compiler_locks()[0], compiler_locks()[1]:
            taken.set()
            done.wait(0.5)

    other = threading.Thread(target=compile_long)
    other.start()
    assert taken.wait(20)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)  # Ends a child that waits for a thread that it has not.
        with compiler_locks()[0]:
            llvm.get_process_triple()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    other.join()
    assert 0 == status
