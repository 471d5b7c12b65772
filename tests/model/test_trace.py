"""Tracing: what is recorded equals the function, and what can't be is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.expressions import arguments, random_kernel
from tilewise.errors import TraceError, UnsupportedOp
from tilewise.model.expr import Expr, evaluate
from tilewise.model.trace import ArgForm, trace

NAMES = ("x", "w", "b", "c", "r", "alpha")
MUTABLE = [1.0]


def forms(*args: Any, names: tuple[str, ...] = NAMES) -> dict[str, ArgForm]:
    """Return the forms of arguments by name."""
    made = {}
    for name, arg in zip(names, args, strict=False):
        is_array = isinstance(arg, np.ndarray)
        made[name] = (
            ArgForm("array", str(arg.dtype), arg.ndim)
            if is_array
            else ArgForm("scalar", type(arg).__name__)
        )
    return made


def traced(function: Any, *args: Any) -> Expr:
    """Trace a function of (x, w[, b]) at float32 matrices and a row."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    ndims = {"x": 2, "w": 2, "b": 1, "v": 2}
    return trace(
        function,
        {n: ArgForm("array", "float32", ndims[n]) for n in names if n in ndims},
    )


@pytest.mark.parametrize("block", range(10))
def test_random_expressions_equal_the_function_bitwise(block: int) -> None:
    """A traced expression gives the function's value, dtype and shape to the bit."""
    served, seed = 0, 10_000 * block
    while served < 500:
        seed += 1
        function, source = random_kernel(seed)
        args = arguments(seed, ("float32", "float64")[seed % 2])
        with np.errstate(all="ignore"):
            try:
                expected = function(*[np.copy(a)[()] for a in args[:-1]], args[-1])
            except (TypeError, AttributeError, DeprecationWarning):
                continue  # Python or NumPy refuses this one, such as ~ on a float.
            try:
                expr = trace(function, forms(*args))
            except UnsupportedOp as error:
                assert "the power of a run-time integer" in str(error)
                continue
            actual = evaluate(expr, dict(zip(NAMES, args, strict=True)))
        assert expected.dtype == actual.dtype, source
        assert expected.shape == actual.shape, source
        assert expected.tobytes() == actual.tobytes(), source
        served += 1


def test_equal_products_are_one_node() -> None:
    """A product that is written twice is computed once."""

    def swish(x: Any, w: Any) -> Any:
        return (x @ w) * np.tanh(x @ w)

    assert 1 == [n.op for n in traced(swish).nodes].count("matmul")


def test_helpers_are_traced_through() -> None:
    """A helper function's operations are recorded like the function's own."""

    def kernel(x: Any, w: Any, b: Any) -> Any:
        return relu(x @ w + b)

    assert "maximum(((x @ w) + b), 0)" == str(traced(kernel))


def relu(z: Any) -> Any:
    """Be a user's helper."""
    return np.maximum(z, 0)


def test_aliases_see_in_place_writes() -> None:
    """A second name of an intermediate sees what is written through the first."""

    def kernel(x: Any, w: Any) -> Any:
        z = x @ w
        y = z
        y += 1
        return z

    x, w = np.ones((2, 3), "f4"), np.ones((3, 2), "f4")
    assert np.array_equal(kernel(x, w), evaluate(traced(kernel), {"x": x, "w": w}))


def branch(x: Any, w: Any) -> Any:
    """Decide on a value."""
    z = x @ w
    return z if z > 0 else -z


def chain(x: Any, w: Any) -> Any:
    """Chain comparisons."""
    return 0 < x @ w < 1


def builtin_max(x: Any, w: Any) -> Any:
    """Call Python's max."""
    return max(x @ w, 0)


def membership(x: Any, w: Any) -> Any:
    """Search in a list."""
    return x @ w if 0 in (x @ w) else w


def to_array(x: Any, w: Any) -> Any:
    """Convert to an array."""
    return np.asarray(x @ w)


def to_float(x: Any, w: Any) -> Any:
    """Convert to a number."""
    return float(x @ w)


def loop(x: Any, w: Any) -> Any:
    """Loop over rows."""
    return [row * 2 for row in x @ w]


def length(x: Any, w: Any) -> Any:
    """Ask for the length."""
    return (x @ w) / len(x)


def write_argument(x: Any, w: Any) -> Any:
    """Write into an argument."""
    x += 1
    return x @ w


