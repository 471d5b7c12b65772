"""Arguments and functions that are easy to serve wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, TraceError, tuned_kernel

PINS = ("cpu/blas_serial", "cpu/small")
X = np.random.default_rng(3).standard_normal((6, 6)).astype("f4")
W = np.random.default_rng(4).standard_normal((6, 6)).astype("f4")
WHOLE = np.array([2**31 - 1, -(2**31), 5, 0, 1, 2], "i4")


def pinned(function: Callable[..., Any], pin: str = PINS[0]) -> Any:
    """Return a kernel that runs one variant."""
    kernel = tuned_kernel(function)
    kernel.pin(pin)
    return kernel


def untuned(function: Callable[..., Any]) -> Any:
    """Return a kernel that measures nothing."""
    return tuned_kernel(tune="off")(function)


def same(actual: Any, expected: Any) -> bool:
    """Say whether dtype, shape and values are those expected, to rounding."""
    alike = (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    return alike and np.allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pin", PINS)
def test_two_kernels_with_one_artifact_keep_their_sizes(pin: str) -> None:
    """Kernels that differ in what Python computes before do not share it."""
    rows = pinned(lambda x, w: (x @ w) / x.shape[0], pin)
    depth = pinned(lambda x, w: (x @ w) / x.shape[1], pin)
    x = X[:4]
    assert same(rows(x, W), x @ W / 4)
    assert same(depth(x, W), x @ W / 6)


def test_two_kernels_with_one_artifact_keep_their_factors() -> None:
    """Kernels whose parameters stand in another order do not share a product."""
    first = pinned(lambda a, b: np.maximum(a @ b, 0))
    other = pinned(lambda a, b: np.maximum(b @ a, 0))
    assert same(first(X, W), np.maximum(X @ W, 0))
    assert same(other(X, W), np.maximum(W @ X, 0))


def test_a_transposed_factor_is_not_one_in_fortran_order() -> None:
    """x.T in C order and x in Fortran order look alike and are told apart."""
    turned = pinned(lambda x, w: np.maximum(x.T @ w, 0))
    plain = pinned(lambda x, w: np.maximum(x @ w, 0))
    assert same(turned(X, W), np.maximum(X.T @ W, 0))
    assert same(plain(np.asfortranarray(X), W), np.maximum(X @ W, 0))


@pytest.mark.parametrize("pair", [(1.0, 2.0), (True, 2), (1, 2)])
def test_a_tuple_of_numbers_is_traced_by_type(pair: tuple[Any, Any]) -> None:
    """(1, 2) and (1.0, 2.0) are equal in Python and give other dtypes."""
    kernel = pinned(lambda x, w, t: np.where(x @ w > 0, t[0], t[1]))
    kernel(X, W, (1, 2))
    assert same(kernel(X, W, pair), kernel.reference(X, W, pair))


def test_a_numpy_string_is_traced_by_value() -> None:
    """An np.str_ is static like a str, not a number known by its type."""

    def act(x: Any, w: Any, name: str) -> Any:
        return np.tanh(x @ w) if name == "tanh" else np.maximum(x @ w, 0)

    kernel = pinned(act)
    kernel(X, W, np.str_("relu"))
    assert same(kernel(X, W, np.str_("tanh")), np.tanh(X @ W))


def summed(x: Any, w: Any) -> Any:
    """Add two masks."""
    return ((x @ w > 0) + (x @ w > -1)) * 1.0


def multiplied(x: Any, w: Any) -> Any:
    """Multiply two masks."""
    return ((x @ w > 0) * (x @ w < 1)) + (x @ w)


@pytest.mark.parametrize("function", [summed, multiplied])
def test_masks_add_and_multiply_as_masks(function: Callable[..., Any]) -> None:
    """True + True is True in NumPy, not two."""
    assert same(pinned(function)(X, W), function(X, W))


@pytest.mark.parametrize("number", [3, 2**40, -(2**40), 2**70])
def test_a_python_int_is_compared_without_wrapping(number: int) -> None:
    """An int that int32 cannot hold is compared by its value, as NumPy does."""
    kernel = untuned(lambda x, w, i, n: np.where(i < n, x @ w, 0))
    expected = np.where(WHOLE < number, X @ W, 0)
    assert same(kernel(X, W, WHOLE, number), expected)


def test_a_constant_that_int32_cannot_hold_raises() -> None:
    """NumPy refuses to add 2**40 to int32, and so does a kernel."""
    kernel = untuned(lambda x, w, i: x @ w + (i + 2**40))
    with pytest.raises(OverflowError):
        kernel(X, W, WHOLE)


def test_the_range_of_an_int_is_a_reason() -> None:
    """The reason says why a Python int keeps int32 from being fused."""
    kernel = untuned(lambda x, w, i, n: x @ w + (i + n))
    reason = kernel.explain(X, W, WHOLE, 3).reason
    assert "add takes a Python int whose range in int32 counts" == reason


@pytest.mark.parametrize(
    ("x", "w", "b"),
    [
        (X[0], W, X[:1]),
        (X[0], W, np.ones((1, 1), "f4")),
        (X.reshape(2, 3, 6), W, np.ones((1, 1, 1, 6), "f4")),
        (X[:1], W[0], np.ones((1, 1), "f4")),
    ],
)
def test_an_operand_of_more_axes_gives_its_shape(x: Any, w: Any, b: Any) -> None:
    """An operand with more axes than the product makes the result have them too."""
    kernel = untuned(lambda x, w, b: np.maximum(x @ w + b, 0))
    assert same(kernel(x, w, b), kernel.reference(x, w, b))
    assert "does not fit" in kernel.explain(x, w, b).reason


@pytest.mark.parametrize("number", [2**70, -(2**63)])
def test_an_int_beyond_any_register_is_numpys(number: int) -> None:
    """The first call with a huge Python int gives NumPy's result."""
    kernel = pinned(lambda x, w, a: np.maximum(x @ w * a, 0))
    assert same(kernel(X, W, number), kernel.reference(X, W, number))
    assert same(kernel(X, W, 2), kernel.reference(X, W, 2))


