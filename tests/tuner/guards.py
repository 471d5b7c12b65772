"""
Patch each guard of the tuner away and see that the test for it then fails.

Run as `python -m tests.tuner.guards` from the project's root. Exits with 0 only when
each test passes with its guard and fails without it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tilewise import settings
from tilewise.engines.cpu import engine as cpu_engine
from tilewise.model.decision import Range
from tilewise.runtime import mode, resolve, sweeps, tables
from tilewise.store import decisions
from tilewise.tuner import (
    claims,
    clock,
    expect,
    forecast,
    inputs,
    isolate,
    measure,
    nudge,
    planner,
    regions,
    rule,
    sweep,
    verify,
)


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard: what is patched to take it away, and the test that must then fail."""

    what: str
    module: Any
    name: str
    without: Any
    test: str


def lacking(guard: Callable[..., str]) -> list[Callable[..., str]]:
    """Return the list of verification's guards without one of them."""
    return [kept for kept in verify.GUARDS if kept is not guard]


def overlapping(region: Any, axis: int, last: int) -> Any:
    """Cut a box so that both halves hold the border."""
    lower, upper = regions_halves(region, axis, last)
    span = upper[axis]
    wide = type(span)(span.axis, span.low - 1, span.high)
    return lower, (*upper[:axis], wide, *upper[axis + 1 :])


def careless(step: Callable[..., Any], words: list[str]) -> tuple[str, Any]:
    """Answer without catching anything."""
    return "value", step(*words)


def point_alone(point: Any) -> Any:
    """Return a region of one point."""
    return tuple(Range(axis, size, size) for axis, size in point)


def points_alone(found: Any, ranges: Any, fixed: Any) -> Any:
    """Keep of a sweep only what it measured."""
    whole = (sweeps.placed(decision, ranges, fixed) for decision in found.points)
    return tuple(replace(one, region=point_alone(one.point)) for one in whole)