def write_argument_out(x: Any, w: Any) -> Any:
    """Write into an argument by out=."""
    np.add(x, 1, out=x)
    return x @ w


def set_items(x: Any, w: Any) -> Any:
    """Assign to elements."""
    z = x @ w
    z[z < 0] = 0
    return z


def reads_mutable(x: Any, w: Any) -> Any:
    """Read a mutable global."""
    return x @ w * MUTABLE[0]


def two_results(x: Any, w: Any) -> Any:
    """Return two arrays."""
    return x @ w, x


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (branch, "np.where"),
        (chain, "np.where"),
        (builtin_max, "np.where"),
        (membership, "|"),
        (to_array, "argument"),
        (to_float, "np.sqrt"),
        (loop, "whole-array"),
        (length, ".shape[0]"),
        (write_argument, "x + 1"),
        (write_argument_out, "x + 1"),
        (set_items, "np.where"),
        (reads_mutable, "MUTABLE"),
        (two_results, "2 values"),
    ],
)
def test_traps_raise_with_what_to_do(function: Any, word: str) -> None:
    """What would be traced wrongly in silence raises and says what to do instead."""
    with pytest.raises(TraceError) as caught:
        traced(function)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "np.sort(z)", "z.sum()", "np.sum(z)", "np.add.reduce(z)", "z[0]", "z.T",
        "np.cumsum(z, axis=0)", "z.reshape(-1)", "np.add(z, 1, where=True)",
        "z.argmax()", "np.modf(z)[0]", "np.round(z)", "z.mean()",
    ],
)  # fmt: skip
def test_other_operations_are_refused_by_name(expression: str) -> None:
    """An operation that mixes elements or has no row is an UnsupportedOp."""
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x, w):\n    z = x @ w\n    return {expression}", space)
    with pytest.raises(UnsupportedOp):
        traced(space["f"])


def test_the_error_shows_the_users_line_with_a_caret() -> None:
    """The caret stands under the call that cannot be fused."""

    def kernel(x: Any, w: Any) -> Any:
        return 1 + np.sort(x @ w)

    with pytest.raises(UnsupportedOp) as caught:
        traced(kernel)
    _, _, line, caret, *_ = str(caught.value).splitlines()
    assert "np.sort(x @ w)" == line[caret.index("^") : caret.rindex("^") + 1]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x, w: np.einsum("ij,jk->ik", x, w), "Write one product"),
        (lambda x, w: np.tensordot(x, w, 1), "Write one product"),
        (lambda x, w: x @ w + np.outer(x, w), r"as u\[:, None\] \* v"),
        (lambda x, w: (x @ w).sum(), r"kernel\(\.\.\.\)\.sum"),
        (lambda x, w: np.mean(x @ w), r"np\.mean\(kernel\(\.\.\.\), \.\.\.\)"),
        (lambda x, w: np.add.reduce(x @ w), r"np\.add\.reduce\(kernel"),
        (lambda x, w: np.sort(x @ w), "Apply np.sort to the result"),
    ],
    ids=("einsum", "tensordot", "outer", "sum", "mean", "reduce", "sort"),
)
def test_an_error_says_what_to_do_instead(function: Any, told: str) -> None:
    """A product of another spelling, a reduction, and all else have their own hint."""
    with pytest.raises(UnsupportedOp, match=told):
        traced(function)


def test_a_captured_array_is_refused_by_name() -> None:
    """An array from outside could change unseen, so the kernel must take it."""
    weights = np.ones((3, 2))

    def kernel(x: Any, w: Any) -> Any:
        return x @ w + weights

    with pytest.raises(TraceError, match="weights"):
        traced(kernel)


def test_a_static_argument_is_its_value() -> None:
    """A string argument chooses the branch while tracing."""

    def kernel(x: Any, w: Any, kind: str) -> Any:
        z = x @ w
        return np.maximum(z, 0) if kind == "relu" else np.tanh(z)

    form = ArgForm("array", "float32", 2)
    static = ArgForm("static", value="relu")
    expr = trace(kernel, {"x": form, "w": form, "kind": static})
    assert "maximum((x @ w), 0)" == str(expr)


def test_isinstance_sees_an_array() -> None:
    """A function that checks for ndarray takes the branch that a call would take."""

    def kernel(x: Any, w: Any) -> Any:
        return x @ w if isinstance(x, np.ndarray) else None

    assert "x @ w" == str(traced(kernel))
