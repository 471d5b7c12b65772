"""
A bundle: artifacts and decisions in one file, the same bytes when made again.

It is written whole by renaming, read whole, and never changed in place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tilewise.model.box import BoxTable
from tilewise.model.decision import DecisionTable, TableKey
from tilewise.model.variant import Artifact
from tilewise.store.boxes import box_name, latest_first
from tilewise.store.decisions import order, table_name
from tilewise.store.records import Fault, decode, encode
from tilewise.store.warn import warn_once

__all__ = ["Bundle", "BundleLayer", "read_bundle", "write_bundle"]

KIND = "bundle"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Artifacts with their keys, decision tables, and those that callers stated."""

    artifacts: tuple[tuple[str, Artifact], ...] = ()
    tables: tuple[DecisionTable, ...] = ()
    boxes: tuple[BoxTable, ...] = ()


def read_bundle(path: Path) -> Bundle | Fault:
    """Read a bundle file, or say what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return Fault(f"the bundle can't be read: {error.strerror or error}")
    return decode(KIND, data, Bundle)


def write_bundle(
    path: Path,
    artifacts: Iterable[tuple[str, Artifact]],
    tables: Iterable[DecisionTable],
    boxes: Iterable[BoxTable] = (),
) -> Bundle:
    """
    Write a bundle and return it.

    All is sorted and no time of writing is in it, so equal contents give equal
    bytes. Raises OSError when the file can't be written.
    """
    bundle = Bundle(
        tuple(sorted(artifacts, key=lambda item: item[0])),
        tuple(sorted(tables, key=order)),
        tuple(sorted(boxes, key=box_name)),
    )
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("xb") as file:
            file.write(encode(KIND, bundle))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return bundle


class BundleLayer:
    """
    A bundle below the writable layer, read when it is first asked for.

    What a `shipped` one decides says so.
    """

    def __init__(self, path: Path, shipped: bool = False) -> None:
        self.path, self.source = path, path.name if shipped else ""

    @cached_property
    def bundle(self) -> Bundle:
        """Read the bundle; a bad one is an empty one with one warning."""
        found = read_bundle(self.path)
        if isinstance(found, Fault):
            warn_once(self.path, found.reason)
            return Bundle()
        return found

    @cached_property
    def artifacts(self) -> dict[str, Artifact]:
        """The artifacts by key."""
        return dict(self.bundle.artifacts)

    @cached_property
    def tables(self) -> dict[str, DecisionTable]:
        """The tables by the text under which a store keeps them."""
        found = {}
        for table in self.bundle.tables:
            made = (replace(d, source=self.source) for d in table.decisions)
            found[table_name(table.key)] = replace(table, decisions=tuple(made))
        return found

    @cached_property
    def kin(self) -> dict[tuple[str, ...], DecisionTable]:
        """The tables by class of hardware, kernel and combination."""
        return {kind_of(table.key): table for table in self.tables.values()}

    def boxes(self, fingerprint: str, name: str) -> list[BoxTable]:
        """Return the tables that callers stated for a name, the latest first."""
        wanted = (fingerprint, name)
        every = self.bundle.boxes
        return latest_first([t for t in every if (t.fingerprint, t.name) == wanted])

    def artifact(self, key: str) -> Artifact | None:
        """Return an artifact, or None."""
        return self.artifacts.get(key)

    def table(self, key: TableKey) -> DecisionTable | None:
        """Return a table of this hardware, else one of its class, or None."""
        found = self.tables.get(table_name(key)) or self.kin.get(kind_of(key))
        return replace(found, key=key) if found else None


def kind_of(key: TableKey) -> tuple[str, ...]:
    """
    Return what a table holds for, with the class of hardware only.

    For arrays on a device that is the GPU, whatever the host; for those of the host
    the CPU with its threads, whatever the GPU.
    """
    host, _, gpu = key.fingerprint.partition("_gpu_")
    place = gpu if key.residency == "device" else host.removesuffix("_no-gpu")
    return (place, key.kernel, key.table)