def test_a_huge_int_decides_nothing() -> None:
    """What no variant can serve is not measured, so that it spoils no decision."""
    kernel = tuned_kernel(budget_s=0.05)(lambda x, w, a: np.maximum(x @ w * a, 0))
    kernel(X, W, 2**70)
    assert (0, 1) == (kernel.stats.tunings, kernel.stats.fallbacks)


@pytest.mark.parametrize("b", ["text", None])
def test_an_operand_that_is_no_number_raises_numpys_error(b: Any) -> None:
    """Text or None where a number belongs is NumPy's TypeError."""
    with pytest.raises(TypeError):
        untuned(lambda x, w, b: x @ w + b)(X, W, b)


def test_np_dot_with_a_number_is_numpys() -> None:
    """np.dot multiplies by a number; the reference does so."""
    kernel = untuned(lambda x, w: np.dot(x, w) * 2)
    assert same(kernel(X, 3.0), np.dot(X, 3.0) * 2)


def test_a_one_dimensional_matrix_transpose_raises() -> None:
    """NumPy has no .mT of one axis, and neither has a kernel."""
    with pytest.raises(ValueError, match="matrix transpose"):
        untuned(lambda x, w: x.mT @ w)(X[0], W)


def no_copy(x: Any, w: Any, b: Any) -> Any:
    """Write through an array that astype did not copy."""
    z = x @ w
    y = z.astype(np.float32, copy=False)
    y += b
    return z * 1


def clipped(x: Any, w: Any, b: Any) -> Any:
    """Write into what an unbounded clip copied."""
    z = x @ w
    y = np.clip(z, None, None)
    y += b
    return z * 1


def own_copy(x: Any, w: Any, b: Any) -> Any:
    """Write into a copy of an argument."""
    c = b.copy()
    c *= 2
    d = b.astype(np.float32)
    d += c
    return x @ w + d


def wide(x: Any, w: Any, b: Any) -> Any:
    """Compute in a stated dtype."""
    return np.add(x @ w, b, dtype=np.float64) * np.greater(b, 0, dtype=bool)


