"""A fork while another thread compiles or works on a device."""

from __future__ import annotations

import threading

import pytest

from tests.forks import child_ended, needs_fork, quiet
from tilewise.device.emulator.device import EmulatedDevice
from tilewise.device.forking import compiler_locks, renewed_in_children
from tilewise.device.native import prepare_llvm

pytestmark = [needs_fork, quiet]


def test_a_child_can_compile_while_the_parent_does() -> None:
    """The fork waits for each lock that another thread holds; the child gets it."""
    import llvmlite.binding as llvm

    pytest.importorskip("numba.cuda")
    prepare_llvm()
    held = compiler_locks()

    def compile_all() -> None:
        for lock in held:
            with lock:
                llvm.get_process_triple()

    assert 3 == len(held)
    assert [0, 0, 0] == [child_ended(lock, compile_all) for lock in held]


def test_a_child_uses_the_emulated_device() -> None:
    """The fork waits for a launch of another thread."""
    device = EmulatedDevice((8, 0), memory_bytes=1 << 20)

    assert 0 == child_ended(device._lock, lambda: device.allocate(4))


class Owner:
    """Something with a lock that is replaced in a child."""

    def __init__(self) -> None:
        self.renew_locks()
        renewed_in_children(self)

    def renew_locks(self) -> None:
        """Make the lock."""
        self.lock = threading.Lock()


def test_an_owner_replaces_its_locks() -> None:
    """What is not waited for is free in the child, and still held in the parent."""
    owner = Owner()
    held = owner.lock

    def take() -> None:
        with owner.lock:
            pass

    assert 0 == child_ended(held, take)
    assert held is owner.lock
