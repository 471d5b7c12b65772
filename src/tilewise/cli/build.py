"""`tilewise build`: compile CUDA variants ahead of time, with no GPU and no driver."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewise.api.build_ahead import ARCHS, SHAPES, Built, build_ahead, subjects_of
from tilewise.cli.load import kernels_of, sizes_of
from tilewise.cli.tables import Debug, Json, aligned, printed
from tilewise.errors import ArgumentError

__all__ = ["build"]

FIGURES = ("registers", "shared_bytes", "spill_bytes")


def build(
    kernel: Annotated[str, typer.Argument(help="MODULE or MODULE:NAME.")],
    *,
    arch: Annotated[str, typer.Option(help="sm_80,sm_90,...")] = ",".join(ARCHS),
    shapes: Annotated[str, typer.Option(help="MxNxK[,MxNxK...].")] = "",
    dtype: Annotated[str, typer.Option(help="float32,float64")] = "float32",
    bundle: Annotated[Path | None, typer.Option(help="A file to ship.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compile every CUDA variant for some archs; a second run finds them all."""
    try:
        done = build_ahead(
            subjects_of(kernels_of(kernel)),
            arch.split(","),
            shapes=sizes_of(shapes) if shapes else SHAPES,
            dtypes=dtype.split(","),
            progress=line,
            bundle=bundle,
        )
    except OSError as error:
        raise ArgumentError(f"can't write {bundle}: {error.strerror}") from error
    rows = [row_of(built) for built in done]
    if as_json:
        printed(rows)
    else:
        head = ("kernel", "variant", "arch", "from", *FIGURES, "KiB", "ms", "reason")
        print("\n".join(aligned([head, *(tuple(map(str, r.values())) for r in rows)])))
    raise SystemExit(1 if any(built.origin == "failed" for built in done) else 0)


def row_of(built: Built) -> dict[str, Any]:
    """Return what is shown of one compilation."""
    size = len(built.artifact.code) / 1024 if built.artifact else 0.0
    return {
        "kernel": built.kernel,
        "variant": str(built.variant),
        "arch": built.arch,
        "origin": {"store": "HIT", "build": "MISS"}.get(built.origin, built.origin),
        **{name: built.figure(name) for name in FIGURES},
        "kib": round(size, 1),
        "ms": round(built.ms, 1),
        "reason": built.reason,
    }


def line(done: int, whole: int, built: Built) -> None:
    """Say on standard error how far the build is."""
    print(f"{done} of {whole}: {built.variant} {built.arch}", file=sys.stderr)
