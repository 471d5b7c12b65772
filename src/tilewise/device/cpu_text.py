"""
Read a CPU's identity from the text that its system gives.

One table of words serves /proc/cpuinfo, lscpu, macOS's sysctl and Windows's
identifier, since each is a list of `word: value` lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["Cpu", "lines_of", "parse_cpu", "slug"]


@dataclass(frozen=True, slots=True)
class Cpu:
    """
    One processor model.

    `name` is as the system writes it (ARM's parts by their product names); `family`
    and `model` are the maker's numbers as texts, or ""; `features` the instruction
    sets in the system's words, sorted.
    """

    name: str
    family: str = ""
    model: str = ""
    features: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """
        The name for a fingerprint: `amd-epyc-7763`.

        Virtual machines hide the number ("AMD EPYC" is Zen 3 and Zen 4 alike), so a
        name without one gets family and model behind it: `amd-epyc-25.17`.
        """
        name = slug(self.name) or "unknown"
        numbers = [part for part in (self.family, self.model) if part]
        if numbers and not any(mark.isdigit() for mark in name):
            return f"{name}-{slug('.'.join(numbers))}"
        return name


WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "name": ("model name", "machdep.cpu.brand_string", "processor name"),
        "family": ("cpu family", "machdep.cpu.family"),
        "model": ("model", "machdep.cpu.model"),
        "features": ("flags", "features", "machdep.cpu.features"),
        "implementer": ("cpu implementer",),
        "part": ("cpu part",),
    }
)

# Sources: the "CPU implementer" and "CPU part" numbers of util-linux's lscpu-arm.c.
ARM_PARTS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("0x41", "0xd03"): "ARM Cortex-A53",
        ("0x41", "0xd08"): "ARM Cortex-A72",
        ("0x41", "0xd0b"): "ARM Cortex-A76",
        ("0x41", "0xd0c"): "ARM Neoverse-N1",
        ("0x41", "0xd40"): "ARM Neoverse-V1",
        ("0x41", "0xd49"): "ARM Neoverse-N2",
        ("0x41", "0xd4f"): "ARM Neoverse-V2",
        ("0x41", "0xd84"): "ARM Neoverse-V3",
        ("0x41", "0xd8e"): "ARM Neoverse-N3",
        ("0x46", "0x001"): "Fujitsu A64FX",
        ("0x48", "0xd01"): "HiSilicon Kunpeng-920",
        ("0xc0", "0xac3"): "Ampere-1",
        ("0xc0", "0xac4"): "Ampere-1A",
    }
)

IDENTIFIER = re.compile(r"^(\w+) Family (\d+) Model (\d+) Stepping \d+, (\w+)$")
MAKERS = MappingProxyType({"GenuineIntel": "Intel", "AuthenticAMD": "AMD"})
NOISE = re.compile(
    r"\((r|tm|c)\)|@.*|\b(cpu|gpu|processor|with radeon graphics|\d+-core)\b",
    re.IGNORECASE,
)
SLUG_LENGTH = 60


def parse_cpu(text: str) -> Cpu:
    """
    Return the first processor of a text.

    Understood are /proc/cpuinfo, the output of lscpu and of `sysctl machdep.cpu hw`,
    and Windows's PROCESSOR_IDENTIFIER. What a text does not say is left empty.
    """
    short = IDENTIFIER.match(text.strip())
    if short:
        _, family, model, maker = short.groups()
        return Cpu(MAKERS.get(maker, maker), family, model)
    found = {word: first(lines_of(text), names) for word, names in WORDS.items()}
    name = found["name"] if found["name"] not in ("", "-") else arm_name(found)
    features = tuple(sorted(set(found["features"].lower().split())))
    return Cpu(name, found["family"], found["model"], features)


def lines_of(text: str) -> dict[str, str]:
    """Return the `word: value` lines by word in lower case, the first of each."""
    lines: dict[str, str] = {}
    for line in text.splitlines():
        word, colon, value = line.partition(":")
        if colon:
            lines.setdefault(word.strip().lower(), value.strip())
    return lines


def first(lines: Mapping[str, str], words: tuple[str, ...]) -> str:
    """Return the value of the first word that a text has, or ""."""
    return next((lines[word] for word in words if word in lines), "")


def arm_name(found: Mapping[str, str]) -> str:
    """Name an ARM core from its two numbers, which stand where x86 has a name."""
    numbers = (found["implementer"].lower(), found["part"].lower())
    if not numbers[0]:
        return ""
    return ARM_PARTS.get(numbers, f"ARM {numbers[0]} {numbers[1]}")


def slug(name: str) -> str:
    """
    Write a product's name with lower-case letters, digits, dots and dashes only.

    Marks, frequencies and the words CPU, GPU, Processor and 64-Core fall away.
    """
    words = re.sub(r"[^a-z0-9.]+", "-", NOISE.sub(" ", name).lower())
    return words.strip("-.")[:SLUG_LENGTH]
