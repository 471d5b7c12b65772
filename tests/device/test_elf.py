"""CUBINs tell their architecture, entries and resources without a driver."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest

from tilewise.device.elf import Cubin, Entry, read_cubin

CUBINS = Path(__file__).with_name("cubins")
"""`kk` of NVRTC 13.5: 64 floats in shared memory, for three architectures."""


def image(arch: int) -> bytes:
    """Return a recorded CUBIN."""
    return (CUBINS / f"sm_{arch}.cubin").read_bytes()


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "code"),
    [(75, 8, 256, 256), (90, 12, 1280, 512), (120, 12, 1280, 512)],
)
def test_a_cubin(arch, registers, shared, code):
    """The figures are those of cuobjdump --dump-resource-usage."""
    entry = Entry("kk", registers, 0, shared, code)

    assert Cubin(arch, (entry,)) == read_cubin(image(arch))


def test_an_entry_by_name():
    """An entry is found by its name, or is None."""
    cubin = read_cubin(image(90))

    assert ("kk", None) == (cubin.entry("kk").name, cubin.entry("other"))


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"", "the image is empty"),
        (b".version 9.5", "the image starts with b'.ver' and is no ELF file"),
        (image(90)[:40], "the image is cut short"),
        (image(90)[:-100], "the image is cut short"),
        (
            image(90)[:18] + struct.pack("<H", 62) + image(90)[20:],
            "the image is for ELF machine 62, not for CUDA",
        ),
    ],
)
def test_what_is_no_cubin(damaged, reason):
    """What is wrong is said; nothing is read past the end."""
    with pytest.raises(ValueError, match=reason):
        read_cubin(damaged)


def test_a_flipped_byte_never_crashes():
    """A damaged image is read or refused by a ValueError, nothing else."""
    for at in range(len(image(90))):
        data = bytearray(image(90))
        data[at] ^= 0xFF
        with suppress(ValueError):
            read_cubin(bytes(data))
