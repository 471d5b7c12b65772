"""A fork while another thread holds a lock."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
quiet = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def child_ended(lock: Any, call: Callable[[], Any], held_s: float = 0.3) -> int:
    """
    Fork while another thread has a lock for so long, and call in the child.

    Returns how the child ended: 0 is well, 14 that the call waited for 10 seconds.
    """
    taken = threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            threading.Event().wait(held_s)

    other = threading.Thread(target=hold)
    other.start()
    assert taken.wait(20)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)  # Ends a child that waits for a thread that it has not.
        code = 1
        try:
            call()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    other.join()
    return status
