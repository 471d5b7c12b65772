"""A question put as a case for the tuner; loaded only when something is measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.device.views import device_of, is_device_array
from tilewise.model.axes import Posed
from tilewise.model.problem import Problem, varied
from tilewise.runtime.on_device import reference_on
from tilewise.runtime.question import Question
from tilewise.tuner.bench import Bench, on_host_alike
from tilewise.tuner.contest import Case, Part

__all__ = ["case_of"]


def case_of(question: Question, problem: Posed) -> Case:
    """Put a question as a case, its device arrays as host arrays for a bench."""
    subject = question.subject
    case = Case(
        args=question.args,
        reference=subject.function,
        wider=None,
        shape=(),
        dtype=np.dtype(np.uint8),
        depth=0,
        tolerance=subject.options.tolerance,
        point=problem.point,
        bound=bool(problem.constants),
        fills=isinstance(problem, Problem),
    )
    if isinstance(problem, Problem):
        dtype = np.dtype(problem.spec.dtype)
        case = replace(
            case, shape=problem.shape, dtype=dtype, depth=problem.k,
            part=part_of(problem),
        )  # fmt: skip
    return on_bench(case) if problem.residency == "device" else case


def part_of(problem: Problem) -> Part | None:
    """
    Return what takes the arguments of some rows and columns of a result.

    None where an argument is needed in two ways, as in x @ x, or is folded.
    """
    spec, wanted = problem.spec, defaultdict[int, set[tuple[int, int]]](set)
    if problem.fold:
        return None
    x, w = (int(factor.view == "T") for factor in (spec.x, spec.w))
    wanted[spec.x.position].add((x, -1))
    wanted[spec.w.position].add((-1, 1 - w))
    for operand, form in zip(spec.operands, problem.forms[2:], strict=True):
        wanted[operand.position].add(varied(operand, form, False))
    if any(len(axes) > 1 for axes in wanted.values()):
        return None
    axes = {at: found for at, (found,) in wanted.items()}

    def part(args: Sequence[Any], *place: Any) -> tuple[Any, ...]:
        own = list(args)
        for at, found in axes.items():
            for chosen, axis in zip(place, found, strict=True):
                if axis >= 0:
                    own[at] = np.take(own[at], chosen, axis)
        return tuple(own)

    return part


def on_bench(case: Case) -> Case:
    """Return a case of device arrays as one of host arrays that runs on a bench."""
    device = device_of(next(arg for arg in case.args if is_device_array(arg)))
    args = tuple(
        on_host_alike(device, arg) if is_device_array(arg) else arg for arg in case.args
    )
    return replace(case, args=args, bench=Bench(device, reference_on(case.reference)))