@functools.cache
def output_of(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the one output of a shape."""
    return inputs.guarded(np.empty(shape, dtype))


def one_output(like: Any, values: Any = None, fill: int = 0xFF) -> Any:
    """Lay out arguments as ever, but hand out one output for all runs."""
    if values is not None:
        return inputs.guarded(like, values, fill)
    return output_of(like.shape, like.dtype)


def naive(expected: Any, actual: Any) -> Any:
    """Compare as `error > bound` does, which NaN passes."""
    units = np.abs(actual - expected.centre) / expected.radius
    return np.nan_to_num(units, posinf=0.0)


regions_halves = regions.halves

GUARDS = (
    Guard("inputs stay as they are", verify, "GUARDS", lacking(verify.changes_input),
          "test_verify.py::test_names_the_fault[input_changer]"),
    Guard("nothing is written outside", verify, "GUARDS",
          lacking(verify.writes_outside),
          "test_verify.py::test_names_the_fault[outside_writer]"),
    Guard("the output is returned", verify, "GUARDS", lacking(verify.returns_another),
          "test_verify.py::test_names_the_fault[input_returner]"),
    Guard("every element is written", verify, "GUARDS",
          lacking(verify.leaves_unwritten),
          "test_verify.py::test_names_the_fault[half_writer]"),
    Guard("contestants get copies", verify, "is_plain", lambda arg: False,
          "test_planner.py::test_the_callers_arguments_are_not_written"),
    Guard("each run has its own output", verify, "guarded", one_output,
          "test_planner.py::test_half_writers_cannot_pass_each_others_check"),
    Guard("who is wrong does not race", verify.Verdict, "ok", True,
          "test_planner.py::test_when_all_fail_the_reference_wins"),
    Guard("what all failed is kept", tables.Tables, "keep",
          lambda self, table, **options: False,
          "../runtime/test_race.py"
          "::test_where_all_fail_the_function_serves_once_and_for_all"),
    Guard("a returned array is new", verify, "RETURNING", [verify.changes_input],
          "test_returned.py::test_what_a_returned_array_hides_is_found[reuser]"),
    Guard("the poison is not zero", verify, "POISONS", (0, 0),
          "test_verify.py::test_refuses_what_adds_to_its_output"),
    Guard("special values are tried", verify, "makers",
          lambda *sizes: inputs.makers(*sizes)[:1],
          "test_verify.py::test_is_aware_of_nan_and_inf"),
    Guard("more than the caller's values are tried", verify, "makers",
          lambda *sizes: (),
          "test_verify.py::test_finds_low_precision_at_large_k"),
    Guard("NaN is no small error", expect.Expected, "error", naive,
          "test_verify.py::test_is_aware_of_nan_and_inf"),
    Guard("the bound grows with k", nudge, "gamma",
          lambda k, unit, random=False: 0 * k,
          "test_verify.py::test_accepts_sums_in_any_order"),
    Guard("a closer look at steps", expect, "REACH", 0.0,
          "test_verify.py::test_accepts_sums_in_any_order"),
    Guard("impossible samples are refused", measure, "possible", lambda taken: True,
          "test_measure.py::test_refuses_impossible_samples"),
    Guard("rounds are shuffled", measure, "shuffled",
          lambda random, count: range(count),
          "test_measure.py::test_orders_differ_between_rounds"),
    Guard("samples are long against the grain", measure, "GRAINS", 0,
          "test_measure.py::test_a_coarse_clock_makes_longer_samples"),
    Guard("the loud are found", measure, "disturbs", lambda after, rested: False,
          "test_measure.py::test_thread_pools_do_not_disturb_the_others"),
    Guard("near-ties are one", rule, "TIE", 0.0,
          "test_measure.py::test_near_ties_agree"),
    Guard("an incumbent has a margin", rule, "beats",
          lambda gain, need: gain.median > 0,
          "test_measure.py::test_three_percent_leave_the_incumbent"),
    Guard("few samples need a large gain", rule, "FEW_MARGIN", 0.0,
          "test_rule.py::test_few_samples_need_a_large_gain"),
    Guard("the hopeless stop early", rule, "far", lambda samples, one, leader: False,
          "test_measure.py::test_hopeless_candidates_stop_early"),
    Guard("load is noted", planner, "CONTENDED", 2.0,
          "test_planner.py::test_marks_decisions_under_load"),
    Guard("the own time is not load", clock, "JIFFIES", -100,
          "test_clock.py::test_single_steps_do_not_count"),
    Guard("a worker catches all", isolate, "answer", careless,
          "test_isolate.py::test_records_how_a_contestant_ends[interrupter]"),
    Guard("a worker has its time", isolate, "BUDGETS", 10**6,
          "test_relay.py::test_an_answer_is_given_time_by_the_budget"),
    Guard("a sweep's rest bounds all", sweep.Sweeper, "left_s", 60.0,
          "../runtime/test_sweeps.py::test_slow_variants_do_not_overrun_a_budget"),
    Guard("nothing is tuned in a worker", isolate, "settle", lambda limits: None,
          "../api/test_bad_variants.py"
          "::test_a_variant_that_calls_a_kernel_forks_one_worker"),
    Guard("load replaces nothing clean", tables, "spoils", lambda stored, table: (),
          "../runtime/test_tables.py"
          "::test_load_does_not_replace_a_clean_decision_on_disk"),
    Guard("figures are of one code", planner, "holding",
          lambda known, entered: {c.variant: c for c in known},
          "test_planner.py::test_figures_of_other_code_are_taken_anew"),
    Guard("other versions are stale", resolve, "stale_fields",
          lambda decision, now: {},
          "../runtime/test_resolve.py::test_a_changed_version_makes_a_decision_stale"),
    Guard("each hardware has its tables", decisions, "table_name",
          lambda key: decisions.digest(key.kernel, key.table),
          "../runtime/test_resolve.py"
          "::test_decisions_of_other_hardware_are_a_miss_that_says_so"),
    Guard("off measures nothing", mode, "current",
          lambda: replace(settings.current(), tune=""),
          "../runtime/test_race.py::test_tuning_off_never_writes"),
    Guard("the library's product competes", cpu_engine, "REASONS",
          cpu_engine.REASONS | {"blas_serial": lambda variant, problem: "no"},
          "../engines/cpu/test_engine.py"
          "::test_the_librarys_product_with_a_pass_always_competes"),
    Guard("a miss has a reason", resolve, "why_undecided", lambda stops: "untuned",
          "../api/test_explain.py::test_a_miss_says_what_the_next_call_does"),
    Guard("a decision holds for a cell", planner, "cell", point_alone,
          "test_planner.py::test_decides_the_log2_cell"),
    Guard("a sweep decides all sizes", sweeps, "drawn", points_alone,
          "../runtime/test_sweeps.py::test_every_size_of_a_range_is_decided"),
    Guard("what lies beyond is served", sweep, "opened", lambda leaves: (),
          "../runtime/test_sweeps.py::test_regions_cover_the_range_once"),
    Guard("one process sweeps", claims, "lock", lambda file: True,
          "test_claims.py::test_one_process_gets_it"),
    Guard("one thread sweeps", claims, "held", mock.MagicMock(),
          "test_claims.py::test_a_folder_that_cannot_be_made_still_serves_threads"),
    Guard("halves do not overlap", regions, "halves", overlapping,
          "test_regions.py::test_leaves_cover_the_space_once"),
    Guard("a cut is taken back late", regions, "LEAST_GAIN", 1.0,
          "test_regions.py::test_finds_a_corner"),
    Guard("rejected is not chosen", forecast, "BARRED", (),
          "test_sweep.py::test_a_rejected_variant_is_not_chosen_there"),
    Guard("the hopeless are not tried", sweep, "FAR", float("inf"),
          "test_sweep.py::test_hopeless_variants_are_not_run_at_large_sizes"),
)  # fmt: skip


def passes(test: str) -> bool:
    """Run one test in this process, quietly; say whether all of it passed."""
    file, _, name = test.partition("::")
    place = f"{Path('tests/tuner', file).resolve()}::{name}"
    for name in [name for name in sys.modules if ".test_" in name]:
        del sys.modules[name]  # what a test module remembers would hide the patch
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", place])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"{place} could not be run: {code!r}")
    return code == pytest.ExitCode.OK


def main() -> int:
    """Try every guard; print a line for each, and return 1 if one proves nothing."""
    failed = 0
    for guard in GUARDS:
        sound = passes(guard.test)
        with mock.patch.object(guard.module, guard.name, guard.without):
            noticed = not passes(guard.test)
        failed += not (sound and noticed)
        state = "ok" if sound and noticed else "PROVES NOTHING" if sound else "FAILS"
        print(f"{state:15}{guard.what}: {guard.test}")
    print(f"{len(GUARDS) - failed} of {len(GUARDS)} guards are proved by their tests")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
