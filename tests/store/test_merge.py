"""Joined tables: the first decision that covers a point is the one that should."""

from __future__ import annotations

from dataclasses import replace

from tests.store.samples import decision, table
from tilewise.model.decision import Decision, DecisionTable, Range
from tilewise.store.merge import by_age, merge_tables, repaired


def test_same_region_is_replaced():
    """A new decision takes the place of the old one for its region."""
    old, new = decision(5, "blas"), decision(6, "small")

    assert table(new) == merge_tables(table(old), table(new))


def test_other_regions_are_kept():
    """A new decision stands before those of other regions."""
    old, new = decision(5), decision(100)

    assert table(new, old) == merge_tables(table(old), table(new))


def test_later_decision_stays_when_merged_by_age():
    """An old bundle does not revert what was measured since."""
    old = decision(5, "blas", made_utc="2026-01-01T00:00:00Z")
    new = decision(5, "small", made_utc="2026-02-01T00:00:00Z")
    expected = [table(new), table(new)]

    assert expected == [
        by_age(table(old), table(new)),
        by_age(table(new), table(old)),
    ]


def part(low: int, high: int | None, origin: str, made_utc: str = "1") -> Decision:
    """Return one region of a sweep."""
    one = decision(max(low, 1), made_utc=made_utc)
    return replace(one, region=(Range("m", low, high),), origin=origin)


def sweep(low: int, high: int, made_utc: str = "1") -> DecisionTable:
    """Return a sweep over low..high, in two regions, with what lies beyond."""
    return table(
        part(low, 20, "sweep", made_utc),
        part(21, high, "sweep", made_utc),
        part(0, 20, "extrapolated", made_utc),
        part(21, None, "extrapolated", made_utc),
    )


def told(found: DecisionTable) -> list[str]:
    """Return where each decision holds, in order."""
    return [
        f"{d.origin} {d.region[0].low}..{d.region[0].high}" for d in found.decisions
    ]


def test_a_sweep_takes_the_cells_that_it_measured():
    """Cells inside its box go; one that reaches beyond serves before the catch-all."""
    cells = table(decision(30), decision(100), decision(500))
    found = merge_tables(cells, sweep(4, 110))

    assert [
        "sweep 4..20", "sweep 21..110", "cell 64..127", "cell 256..511",
        "extrapolated 0..20", "extrapolated 21..None",
    ] == told(found)  # fmt: skip


def test_a_cell_takes_its_part_of_one_region():
    """Measured again at 30, the sweep's other region keeps 16..20."""
    found = merge_tables(sweep(4, 110), table(decision(30)))

    assert "cell 21..31" == told(found)[1]
    assert ["sweep", "cell", "sweep"] == [found.find((("m", m),)).origin
                                          for m in (20, 30, 32)]  # fmt: skip


def test_a_cell_beyond_a_sweep_leaves_what_was_measured():
    """Measured at 120, the sweep still serves 64..110."""
    found = merge_tables(sweep(4, 110), table(decision(120)))

    assert ["sweep", "cell", "extrapolated"] == [found.find((("m", m),)).origin
                                                 for m in (64, 120, 128)]  # fmt: skip


def test_a_later_sweep_leaves_what_an_earlier_one_measured_elsewhere():
    """Regions outside the new box serve before what the new sweep extrapolates."""
    other = table(part(200, 400, "sweep", "2"), part(0, None, "extrapolated", "2"))
    found = merge_tables(sweep(4, 110), other)

    assert [
        "sweep 200..400", "sweep 4..20", "sweep 21..110", "extrapolated 0..None"
    ] == told(found)  # fmt: skip


def test_by_age_is_the_same_in_both_orders():
    """What was decided later serves, whichever table comes in."""
    early, late = sweep(4, 110, "2026-01"), table(decision(30, made_utc="2026-02"))

    assert by_age(early, late) == by_age(late, early) == merge_tables(early, late)


def test_a_table_joined_to_itself_stays():
    """A bundle that comes back changes nothing."""
    one = merge_tables(
        sweep(4, 110, "2026-01"), table(decision(30, made_utc="2026-02"))
    )

    assert one == by_age(one, one)


def test_a_repair_stays_in_its_place():
    """A winner that is replaced keeps its region and the order."""
    old = sweep(4, 110)
    new = replace(old.decisions[1], made_utc="9")
    found = repaired(old, table(new))

    assert (told(old), new) == (told(found), found.decisions[1])
