"""
Maps of winners: who serves where, over two axes of sizes.

A panel per table shows the regions at fixed sizes of the other axes. Colours are those
of Okabe and Ito, "Color Universal Design" (2008), which colour-blind readers tell
apart; where there are more variants than colours, regions are numbered too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewise.errors import ArgumentError
from tilewise.model.decision import Decision, DecisionTable, Point, Range, TableKey
from tilewise.model.resolution import REFERENCE

__all__ = ["draw"]

COLOURS = (
    "#56B4E9", "#E69F00", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#BBBBBB"
"""The reference's colour."""

TIED, EXTRAPOLATED = "////", "...."
"""The hatches; an extrapolated region is pale too."""

PALE = 0.35
EDGE = "#333333"
Measured = Mapping[TableKey, Iterable[Point]]
"""Points by table."""

COLUMNS = 3
PANEL_INCHES = (4.6, 4.4)
STRIP_INCHES = 1.7
"""The height of a panel with one axis."""


@dataclass(frozen=True, slots=True)
class Panel:
    """
    One table's decisions at fixed sizes, the first that covers a point on top.

    `points` are what was measured for them or at those sizes.
    """

    title: str
    axes: tuple[str, ...]
    decisions: tuple[Decision, ...]
    points: tuple[Point, ...] = ()

    def span(self, decision: Decision, axis: str) -> Range:
        """Return a decision's range along an axis."""
        return next(span for span in decision.region if span.axis == axis)

    def limits(self, axis: str) -> tuple[float, float]:
        """Return the sizes to show: what is bounded or measured, and a bit more."""
        found = [float(dict(point)[axis]) for point in self.points]
        for one in self.decisions:
            span = self.span(one, axis)
            found += [span.low] if span.low else []
            found += [span.high + 1] if span.high else []
        above = [size for size in found if size > 0] or [1.0]
        low, high = min(above), max(above)
        return low / 1.5, high * 1.5


def draw(
    tables: Sequence[DecisionTable],
    path: Path,
    at: str = "",
    measured: Measured = MappingProxyType({}),
) -> None:
    """
    Draw a map of winners to a file, whose ending says the format.

    `at` fixes axes, as in `k=784`; without it the two axes along which most was
    measured are drawn, the others fixed where most was. `measured` are more points
    than those of the decisions. Raises ArgumentError without matplotlib, without
    decisions, or for a file that can't be written.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ArgumentError(
            "--plot needs matplotlib: python -m pip install matplotlib"
        ) from error
    try:
        figure_of(tables, at, measured).savefig(path)
    except (OSError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"can't write {path}: {error}") from error


def figure_of(
    tables: Sequence[DecisionTable],
    at: str = "",
    measured: Measured = MappingProxyType({}),
) -> Any:
    """Return the figure that `draw` writes."""
    from matplotlib.figure import Figure

    fixed = fixed_of(at)
    panels = [panel_of(table, fixed, measured.get(table.key, ())) for table in tables]
    if len({table.key.fingerprint for table in tables}) > 1:
        panels = [
            replace(panel, title=f"{panel.title}\non {table.key.fingerprint}")
            for panel, table in zip(panels, tables, strict=True)
        ]
    panels = [panel for panel in panels if panel.decisions]
    if not panels:
        raise ArgumentError(f"nothing is decided {f'at {at}' if at else 'yet'}")
    names = variants_of(panels)
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    width, height = PANEL_INCHES
    if all(len(panel.axes) < 2 for panel in panels):
        height = STRIP_INCHES
    size = (width * columns, height * rows + 0.5 * len(names) ** 0.5)
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    for place, panel in enumerate(panels):
        drawn(figure.add_subplot(rows, columns, place + 1), panel, names)
    legend(figure, panels, names)
    return figure


def fixed_of(at: str) -> dict[str, int]:
    """Read `k=784,n=16`; raises ArgumentError showing what is not like that."""
    fixed = {}
    for part in filter(None, at.split(",")):
        axis, _, size = part.partition("=")
        if not size.strip().isdecimal():
            raise ArgumentError(f"--at {part!r} is not like k=784")
        fixed[axis.strip()] = int(size)
    return fixed


def panel_of(
    table: DecisionTable, fixed: dict[str, int], measured: Iterable[Point]
) -> Panel:
    """Choose a table's two axes and the sizes of the others, and who serves there."""
    points = [dict(one.point) for one in table.decisions]
    axes = list(points[0]) if points else []
    unknown = set(fixed) - set(axes)
    if unknown:
        raise ArgumentError(f"--at {min(unknown)}: the axes are {', '.join(axes)}")
    variety = {axis: len({point[axis] for point in points}) for axis in axes}
    free = [axis for axis in axes if axis not in fixed]
    most = sorted(free, key=lambda axis: -variety[axis])[:2]
    shown = tuple(axis for axis in axes if axis in most)
    rest = {
        axis: fixed[axis]
        if axis in fixed
        else Counter(point[axis] for point in points).most_common(1)[0][0]
        for axis in axes
        if axis not in shown
    }
    kept = tuple(
        one
        for one in table.decisions
        if all(
            s.high != 0 if s.axis in shown else rest[s.axis] in s for s in one.region
        )  # A log axis has no place for 0.
    )
    place = ", ".join(f"{axis} = {size}" for axis, size in rest.items())
    here = [p for p in measured if all(dict(p)[axis] == rest[axis] for axis in rest)]
    marked = tuple(dict.fromkeys([*(one.point for one in kept), *here]))
    return Panel(title_of(table, place), shown, kept, marked)


def title_of(table: DecisionTable, place: str) -> str:
    """Write what a panel shows, in lines that fit above it."""
    import textwrap

    lines = textwrap.wrap(table.key.label, 52, break_long_words=False)
    return "\n".join([f"{table.kernel_name} at {place}" if place else table.kernel_name,
                      *lines])  # fmt: skip


