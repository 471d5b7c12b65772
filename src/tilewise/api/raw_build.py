"""A user's CUDA C++ as an artifact: its key, its headers, its compilation."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewise.build.keys import artifact_key
from tilewise.device.arch import cuda_target
from tilewise.device.nvrtc import compiled_both
from tilewise.engines.gpu.image import Compiled, checked
from tilewise.errors import ArgumentError, EngineError
from tilewise.model.variant import Artifact
from tilewise.store.stack import open_store

__all__ = ["RawSource", "artifact_of", "header_closure"]

TOOLCHAIN = ("cuda-bindings", "nvidia-cuda-nvrtc")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
ERROR = re.compile(r"^(.+)\(\d+\): (?:.* )?error: (.+)$", re.MULTILINE)
"""NVRTC's; those in __nv_name_map are about the name that was asked for."""

FOLDER_FLAGS = ("-I", "--include-path=")


@dataclass(frozen=True, slots=True)
class RawSource:
    """CUDA C++ with the kernel's name (or name expression) and NVRTC's flags."""

    text: str
    name: str
    flags: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that the flags name for headers."""
        found: list[Path] = []
        for flag in self.flags:
            prefix = next((p for p in FOLDER_FLAGS if flag.startswith(p)), None)
            if prefix is not None:
                found.append(Path(flag.removeprefix(prefix).strip()))
        return tuple(found)

    @property
    def is_plain(self) -> bool:
        """Whether the name is one that `extern "C"` leaves as it is."""
        pattern = rf'extern\s+"C"[^;{{}}]*\b{re.escape(self.name)}\s*\('
        block = r'extern\s+"C"\s*\{'
        return re.search(pattern, self.text) is not None or (
            re.search(block, self.text) is not None and self.name.isidentifier()
        )


def header_closure(text: str, folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """
    Yield (name, SHA-256) for each header that a source includes from the folders.

    Headers of headers too; names found in no folder are NVRTC's own, and its version
    is part of the key. What `#if` leaves out counts as well, which is never too few.
    """
    waiting, seen = INCLUDE.findall(text), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for folder in folders:
            path = folder / name
            if path.is_file():
                data = path.read_bytes()
                yield name, hashlib.sha256(data, usedforsecurity=False).hexdigest()
                waiting += INCLUDE.findall(data.decode(errors="replace"))
                break


def artifact_of(source: RawSource, arch: str) -> tuple[Artifact, str]:
    """
    Return a source's artifact and "store" or "build", where it came from.

    Raises EngineError with NVRTC's log, or for an unknown arch, ArgumentError for a
    name that the source does not have.
    """
    target = cuda_target(arch)
    kept = [flag for flag in source.flags if not flag.startswith(FOLDER_FLAGS)]
    parts = [("source", source.text), ("name", source.name), ("flags", repr(kept))]
    headers = sorted(header_closure(source.text, source.folders))
    parts += [(f"header.{name}", digest) for name, digest in headers]
    key = artifact_key(parts, target, TOOLCHAIN)
    store = open_store()
    found = store.artifact(key)
    if found is not None and found.kind == "cubin" and found.arch == arch:
        return found, "store"
    made = built(source, arch)
    store.keep_artifact(key, made)
    return made, "build"


def built(source: RawSource, arch: str) -> Artifact:
    """Compile a source and check what came out."""
    names = () if source.is_plain else (source.name,)
    started = time.perf_counter()
    flags = with_standard(source.flags)
    try:
        image, ptx = compiled_both(source.text, arch, flags, names, "raw_kernel.cu")
    except EngineError as error:
        wrong = ERROR.findall(str(error))
        if not wrong or any(place != "__nv_name_map" for place, _ in wrong):
            raise
        raise ArgumentError(
            f"there is no kernel {source.name!r} in the source: {wrong[0][1]}"
        ) from error
    took_ms = 1e3 * (time.perf_counter() - started)
    entry = image.names.get(source.name, source.name)
    if f".entry {entry}(".encode() not in ptx:
        known = ", ".join(re.findall(r"\.entry\s+([\w$]+)", ptx.decode())) or "none"
        raise ArgumentError(
            f"there is no kernel {source.name!r} in the source; its kernels are {known}"
        )
    made = Compiled(image.code, ptx, (entry,), image.log)
    return checked(made, arch, f"raw/{source.name}", TOOLCHAIN, took_ms)


def with_standard(flags: Sequence[str]) -> tuple[str, ...]:
    """Add C++17 where the flags name no standard."""
    named = any(flag.lstrip("-").startswith("std") for flag in flags)
    return tuple(flags) if named else ("-std=c++17", *flags)
