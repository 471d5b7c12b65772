"""A question put as a case for the tuner; loaded only when something is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewise.device.views import device_of, is_device_array
from tilewise.model.axes import Posed
from tilewise.model.problem import Problem
from tilewise.runtime.on_device import reference_on
from tilewise.runtime.question import Question
from tilewise.tuner.bench import Bench, on_host_alike
from tilewise.tuner.contest import Case

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
        case = replace(case, shape=problem.shape, dtype=dtype, depth=problem.k)
    return on_bench(case) if problem.residency == "device" else case


def on_bench(case: Case) -> Case:
    """Return a case of device arrays as one of host arrays that runs on a bench."""
    device = device_of(next(arg for arg in case.args if is_device_array(arg)))
    args = tuple(
        on_host_alike(device, arg) if is_device_array(arg) else arg for arg in case.args
    )
    return replace(case, args=args, bench=Bench(device, reference_on(case.reference)))