def variants_of(panels: Sequence[Panel]) -> dict[str, str]:
    """Return a colour per variant that wins somewhere; they repeat after seven."""
    names = sorted({str(one.variant) for panel in panels for one in panel.decisions})
    others = [name for name in names if name != str(REFERENCE)]
    found = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(others)}
    return found | ({str(REFERENCE): GREY} if len(others) < len(names) else {})


def drawn(axes: Any, panel: Panel, names: dict[str, str]) -> None:
    """Draw one panel: regions from the last to the first, then the points."""
    limits = [panel.limits(axis) for axis in panel.axes]
    low_high = limits if len(limits) == 2 else [*limits, (0.0, 1.0)]
    for order, one in enumerate(reversed(panel.decisions)):
        box = [
            clipped(panel.span(one, axis), limit)
            for axis, limit in zip(panel.axes, limits, strict=True)
        ]
        (x0, x1), (y0, y1) = box if len(box) == 2 else [*box, (0.0, 1.0)]
        if x1 > x0 and y1 > y0:
            # Text too is covered by what lies above: all stay below the points.
            layer = 1 + order / len(panel.decisions)
            region(axes, (x0, x1, y0, y1), one, names, layer)
    for axis, name, (low, high) in zip("xy", panel.axes, limits, strict=False):
        getattr(axes, f"set_{axis}scale")("log", base=2)
        getattr(axes, f"set_{axis}lim")(low, high)
        getattr(axes, f"set_{axis}label")(name)
        getattr(axes, f"{axis}axis").set_major_formatter(lambda v, _: f"{v:g}")
    if len(panel.axes) < 2:
        axes.set_ylim(*low_high[1])
        axes.set_yticks([])
    points(axes, panel)
    axes.set_title(panel.title, fontsize=8)
    axes.tick_params(labelsize=8)


def clipped(span: Range, limits: tuple[float, float]) -> tuple[float, float]:
    """Return a range as the interval [low, high + 1) within what is shown."""
    high = math.inf if span.high is None else span.high + 1
    return max(float(span.low), limits[0]), min(high, limits[1])


def region(
    axes: Any,
    box: tuple[float, float, float, float],
    decision: Decision,
    names: dict[str, str],
    layer: float,
) -> None:
    """Draw one region as a rectangle: pale where extrapolated, hatched where tied."""
    from matplotlib.patches import Rectangle

    x0, x1, y0, y1 = box
    name = str(decision.variant)
    is_guess = decision.origin == "extrapolated"
    shape: dict[str, Any] = {
        "xy": (x0, y0),
        "width": x1 - x0,
        "height": y1 - y0,
        "zorder": layer,
    }
    # White below, so that what a pale region covers does not shine through.
    for colour, alpha in (("white", 1.0), (names[name], PALE if is_guess else 1.0)):
        axes.add_patch(Rectangle(**shape, facecolor=colour, alpha=alpha, linewidth=0))
    hatch = EXTRAPOLATED if is_guess else TIED if decision.ties else None
    edge: dict[str, Any] = {
        "edgecolor": EDGE,
        "linewidth": 0.6,
        "alpha": PALE if is_guess else 0.8,
    }
    axes.add_patch(Rectangle(**shape, fill=False, hatch=hatch, **edge))
    if len(names) > len(COLOURS):
        number = str(list(names).index(name) + 1)
        across, up = (0.02, 0.98) if is_guess else (0.3, 0.7)
        axes.text(inside(x0, x1, across), inside(y0, y1, up), number, fontsize=7,
                  ha="center", va="center", zorder=layer,
                  bbox={"facecolor": "white", "alpha": 0.8, "pad": 0.8,
                        "linewidth": 0}, clip_on=True)  # fmt: skip


def inside(low: float, high: float, share: float) -> float:
    """Return where a share of an interval on a log axis ends."""
    return low * (high / low) ** share if low > 0 else low + share * (high - low)


def points(axes: Any, panel: Panel) -> None:
    """Mark what was measured; sizes of zero have no place."""
    found = [[dict(point)[axis] for axis in panel.axes] for point in panel.points]
    kept = [place if len(place) == 2 else [*place, 0.5]
            for place in found if all(place)]  # fmt: skip
    if kept:
        axes.scatter(*zip(*kept, strict=True), s=14, c="black", marker="o",
                     edgecolors="white", linewidths=0.6, zorder=3)  # fmt: skip


def legend(figure: Any, panels: Sequence[Panel], names: dict[str, str]) -> None:
    """Explain colours, hatches, paleness and points below the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    numbered = len(names) > len(COLOURS)
    style: dict[str, Any] = {"edgecolor": EDGE, "linewidth": 0.6}
    handles: list[Any] = [
        Patch(facecolor=colour, label=f"{i}  {name}" if numbered else name, **style)
        for i, (name, colour) in enumerate(names.items(), 1)
    ]
    every = [one for panel in panels for one in panel.decisions]
    for hatch, label, is_there in (
        (TIED, "tied with another", any(one.ties for one in every)),
        (EXTRAPOLATED, "extrapolated",
         any(one.origin == "extrapolated" for one in every)),
    ):  # fmt: skip
        if is_there:
            handles.append(Patch(facecolor="white", hatch=hatch, label=label, **style))
    handles.append(
        Line2D([], [], color="black", marker="o", linestyle="", markersize=4,
               label="measured")
    )  # fmt: skip
    longest = max(len(handle.get_label()) for handle in handles)
    inches = figure.get_figwidth()
    columns = max(1, min(len(handles), int(inches / (0.55 + 0.075 * longest))))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns,
                  fontsize=8, frameon=False)  # fmt: skip
