"""
A bundle: artifacts and decisions in one file, the same bytes when made again.

It is written whole by renaming, read whole, and never changed in place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilewise.model.decision import DecisionTable
from tilewise.model.variant import Artifact
from tilewise.store.records import Fault, decode, encode

__all__ = ["Bundle", "read_bundle", "write_bundle"]

KIND = "bundle"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Artifacts by key and decision tables by name."""

    artifacts: dict[str, Artifact] = field(default_factory=dict)
    tables: dict[str, DecisionTable] = field(default_factory=dict)


def read_bundle(path: Path) -> Bundle | Fault:
    """Read a bundle file, or say what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return Fault(f"the bundle can't be read: {error.strerror or error}")
    return decode(KIND, data, Bundle)


def write_bundle(
    path: Path, artifacts: Mapping[str, Artifact], tables: Mapping[str, DecisionTable]
) -> int:
    """
    Write a bundle and return its size in bytes.

    Keys are sorted and no time is written, so equal contents give equal bytes.
    Raises OSError when the file can't be written.
    """
    data = encode(
        KIND, Bundle(dict(sorted(artifacts.items())), dict(sorted(tables.items())))
    )
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return len(data)
