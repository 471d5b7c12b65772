"""The emulated device stands behind the seam: memory, modules, launches, events."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tilewise.device.emulator.device import EmulatedDevice
from tilewise.device.seam import launch_shape
from tilewise.errors import ArgumentError, EngineError

COPY = "add.u64 %l1, %p0, %o; ld.global.f32 %f1, [%l1];"


@pytest.fixture
def device():
    """Return a small device."""
    return EmulatedDevice((8, 0), memory_bytes=1 << 20)


def test_properties_say_that_it_is_emulated(device):
    """It takes PTX and its limits are those of its compute capability."""
    found = device.properties

    assert ("ptx", True, (8, 0)) == (
        found.image,
        found.emulated,
        found.compute_capability,
    )
    assert (163 << 10, 1 << 20) == (found.shared_bytes_optin, found.memory_bytes)


def test_findings_are_an_error_unless_collected(device, kernel):
    """A launch that is not clean raises with its reports."""
    module = device.load(kernel(COPY))
    buffer = device.allocate(64)

    with pytest.raises(
        EngineError, match=r"out_of_bounds(.|\n)*uninitialised"
    ) as caught:
        device.launch(module.kernel("kernel"), launch_shape(1, 32), [buffer])

    assert "2 findings" in str(caught.value)
    assert [] == device.reports


def test_a_kernel_outlives_its_module(device, kernel):
    """A module of which only a kernel is left keeps its variables in memory."""
    body = "mov.u64 %l1, seven; ld.global.u32 %r1, [%l1]; st.global.u32 [%p0], %r1;"
    text = kernel(body, head=".global .align 4 .u32 seven = 7;")
    entry, out = device.load(text).kernel("kernel"), np.zeros(1, np.uint32)
    gc.collect()
    buffer = device.allocate(4)
    device.launch(entry, launch_shape(1, 1), [buffer])
    device.copy_out(out, buffer)

    assert 7 == out[0]


def test_fresh_memory_is_uninitialised_until_written(device, kernel):
    """What a kernel or the host wrote may be read, and the rest is counted."""
    write = kernel(
        "setp.lt.u32 %q1, %t, 4; add.u64 %l1, %p0, %o;@%q1 st.global.u32 [%l1], %t;"
    )
    buffer = device.allocate(64)
    before = device.unwritten_bytes(buffer)

    entry = device.load(write).kernel("kernel")
    device.launch(entry, launch_shape(1, 32), [buffer])
    after = device.unwritten_bytes(buffer)
    device.copy_in(buffer, np.zeros(16, np.float32))

    assert (64, 48, 0) == (before, after, device.unwritten_bytes(buffer))


def test_freed_memory_is_out_of_bounds(device, kernel):
    """Use after free is found, also when the buffer was only forgotten."""
    entry = device.load(kernel(COPY)).kernel("kernel")
    keep = device.allocate(128)
    buffer = device.allocate(128)
    device.copy_in(buffer, np.zeros(32, np.float32))
    address = np.uint64(buffer.address)
    device.launch(entry, launch_shape(1, 32), [address])

    del buffer
    gc.collect()

    assert 128 == keep.nbytes
    with pytest.raises(EngineError, match="out_of_bounds"):
        device.launch(entry, launch_shape(1, 32), [address])


def test_arguments_are_checked_before_the_launch(device, kernel):
    """Number, size and kind of each argument are named."""
    entry = device.load(kernel(COPY)).kernel("kernel")
    shape = launch_shape(1, 32)

    for args, word in (
        ([], "1 arguments, 0 were given"),
        ([np.int32(1)], "has 4 bytes, the parameter 8"),
        ([1], "argument 0 is int"),
        ([np.zeros(3)], "argument 0 is ndarray"),
    ):
        with pytest.raises(ArgumentError, match=word):
            device.launch(entry, shape, args)


def test_modules_name_their_entries(device, kernel):
    """A missing entry names those that are there."""
    module = device.load(kernel("").encode() + b"\0")

    assert ("kernel",) == module.entries
    assert module.kernel("kernel").program is module.kernel("kernel").program
    with pytest.raises(EngineError, match="it has: kernel"):
        module.kernel("other")


@pytest.mark.parametrize("image", [b"\x7fELF123", b"\xff\xfe", b"hello"])
def test_what_is_no_ptx_is_refused(device, image):
    """Machine code, bytes and words are named errors."""
    with pytest.raises(EngineError):
        device.load(image)


def test_too_much_shared_memory_is_refused(device, kernel):
    """Static and dynamic bytes count together."""
    entry = device.load(kernel(".shared .b8 x[1024];")).kernel("kernel")

    with pytest.raises(EngineError, match="shared bytes"):
        device.launch(entry, launch_shape(1, 32, 163 << 10), [device.allocate(4)])


def test_copies_stay_inside_their_buffers(device):
    """Too large copies and strided hosts are errors."""
    buffer = device.allocate(16)

    with pytest.raises(EngineError, match="allocated"):
        device.copy_in(buffer, np.zeros(5, np.float32))
    with pytest.raises(EngineError, match="allocated"):
        device.copy_out(np.zeros(5, np.float32), buffer)
    with pytest.raises(ArgumentError, match="contiguous"):
        device.copy_in(buffer, np.zeros(8, np.float32)[::2])
    with pytest.raises(ArgumentError, match="no device array"):
        device.copy_in("x", np.zeros(1))
    with pytest.raises(ArgumentError, match="negative"):
        device.allocate(-1)


def test_events_measure_the_host(device):
    """Events are in order, streams have their own handles."""
    first = device.record()
    second = device.record(device.stream())
    first.synchronize()
    device.synchronize()

    assert 0 <= device.elapsed_us(first, second) < 1e6
    assert device.stream().handle != device.stream().handle
    with pytest.raises(ArgumentError):
        device.elapsed_us(first, "x")


def test_threads_may_launch_at_once(device, kernel):
    """Launches of several threads don't mix their values or their reports."""
    body = "add.u64 %l1, %p0, %o; add.u32 %r1, %t, 1; st.global.u32 [%l1], %r1;"
    entry = device.load(kernel(body)).kernel("kernel")

    def once(number):
        buffer = device.allocate(128)
        device.launch(entry, launch_shape(1, 32), [buffer])
        out = np.zeros(32, np.uint32)
        device.copy_out(out, buffer)
        return out.tolist()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(once, range(40)))

    assert [list(range(1, 33))] * 40 == found
    assert [] == device.reports
