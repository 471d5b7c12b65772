"""`tilewise tune` and `tilewise explain`: measure at sizes, and say what is decided."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from tilewise.api.explain import Explanation, TuneReport
from tilewise.api.shapes import axis_names
from tilewise.cli.load import Kernel, kernels_of, one_kernel, points_of, ranges_of
from tilewise.cli.tables import Debug, Json, printed
from tilewise.errors import ArgumentError
from tilewise.model.swept import Swept

__all__ = ["explain", "tune"]

Shapes = Annotated[str, typer.Option("--shapes", "--shape", help="MxNxK[,MxNxK...].")]
Residency = Annotated[str, typer.Option(help="host or device.")]
Check = Annotated[bool, typer.Option("--check", help="Measure stored winners again.")]
Repair = Annotated[
    bool, typer.Option("--repair", help="Check, and replace those that lost.")
]
Signature = Annotated[
    str | None,
    typer.Option(help='Their axes, as in "(m,k),(k,n),()->(m,n)"; () is a number.'),
]


def tune(
    kernel: Annotated[str, typer.Argument(help="MODULE or MODULE:NAME.")],
    *,
    shapes: Shapes = "",
    ranges: Annotated[
        str, typer.Option(help="Sweep instead: m=1-4096,n=64,k=1-4096.")
    ] = "",
    dtype: str = "float32",
    residency: Residency = "host",
    signature: Signature = None,
    force: Annotated[bool, typer.Option(help="Measure again what is decided.")] = False,
    budget: Annotated[
        float | None, typer.Option(help="Seconds: a problem's, or a sweep's in all.")
    ] = None,
    check: Check = False,
    repair: Repair = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """
    Measure every variant at some sizes, or over ranges, and keep the winners.

    Without either, a kernel is measured at the sizes that its decorator states. Those
    of a kernel with axes of its own stand in the order of its axes.
    """
    if budget is not None and not budget > 0:
        raise typer.BadParameter("give seconds above 0", param_hint="budget")
    options: dict[str, Any] = {"dtype": dtype, "residency": residency, "force": force}
    options |= {"budget_s": budget, "progress": True, "signature": signature}
    if check or repair:
        if shapes or ranges or force or (dtype, residency) != ("float32", "host"):
            raise ArgumentError(
                "--check and --repair take what is stored: give no sizes nor dtype"
            )
        made = {"signature": signature, "repair": repair, "budget_s": budget}
        checked(kernels_of(kernel), as_json, **made)
    else:
        found = [(one, sizes_for(one, shapes, ranges)) for one in kernels_of(kernel)]
        measured(found, options, as_json)


def measured(
    wanted: list[tuple[Kernel, dict[str, Any]]], options: dict[str, Any], as_json: bool
) -> None:
    """Tune kernels at their sizes and report."""
    reports: list[TuneReport] = []
    for found, sizes in wanted:
        reports.append(found.tune(**sizes, **options))
        if reports[-1].interrupted:
            break
    if as_json:
        printed([part for report in reports for part in parts_of(report)])
    else:
        print("\n\n".join(map(str, reports)))
    if any(report.interrupted for report in reports):
        raise SystemExit(1)


def checked(kernels: list[Kernel], as_json: bool, **options: Any) -> None:
    """Measure stored winners again, report, and replace those that lost if asked."""
    from tilewise.api.drift import check_drift

    found = [check_drift(kernel, **options) for kernel in kernels]
    if as_json:
        printed([one.to_dict() for one in found])
    else:
        print("\n\n".join(map(str, found)))
    if any(one.interrupted for one in found):
        raise SystemExit(1)


def sizes_for(kernel: Kernel, shapes: str, ranges: str) -> dict[str, Any]:
    """Return the sizes or ranges at which a kernel is to be tuned, as options."""
    subject = kernel._subject
    if shapes and ranges:
        raise ArgumentError("give --shapes or --ranges, not both")
    if ranges:
        return {"ranges": ranges_of(ranges)}
    if shapes:
        return {"sizes": points_of(shapes, axis_names(subject))}
    if not subject.options.sizes:
        raise ArgumentError(
            f"{subject.name} states no sizes: give --shapes MxNxK,... or --ranges "
            "m=1-4096,n=64,k=1-4096"
        )
    return {}


def parts_of(report: TuneReport) -> list[dict[str, Any]]:
    """Return a report's explanations and sweeps as plain values for JSON."""
    told = [Explanation(report.kernel, r, report.assumed) for r in report.resolutions]
    swept = [sweep_of(report.kernel, one) for one in report.sweeps]
    return [one.to_dict() for one in told] + swept


def sweep_of(kernel: str, sweep: Swept) -> dict[str, Any]:
    """Return a sweep as plain values for JSON."""
    return {
        "kernel": kernel,
        "table": sweep.label,
        "box": list(map(str, sweep.box)),
        "ended": sweep.ended,
        "points": sweep.points,
        "measured_s": sweep.measured_s,
        "regret": sweep.regret if math.isfinite(sweep.regret) else None,
        "regions": [
            {
                "region": ", ".join(map(str, one.region)),
                "variant": str(one.variant),
                "grade": one.grade,
                "regret": one.regret,
            }
            for one in sweep.regions
        ],
    }


def explain(
    kernel: Annotated[str, typer.Argument(help="MODULE:NAME.")],
    *,
    shapes: Shapes,
    dtype: Annotated[str, typer.Option(help="Of a product; float32 if none.")] = "",
    residency: Residency = "host",
    signature: Signature = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what a call at some sizes would run and why."""
    found = one_kernel(kernel)
    if dtype and found._subject.axes:
        raise ArgumentError(
            f"--dtype is for products: make_inputs= makes {found._subject.name}'s"
        )
    made: Any = {
        "dtype": dtype or "float32",
        "residency": residency,
        "signature": signature,
    }
    points: Any = points_of(shapes, axis_names(found._subject))
    told = [found.explain(**point, **made) for point in points]
    if as_json:
        printed([one.to_dict() for one in told])
    else:
        print("\n\n".join(map(str, told)))
