"""The command line: `tilewise` and `python -m tilewise`."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import tilewise
from tilewise.cli.build import build
from tilewise.cli.cache import cache
from tilewise.cli.load import sizes_of
from tilewise.cli.report import report
from tilewise.cli.retune import retune
from tilewise.cli.show import show
from tilewise.cli.tables import Debug, Json, aligned, printed
from tilewise.cli.tune import explain, tune
from tilewise.errors import TilewiseError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tilewise",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(cache, name="cache")
app.command()(tune)
app.command()(explain)
app.command()(build)
app.command()(show)
app.command()(report)
app.command()(retune)
USAGE_ERROR: Any = typer.BadParameter.__base__  # Typer's name for it is not public.
Count = Annotated[int, typer.Option(min=1)]


def main() -> None:
    """Run the command line; a mistake is one line and exit code 2."""
    try:
        raise SystemExit(app(standalone_mode=False))
    except TilewiseError as error:
        if "--debug" in sys.argv:
            raise
        told = str(error)
    except USAGE_ERROR as error:
        told = error.format_message().rstrip(".")
        if error.ctx is not None:  # An option without its argument comes with none.
            told += f". See {error.ctx.command_path} --help."
    print(f"tilewise: {told}", file=sys.stderr)
    raise SystemExit(2)


@app.callback()
def options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fused kernels from NumPy expressions, measured and remembered."""
    if version:
        print(f"tilewise {tilewise.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


@app.command()
def demo(
    *,
    device: Annotated[int, typer.Option(help="The device's number.", min=0)] = 0,
    m: Count = 512,
    n: Count = 512,
    k: Count = 512,
    tile_size: Annotated[
        int | None, typer.Option(help="Only for tiled engines.")
    ] = None,
    epilogue: Annotated[str, typer.Option(help="relu or identity.")] = "relu",
    cache_dir: Annotated[Path | None, typer.Option(help="Where the store is.")] = None,
    clear_cache: Annotated[bool, typer.Option("--clear-cache")] = False,
    warmup: Annotated[int, typer.Option(min=0)] = 5,
    iterations: Count = 20,
    engine: Annotated[str, typer.Option(help="The engine to build for.")] = "cpu",
    arch: Annotated[str, typer.Option(help="sm_90: build for it.")] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Build a kernel or find it in the store, run it and check it (MISS, then HIT)."""
    from tilewise.cli.demo import EPILOGUES, run_demo

    if epilogue not in EPILOGUES:
        raise typer.BadParameter(
            f"use one of {', '.join(EPILOGUES)}", param_hint="epilogue"
        )
    if engine == "cpu" and (device or arch):
        hint = "device" if device else "arch"
        raise typer.BadParameter("the CPU is this one, device 0", param_hint=hint)
    prepare(cache_dir, clear_cache, device)
    launches = warmup, iterations
    report = run_demo((m, n, k), epilogue, engine, tile_size, launches, arch)
    if as_json:
        printed(asdict(report))
    else:
        print(report.title)
        for label, text in report.lines():
            print(f"{label + ':':20} {text}")
    raise SystemExit(1 if report.validation == "FAILED" else 0)


def prepare(place: Path | None, clear: bool, device: int) -> None:
    """Choose the store's place and the GPU for this process; empty it if asked."""
    if device:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(device)
    if place is not None:
        os.environ["TILEWISE_CACHE_DIR"] = str(place.expanduser().resolve())
    if clear:
        from tilewise.store.stack import open_store

        open_store().clear()


@app.command()
def info(as_json: Json = False, debug: Debug = False) -> None:
    """Say what machine this is, what is installed and where things are kept."""
    from tilewise.device.fingerprint import hw_fingerprint
    from tilewise.device.gl import gl_target
    from tilewise.device.provenance import provenance
    from tilewise.runtime.once import engines
    from tilewise.settings import current, origin
    from tilewise.store.stack import open_store

    found: dict[str, Any] = {
        "fingerprint": hw_fingerprint(),
        "engines": ", ".join(["reference", *engines()]),
        "store": str(open_store().directory or "none"),
        "opengl": gl_target().arch or gl_target().reason,
    }
    versions = dict(provenance())
    settings = [
        {"setting": name, "value": value, "from": origin(name)}
        for name, value in asdict(current()).items()
    ]
    if as_json:
        printed({**found, "provenance": versions, "settings": settings})
        return
    for label, value in (found | versions).items():
        print(f"{label + ':':14} {value or '-'}")
    rows = [("setting", "value", "from")]
    rows += [(s["setting"], setting_text(s["value"]), s["from"]) for s in settings]
    print("\n".join(["", *aligned(rows)]))


def setting_text(value: Any) -> str:
    """Write a setting's value; none is a dash."""
    if isinstance(value, tuple):
        return ", ".join(value) or "-"
    return "-" if value in (None, "") else str(value)


@app.command()
def check(
    kernel: Annotated[str, typer.Argument(help="MODULE:NAME, a .ptx or a .cu file.")],
    *,
    shapes: Annotated[str, typer.Option(help="MxNxK[,MxNxK...].")] = "",
    grid: Annotated[
        str | None, typer.Option(help="As in cdiv(n,16),cdiv(m,16).")
    ] = None,
    block: Annotated[str | None, typer.Option(help="As in 16,16.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option(help="One a parameter, float32[m*k] or int32=m.")
    ] = None,
    shared_bytes: Annotated[int, typer.Option(min=0)] = 0,
    arch: str = "sm_90",
    global_races: Annotated[bool, typer.Option("--global-races")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a CUDA kernel on the emulated device and report what the sanitizer finds."""
    from tilewise.api.check import check as run_check

    done = run_check(
        kernel,
        shapes=sizes_of(shapes) if shapes else (),
        grid=grid,
        block=block,
        args=tuple(arg or ()),
        shared_bytes=shared_bytes,
        arch=arch,
        global_races=global_races,
    )
    if as_json:
        printed([asdict(report) for report in done.reports])
    else:
        print(done)
    raise SystemExit(0 if done else 1)


if __name__ == "__main__":
    main()