@pytest.mark.parametrize("function", [no_copy, clipped, own_copy, wide])
def test_copies_and_dtypes_are_numpys(function: Callable[..., Any]) -> None:
    """What NumPy copies may be written, what it does not copy is shared."""
    assert same(pinned(function)(X, W, W[0]), function(X, W, W[0]))


def test_an_argument_that_astype_did_not_copy_is_not_written() -> None:
    """astype(copy=False) of the argument's own dtype is the argument."""

    def function(x: Any, w: Any, b: Any) -> Any:
        c = b.astype(np.float32, copy=False)
        c *= 2
        return x @ w + c

    with pytest.raises(TraceError, match="writes into its argument"):
        untuned(function)(X, W, W[0])


def test_a_dtype_that_numpy_would_not_cast_to_raises() -> None:
    """np.multiply of floats with dtype=int32 is NumPy's TypeError."""
    with pytest.raises(TypeError):
        untuned(lambda x, w, b: np.multiply(x @ w, b, dtype=np.int32))(X, W, W[0])


def test_a_product_in_a_stated_dtype_is_refused() -> None:
    """np.matmul with dtype= is never computed in another dtype."""
    with pytest.raises(TraceError, match="dtype="):
        untuned(lambda x, w: np.matmul(x, w, dtype=np.float64) + 1)(X, W)


def test_positional_only_parameters_are_fused() -> None:
    """A function with positional-only parameters is traced like any other."""

    def function(x: Any, w: Any, /) -> Any:
        return np.maximum(x @ w, 0)

    assert same(pinned(function)(X, W), function(X, W))


def test_parameters_may_be_called_self_and_args() -> None:
    """No parameter's name collides with tilewise's own."""
    kernel = untuned(lambda self, args, m, k: self @ args * m + k)
    assert same(kernel(self=X, args=W, m=2.0, k=W[0]), X @ W * 2 + W[0])


def test_out_between_the_rows_of_an_input_is_no_overlap() -> None:
    """Columns of one buffer beside each other share no element."""
    buffer = np.zeros((6, 12), "f4")
    x, out = buffer[:, :6], buffer[:, 6:]
    x[:] = X
    pinned(lambda x, w: np.maximum(x @ w, 0))(x, W, out=out)
    assert same(out.copy(), np.maximum(X @ W, 0))


def test_options_beside_the_function_count():
    """`tuned_kernel(f, tune=...)` reads its options as the decorator does."""
    with pytest.raises(ArgumentError, match="tune='never': use one of auto, off"):
        tuned_kernel(lambda x, w: x @ w, tune="never")


def test_a_misspelt_option_is_told_those_that_there_are() -> None:
    """In the decorator's own name."""
    misspelt: dict[str, Any] = {"precise": "fast"}
    told = "tuned_kernel has no option precise: use signature, engines, tune"
    with pytest.raises(ArgumentError, match=told):
        tuned_kernel(**misspelt)


@pytest.mark.parametrize("text", ["", "abc", "(m,k),(k,n)", "(m,q),(q,n)->(m,n)", 3])
def test_a_wrong_signature_fails_where_it_is_written(text: Any) -> None:
    """Not when something is tuned, which may be on another machine."""
    with pytest.raises(ArgumentError, match="signature="):
        tuned_kernel(signature=text)


@pytest.mark.parametrize(
    ("function", "told"), [(lambda *a: 0, r"not \*a"), (lambda **a: 0, r"not \*\*a")]
)
def test_a_variable_parameter_is_written_as_in_the_function(
    function: Any, told: str
) -> None:
    """One star or two."""
    with pytest.raises(ArgumentError, match=told):
        tuned_kernel(function)


def test_an_engine_that_there_is_not() -> None:
    """A misspelt engine is named at the first call, with those that there are."""
    kernel = tuned_kernel(lambda x, w: x @ w, engines=["cpo"], name="misspelt")
    with pytest.raises(ArgumentError, match="engines= names 'cpo': there are cpu, "):
        kernel(np.ones((2, 2)), np.ones((2, 2)))
