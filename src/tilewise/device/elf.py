"""
Read what a CUBIN says of itself, without a driver: entries, arch, registers, shared.

A CUBIN is an ELF64 file of machine 190 (CUDA). The number of the architecture is in
bits 8 to 15 of its flags; registers and stack are attributes in `.nv.info`, as
`cuobjdump --dump-resource-usage` shows them, with which this was compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Cubin", "Entry", "read_cubin"]

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
ATTRIBUTE = struct.Struct("<BBH")
MACHINE = 190
WITH_SIZE = 4
"""The form of an attribute whose payload follows its size."""
FRAME, REGISTERS = 0x11, 0x2F
SYMBOLS = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel's registers of one thread, stack bytes, shared bytes and code bytes."""

    name: str
    registers: int = 0
    stack: int = 0
    shared: int = 0
    code: int = 0


@dataclass(frozen=True, slots=True)
class Cubin:
    """An architecture's number (90 for sm_90 and sm_90a) and its kernels."""

    arch: int
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry | None:
        """Return a kernel by name, or None."""
        return next((entry for entry in self.entries if entry.name == name), None)


@dataclass(frozen=True, slots=True)
class Section:
    """A section's name, type, link and size, and its bytes (none for `.nv.shared`)."""

    name: str
    kind: int
    link: int
    size: int
    data: bytes


def read_cubin(image: bytes) -> Cubin:
    """
    Return what a CUBIN holds.

    Raises ValueError saying what is wrong with bytes that are none.
    """
    if not image:
        raise ValueError("the image is empty")
    if image[:4] != b"\x7fELF":
        raise ValueError(f"the image starts with {image[:4]!r} and is no ELF file")
    try:
        return parsed(image)
    except (struct.error, IndexError) as error:
        raise ValueError(f"the image is cut short: {error}") from error


def parsed(image: bytes) -> Cubin:
    """Read the header, the sections and the attributes."""
    header = HEADER.unpack_from(image)
    if header[2] != MACHINE:
        raise ValueError(f"the image is for ELF machine {header[2]}, not for CUDA")
    if header[5] + header[9] * header[10] > len(image):
        raise ValueError("the image is cut short: its program headers are missing")
    sections = list(sections_of(image, header[6], header[12], header[13]))
    names = symbols(sections)
    found = dict(attributes(sections))
    entries = []
    for section in sections:
        name = section.name.removeprefix(".text.")
        if name == section.name or name not in names:
            continue
        index, size = names[name], section.size
        shared = sum(s.size for s in sections if s.name == f".nv.shared.{name}")
        registers, stack = (found.get((kind, index), 0) for kind in (REGISTERS, FRAME))
        entries.append(Entry(name, registers, stack, shared, size))
    return Cubin(header[7] >> 8 & 0xFF, tuple(entries))


def sections_of(image: bytes, at: int, count: int, names: int) -> Iterator[Section]:
    """Yield the sections; one that reaches past the end is an error."""
    if at + count * SECTION.size > len(image) or not count:
        raise ValueError("the image is cut short: its sections are missing")
    rows = [SECTION.unpack_from(image, at + i * SECTION.size) for i in range(count)]
    texts = image[rows[names][4] : rows[names][4] + rows[names][5]]
    for name, kind, _, _, offset, size, link, *_ in rows:
        data = b"" if kind == 8 else image[offset : offset + size]  # 8: NOBITS
        if kind != 8 and len(data) != size:
            raise ValueError("the image is cut short: a section ends past it")
        label = texts[name : texts.index(b"\0", name)].decode(errors="replace")
        yield Section(label, kind, link, size, data)


def symbols(sections: list[Section]) -> dict[str, int]:
    """Return the index of each global function, by name."""
    found = {}
    for section in sections:
        if section.kind != SYMBOLS:
            continue
        texts = sections[section.link].data
        for index in range(len(section.data) // SYMBOL.size):
            name, info, *_ = SYMBOL.unpack_from(section.data, index * SYMBOL.size)
            if info & 15 == 2:  # STT_FUNC
                label = texts[name : texts.index(b"\0", name)]
                found[label.decode(errors="replace")] = index
    return found


def attributes(sections: list[Section]) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield (kind, symbol), value for the attributes that are about a symbol."""
    for section in sections:
        if section.name != ".nv.info":
            continue
        at = 0
        while at + ATTRIBUTE.size <= len(section.data):
            form, kind, size = ATTRIBUTE.unpack_from(section.data, at)
            at += ATTRIBUTE.size
            if form != WITH_SIZE:
                continue
            if kind in (FRAME, REGISTERS):
                symbol, value = struct.unpack_from("<II", section.data, at)
                yield (kind, symbol), value
            at += size
