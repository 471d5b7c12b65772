"""Matching: one product and its epilogue, canonical, with a digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.expressions import arguments, random_kernel
from tests.model.test_trace import NAMES, forms
from tilewise.errors import TraceError, UnsupportedOp
from tilewise.model.ops import lookup
from tilewise.model.problem import scalar_values, viewed_array
from tilewise.model.spec import Spec, match
from tilewise.model.trace import ArgForm, trace


def spec_of(function: Callable[..., Any], **more: ArgForm) -> Spec:
    """Match a function of (x, w) and more at float32 matrices."""
    matrix = ArgForm("array", "float32", 2)
    named = {"x": matrix, "w": matrix, **more}
    return match(trace(function, named), tuple(named))


def compute(spec: Spec, args: list[Any]) -> Any:
    """Compute a spec with NumPy, step by step."""
    x, w = (viewed_array(f, args[f.position]) for f in (spec.x, spec.w))
    operands = [viewed_array(o, args[o.position]) for o in spec.operands]
    scalars, values = scalar_values(spec, args), []
    for node in spec.nodes:
        parts = [values[i] for i in node.args]
        if node.op == "product":
            values.append(np.matmul(x, w))
        elif node.op in ("operand", "scalar"):
            values.append((operands if node.op == "operand" else scalars)[node.value])
        elif node.op == "const":
            values.append(node.value)
        elif node.op == "astype":
            values.append(np.asarray(parts[0]).astype(node.dtype))
        else:
            values.append(lookup(node.op).call(*parts))
    return values[-1]


def test_a_spec_computes_what_the_function_does() -> None:
    """The canonical steps give the function's values at 300 random expressions."""
    served, seed = 0, 900_000
    while served < 300:
        seed += 1
        function, source = random_kernel(seed)
        args = arguments(seed, "float64")
        with np.errstate(all="ignore"):
            try:
                expected = function(*[np.copy(a)[()] for a in args[:-1]], args[-1])
                spec = match(trace(function, forms(*args)), NAMES)
            except (TypeError, AttributeError, DeprecationWarning, UnsupportedOp):
                continue
            actual = compute(spec, args)
        assert expected.dtype == np.dtype(spec.dtype), source
        assert np.array_equal(expected, actual, equal_nan=True), source
        served += 1


def test_commuting_operands_have_one_digest() -> None:
    """Adding b to x @ w and x @ w to b are the same spec."""
    row = ArgForm("array", "float32", 1)
    one = spec_of(lambda x, w, b: x @ w + b, b=row)
    other = spec_of(lambda x, w, b: b + x @ w, b=row)
    assert one.digest == other.digest


def test_names_take_no_part_in_the_digest() -> None:
    """Parameters that are called otherwise give the same digest."""
    scalar = ArgForm("scalar", "float")
    one = spec_of(lambda x, w, alpha: x @ w * (alpha + 1), alpha=scalar)
    matrix = ArgForm("array", "float32", 2)
    named = {"a": matrix, "b": matrix, "beta": scalar}
    other = match(trace(lambda a, b, beta: a @ b * (beta + 1), named), tuple(named))
    assert one.digest == other.digest


@pytest.mark.parametrize(
    "other",
    [
        lambda x, w: np.maximum(x @ w, 1),
        lambda x, w: np.maximum(x @ w, 0.0),
        lambda x, w: np.maximum(x @ w.T, 0),
        lambda x, w: np.maximum(w @ x, 0),
        lambda x, w: np.minimum(x @ w, 0),
        lambda x, w: np.maximum(x @ w, np.float32(0)),
        lambda x, w: np.maximum(x @ w, -0.0),
    ],
    ids=("value", "type", "transpose", "order", "op", "strong", "sign"),
)
def test_what_computes_otherwise_has_another_digest(other: Any) -> None:
    """A changed constant, type, order or operation changes the digest."""
    assert spec_of(lambda x, w: np.maximum(x @ w, 0)).digest != spec_of(other).digest


def test_nothing_is_reassociated() -> None:
    """(z + 1) + 2 is not z + 3."""
    one = spec_of(lambda x, w: (x @ w + 1) + 2)
    other = spec_of(lambda x, w: x @ w + 3)
    assert one.digest != other.digest


def test_numbers_are_hoisted() -> None:
    """What no array takes part in is one scalar of the spec."""
    spec = spec_of(
        lambda x, w, a: x @ w * (a / x.shape[1] ** 0.5), a=ArgForm("scalar", "float")
    )
    x, w = np.ones((2, 4), "f4"), np.ones((4, 2), "f4")
    assert [1.5] == scalar_values(spec, (x, w, 3.0))


def test_constants_are_folded_as_numpy_folds_them() -> None:
    """np.sqrt(2 / np.pi) is a float64 constant and widens the result."""
    spec = spec_of(lambda x, w: x @ w * np.sqrt(2 / np.pi))
    assert "float64" == spec.dtype


def test_two_products_are_refused_by_name() -> None:
    """The error writes both products."""
    with pytest.raises(TraceError, match="x @ w, w @ x"):
        spec_of(lambda x, w: x @ w + w @ x)


def test_no_product_is_refused() -> None:
    """A function without a product is no kernel."""
    with pytest.raises(TraceError, match="no matrix product"):
        spec_of(lambda x, w: x + w)


def test_a_computed_factor_is_refused() -> None:
    """Work before the product is named in the error."""
    with pytest.raises(TraceError, match="maximum"):
        spec_of(lambda x, w: np.maximum(x, 0) @ w)


def test_a_deep_expression_is_matched_without_recursion() -> None:
    """Five thousand steps are no deeper than one."""

    def kernel(x: Any, w: Any) -> Any:
        z = x @ w
        for _ in range(5000):
            z = z + 1
        return z

    assert 5002 == len(spec_of(kernel).nodes)


def test_doubling_is_linear() -> None:
    """An expression whose written tree has 2^60 leaves is matched at once."""

    def kernel(x: Any, w: Any) -> Any:
        z = x @ w
        for _ in range(60):
            z = z * z
        return z

    assert 61 == len(spec_of(kernel).nodes)
