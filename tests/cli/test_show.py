"""The decided regions as a table and as a map of winners."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex

from tilewise import ArgumentError, DecisionStore
from tilewise.cli.plots import COLOURS, GREY, draw, figure_of
from tilewise.cli.show import rows_of, show, told
from tilewise.model.decision import Decision, DecisionTable, Range, TableKey, cell
from tilewise.model.measurement import Candidate, Timing
from tilewise.model.resolution import REFERENCE
from tilewise.model.variant import Variant

NAMES = ("cpu/small", "cpu/packed threads=2", "cuda_cpp/simt block_m=64 block_n=64")
LABEL = "x (m,k) float32, w (k,n) float32, b (n,) float32; host, strict"


def decision(m: int, k: int, name: str = NAMES[0], **parts: Any) -> Decision:
    """Return a decision for the cell of (m, 64, k): twice as fast as the reference."""
    point = (("m", m), ("n", 64), ("k", k))
    variant = Variant.parse(name)
    times = ((REFERENCE, 8.0), (variant, 4.0))
    candidates = tuple(
        Candidate(v, "measured", timing=Timing(us, us, us, 9)) for v, us in times
    )
    made = (datetime.now(UTC) - timedelta(hours=5)).isoformat(timespec="seconds")
    whole: dict[str, Any] = {"made_utc": made, **parts}
    return Decision(cell(point), variant, point, candidates, **whole)


def table(*decisions: Decision, label: str = LABEL) -> DecisionTable:
    """Return a table of decisions."""
    return DecisionTable(
        TableKey("cpu_x", "d", "t", "host", "float32", label), "dense", decisions
    )


def many(count: int) -> DecisionTable:
    """Return a table in which so many variants win."""
    names = [f"cpu/method_{i}" for i in range(count)]
    return table(*(decision(1 << i, 1 << i, name) for i, name in enumerate(names)))


def labels(figure: Any) -> list[str]:
    """Return the texts of a figure's legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_row_says_everything_of_a_region() -> None:
    """Winner, speed-up, expected loss, age with its unit, grade, ties and load."""
    one = decision(100, 8, regret=0.012, ties=(REFERENCE,), contended=True)
    line = told(table(one)).splitlines()[-1]
    assert (
        "  m 64-127, n 64-127, k 8-15  cpu/small  2.00x  1.2%  5 h  "
        "measured, tied, under load"
    ) == line


def test_versions_are_told_once_a_set() -> None:
    """Decisions made with the same versions share a line."""
    old = {"provenance": (("numpy", "2.3.2"), ("python", "3.12"))}
    new = {"provenance": (("numpy", "2.4.0"),)}
    shown = told(
        table(decision(1, 1, **old), decision(2, 2, **old), decision(4, 4, **new))
    )
    assert ["  with numpy 2.3.2", "  with numpy 2.4.0"] == shown.splitlines()[2:4]


def test_a_catch_all_is_extrapolated() -> None:
    """Its region has no bounds, and its grade says how it is known."""
    spans = tuple(Range(axis) for axis in "mnk")
    one = replace(decision(4, 4), region=spans, origin="extrapolated")
    (row,) = rows_of(table(one))
    assert ("any m, any n, any k", "extrapolated") == (row["region"], row["grade"])


@pytest.mark.parametrize("count", [0, 1, 12])
def test_extrapolated_regions_are_counted(count: int) -> None:
    """A sweep leaves many; the measured ones stay in sight."""
    guess = replace(decision(8, 8), origin="extrapolated")
    _, _, _, row, *rest = told(table(decision(4, 4), *[guess] * count)).splitlines()
    expected = f"  and {count} region{'s' * (count > 1)} beyond these, extrapolated"
    assert "m 4-7" in row
    assert [expected] * bool(count) == rest


def test_regions_are_shown_where_all_are_extrapolated() -> None:
    """A table of nothing else is not left empty."""
    guess = replace(decision(8, 8), origin="extrapolated")
    assert "m 8-15" in told(table(guess)).splitlines()[-1]


@pytest.mark.parametrize("count", [1, 7, 12])
def test_the_legend_names_every_winner(count: int) -> None:
    """However many there are; beyond the colours they have numbers too."""
    found = labels(figure_of([many(count)]))
    names = {label.split("  ")[-1] for label in found} - {"measured"}
    assert {f"cpu/method_{i}" for i in range(count)} == names
    assert (count > len(COLOURS)) == found[0].startswith("1  ")


def test_the_legend_explains_ties_and_guesses_where_there_are_some() -> None:
    """Hatches are named only on maps that have them."""
    plain, tied = decision(2, 2), decision(4, 4, ties=(REFERENCE,))
    guess = replace(decision(8, 8), origin="extrapolated")
    assert [NAMES[0], "measured"] == labels(figure_of([table(plain)]))
    expected = [NAMES[0], "tied with another", "extrapolated", "measured"]
    assert expected == labels(figure_of([table(plain, tied, guess)]))


def test_a_region_has_its_variants_colour_and_place() -> None:
    """Sizes 4 to 7 along m reach from 4 to 8; the reference is grey."""
    figure = figure_of([table(decision(5, 40, "reference"))], "n=64")
    (axes,) = figure.axes
    filled = axes.patches[1]
    assert (4, 8) == (filled.get_x(), filled.get_x() + filled.get_width())
    assert (32, 64) == (filled.get_y(), filled.get_y() + filled.get_height())
    assert GREY.lower() == to_hex(filled.get_facecolor())


