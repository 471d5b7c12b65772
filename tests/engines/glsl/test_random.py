"""Random epilogues pass the verification that every variant must pass in tuning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.expressions import arguments, random_kernel
from tests.opengl import ENGINE, VARIANTS, problem_of
from tilewise.device.gl import gl_target
from tilewise.errors import UnsupportedOp
from tilewise.model.variant import Variant
from tilewise.tuner.contest import Case
from tilewise.tuner.verify import verify


def posed(seed: int) -> tuple[Case, Any] | None:
    """Return a random kernel's case and problem; None for what NumPy refuses."""
    function, _ = random_kernel(seed)
    args = tuple(arguments(seed, "float32", (9, 8, 7)))
    with np.errstate(all="ignore"):
        try:
            result = np.asarray(function(*map(np.copy, args[:-1]), args[-1]))
            problem = problem_of(function, *args)
        except (TypeError, ValueError, AttributeError, DeprecationWarning):
            return None
        except UnsupportedOp:
            return None
    return Case(args, function, None, result.shape, result.dtype, 7), problem


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("variant", VARIANTS)
def test_random_kernels_are_verified(variant: str):
    """Eight kernels of each variant, on all trials of a tuning."""
    chosen, verdicts = Variant.parse(variant), {}
    seed = 100 * VARIANTS.index(variant)
    while len(verdicts) < 8:
        seed += 1
        found = posed(seed)
        if found is None or ENGINE.rejects(chosen, found[1], gl_target()):
            continue
        case, problem = found
        artifact = ENGINE.build(chosen, problem, gl_target())
        verdict = verify(ENGINE.load(artifact, chosen, problem), case)
        verdicts[seed] = verdict.reason or verdict.status

    assert {"right"} == set(verdicts.values()), verdicts
