"""`tilewise retune PACKAGE`: measure all kernels of a package on this host."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewise.cli.tables import Debug, Json, printed

__all__ = ["retune"]


def retune(
    package: Annotated[str, typer.Argument(help="A package, a module or a .py file.")],
    *,
    device: Annotated[
        list[str] | None, typer.Option(help="cpu or a GPU's number; all by default.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Measure again what is decided.")] = False,
    budget: Annotated[float | None, typer.Option(help="Seconds a problem.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure every kernel of a package on the CPU and on each kind of GPU."""
    from tilewise.api.retune import retune_all

    places = [int(one) if one.isdecimal() else one for one in device or ()] or None
    done = retune_all(
        package, force=force, devices=places, budget_s=budget, progress=True
    )
    if as_json:
        rows = [
            {
                "kernel": one.kernel,
                "device": one.device,
                "problems": len(one.report.resolutions) if one.report else 0,
                "winners": [str(r.variant) for r in one.report.resolutions]
                if one.report
                else [],
                "failure": one.failure,
                "skipped": one.skipped,
            }
            for one in done.done
        ]
        printed({"kernels": rows, "imports": dict(done.imports)})
    else:
        print(done)
    raise SystemExit(1 if done.failures or done.interrupted else 0)
