"""Speed is not bought with digits: errors against float64 beside NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.problems import EPILOGUES, arguments
from tests.engines.cpu.test_engine import ENGINE, problem_of
from tilewise.device.target import cpu_target
from tilewise.model.variant import Variant

CASES = [
    (method, epilogue)
    for epilogue in EPILOGUES
    for method in ("blas_serial", "small", "packed")
    if (method, epilogue) != ("blas_serial", "identity")
]


@pytest.mark.parametrize(("method", "epilogue"), CASES)
def test_the_largest_error_is_within_twice_numpys(method: str, epilogue: str) -> None:
    """float32 at 61x83x300, against the function in float64."""
    args: Any = arguments(epilogue, (61, 83, 300), "float32")
    function, problem = EPILOGUES[epilogue], problem_of(EPILOGUES[epilogue], args)
    variant = Variant("cpu", method)
    artifact = ENGINE.build(variant, problem, cpu_target())
    actual = ENGINE.load(artifact, variant, problem)(*args, np.empty((61, 83), "f4"))
    with np.errstate(over="ignore"):
        exact = function(*(a.astype("f8") for a in args))
        allowed = 2 * np.max(np.abs(function(*args) - exact))
    assert allowed >= np.max(np.abs(actual - exact))


@pytest.mark.parametrize("method", ["small", "packed"])
def test_the_error_of_a_deep_product_is_near_numpys(method: str) -> None:
    """Positive numbers, whose errors all point one way: k = 8192 in float32."""
    random = np.random.default_rng(1)
    x, w = (random.uniform(0.5, 1.5, s).astype("f4") for s in ((9, 8192), (8192, 40)))
    function = EPILOGUES["identity"]
    problem = problem_of(function, (x, w, np.zeros(40, "f4")))
    variant = Variant("cpu", method)
    artifact = ENGINE.build(variant, problem, cpu_target())
    run = ENGINE.load(artifact, variant, problem)
    exact = x.astype("f8") @ w.astype("f8")
    errors = [
        np.max(np.abs(result / exact - 1))
        for result in (run(x, w, None, np.empty((9, 40), "f4")), x @ w)
    ]
    assert errors[0] <= 2 * errors[1]