def test_each_table_has_a_panel_and_nothing_is_cut() -> None:
    """Titles, labels and the legend lie inside the picture, long ones too."""
    label = f"self_w (k,n) float32 in Fortran order, {LABEL}"
    tables = [table(*(decision(1 << i, 1 << i, NAMES[i % 3]) for i in range(9)),
                    label=label[: 40 * i]) for i in range(1, 5)]  # fmt: skip
    figure = figure_of(tables)
    figure.canvas.draw()
    box, whole = figure.get_tightbbox(), figure.bbox_inches
    assert 4 == len(figure.axes)
    assert whole.x0 <= box.x0
    assert whole.y0 <= box.y0
    assert box.x1 <= whole.x1
    assert box.y1 <= whole.y1


def test_panels_of_several_machines_name_them() -> None:
    """They would look alike; with one machine nothing is said."""
    one = table(decision(2, 2))
    other = replace(one, key=replace(one.key, fingerprint="cpu_y"))
    titles = [axes.get_title() for axes in figure_of([one, other]).axes]
    assert ["on cpu_x", "on cpu_y"] == [title.splitlines()[-1] for title in titles]
    assert "cpu_x" not in figure_of([one]).axes[0].get_title()


def test_the_other_axes_are_fixed_where_most_is_or_as_asked() -> None:
    """A map at k=8 shows what serves there and says so."""
    tables = [table(decision(2, 8), decision(4, 8), decision(8, 64, NAMES[1]))]
    assert [NAMES[0], "measured"] == labels(figure_of(tables, "k=8"))
    assert [NAMES[1], "measured"] == labels(figure_of(tables, "k=100"))
    assert "dense at k = 100" in figure_of(tables, "k=100").axes[0].get_title()


def test_what_was_measured_at_the_fixed_sizes_is_marked() -> None:
    """A sweep measures more than a point a region; those of other k are elsewhere."""
    one = table(decision(4, 8))
    points = [(("m", m), ("n", 64), ("k", k)) for m, k in ((4, 8), (6, 8), (5, 9))]
    (axes,) = figure_of([one], "k=8", {one.key: points}).axes
    (marks,) = axes.collections
    assert [[4, 64], [6, 64]] == marks.get_offsets().tolist()


def test_one_axis_is_a_strip() -> None:
    """A kernel of one axis has a map too."""
    point = (("n_samples", 1000),)
    one = replace(decision(1, 1), region=cell(point), point=point)
    (axes,) = figure_of([table(one)]).axes
    assert ("n_samples", "") == (axes.get_xlabel(), axes.get_ylabel())


@pytest.mark.parametrize(
    ("at", "told"),
    [("k", "is not like"), ("q=4", "the axes are m, n, k"), ("k=9999", "at k=9999")],
)
def test_a_place_that_is_not_there_is_refused(
    tmp_path: Path, at: str, told: str
) -> None:
    """One line says what it should be."""
    with pytest.raises(ArgumentError, match=told):
        draw([table(decision(4, 4))], tmp_path / "map.png", at)


@pytest.mark.parametrize("name", ["map.txt", "none/map.png"])
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    """For its ending or its directory."""
    with pytest.raises(ArgumentError, match="can't write"):
        draw([table(decision(4, 4))], tmp_path / name)


def test_a_map_is_a_picture(tmp_path: Path) -> None:
    """The file's ending says the format."""
    for name, start in (("map.png", b"\x89PNG"), ("map.svg", b"<?xml")):
        draw([table(decision(4, 4))], tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


def test_without_matplotlib_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an extra, not a dependency."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ArgumentError, match="pip install matplotlib"):
        draw([table(decision(4, 4))], tmp_path / "map.png")


def test_regions_that_programs_stated_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`show` says that they are there, and how to read them."""
    regions = [{"n_max": None, "algorithm": "merge"}]
    store = DecisionStore.load_or_create()
    assert store.update("sort of show", axes=["n"], regions=regions)
    show()
    store.evict("sort of show")
    assert "sort of show" in capsys.readouterr().out


def test_regions_that_a_program_stated_are_shown_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Hardware, age and each region as it was written, also as JSON."""
    regions = [{"n_max": 9, "algorithm": "insertion"}, {"algorithm": "merge"}]
    store = DecisionStore.load_or_create()
    assert store.update("sorting", axes=["n"], regions=regions)
    show("sorting")
    show("sorting", as_json=True)
    store.evict("sorting")
    told, _, as_json = capsys.readouterr().out.partition("\n[")
    assert "sorting: regions by n, as a program stated them" in told
    assert "  n_max=9, algorithm=insertion\n  algorithm=merge" in told
    assert regions == [row["region"] for row in json.loads(f"[{as_json}")]


def test_a_misspelt_name_has_similar_ones() -> None:
    """Those of kernels and of regions that programs stated."""
    store = DecisionStore.load_or_create()
    assert store.update("gauss", axes=["n"], regions=[{"algorithm": "merge"}])
    with pytest.raises(ArgumentError, match="named 'gausss'; similar names are gauss"):
        show("gausss")
    with pytest.raises(ArgumentError, match=r"named 'other'$"):
        show("other")
    store.evict("gauss")
