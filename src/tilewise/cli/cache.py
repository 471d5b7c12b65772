"""`tilewise cache`: look at the store, check it, shrink it, move it."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tilewise.cli.tables import Debug, Json, aligned, printed
from tilewise.errors import ArgumentError
from tilewise.store.records import Fault
from tilewise.store.stack import open_store

__all__ = ["cache"]

cache = typer.Typer(help="Look at the store, check it, shrink it, move it.")
File = Annotated[Path, typer.Argument(help="The bundle file.")]


@cache.command("list")
def list_(*, as_json: Json = False, debug: Debug = False) -> None:
    """List the compiled code that is kept, the most recently used first."""
    entries = open_store().entries()
    if as_json:
        printed([asdict(entry) for entry in entries])
        return
    now = time.time()
    rows = [("key", "kind", "variant", "arch", "KiB", "used")]
    for entry in entries:
        size = f"{entry.size_bytes / 1024:.1f}"
        used = f"{(now - entry.used_s) / 3600:.1f} h ago"
        rows.append((entry.key[:12], entry.kind, entry.variant, entry.arch, size, used))
    print("\n".join(aligned(rows)))


@cache.command()
def verify(*, as_json: Json = False, debug: Debug = False) -> None:
    """Read every record and remove those that are damaged; 1 if there were any."""
    faults = open_store().verify()
    found = [{"key": key, "reason": fault.reason} for key, fault in faults]
    if as_json:
        printed(found)
    else:
        print("\n".join(f"{one['key'][:24]}: removed, {one['reason']}" for one in found)
              or "every record is whole")  # fmt: skip
    raise SystemExit(1 if found else 0)


@cache.command()
def prune(*, as_json: Json = False, debug: Debug = False) -> None:
    """Hold the cap and remove what killed writers left behind."""
    pruned = open_store().prune()
    if as_json:
        printed(asdict(pruned))
    else:
        print(
            f"removed {pruned.records} records and {pruned.files} stray files "
            f"({pruned.size_bytes} bytes)"
        )


@cache.command()
def clear(*, as_json: Json = False, debug: Debug = False) -> None:
    """Remove all compiled code and all decisions."""
    count = open_store().clear()
    if as_json:
        printed({"removed": count})
    else:
        print(f"removed {count} records")


@cache.command("export")
def export_(path: File, *, as_json: Json = False, debug: Debug = False) -> None:
    """Write everything to one file; the same contents give the same bytes."""
    try:
        bundle = open_store().export(path)
    except OSError as error:
        raise ArgumentError(f"can't write {path}: {error.strerror}") from error
    told = {
        "artifacts": len(bundle.artifacts),
        "tables": len(bundle.tables),
        "size_bytes": path.stat().st_size,
    }
    if as_json:
        printed(told)
    else:
        print(
            f"{path}: {counted(told['artifacts'], 'artifact')} and "
            f"{counted(told['tables'], 'decision table')}, {told['size_bytes']} bytes"
        )


@cache.command("import")
def import_(path: File, *, as_json: Json = False, debug: Debug = False) -> None:
    """Merge a bundle file into the store; of two decisions the later stays."""
    absorbed = open_store().absorb(path)
    if isinstance(absorbed, Fault):
        raise ArgumentError(f"{path}: {absorbed.reason}")
    if as_json:
        printed(asdict(absorbed))
    else:
        print(f"{counted(absorbed.artifacts, 'artifact')} and "
              f"{counted(absorbed.tables, 'decision table')}")  # fmt: skip


def counted(count: int, name: str) -> str:
    """Write a count with its noun."""
    return f"{count} {name}{'s' * (count != 1)}"
