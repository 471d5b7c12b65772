"""What the decorators of axes and variants refuse, each saying what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, tuned_kernel


def kernel(**options: Any) -> Any:
    """Return an axes kernel of two parameters."""

    def total(x: Any, bins: int) -> Any:
        return x.sum() + bins

    return tuned_kernel(**{"axes": {"n": lambda x: x.size}} | options)(total)


def plain(x: Any, bins: int) -> Any:
    """Be a variant without parameters."""
    return x.sum() + bins


def blocked(x: Any, bins: int, *, block: int) -> Any:
    """Be a variant with one."""
    return x.sum() + bins


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"axes": ["n"]}, "give a mapping of names to functions"),
        ({"axes": {}}, "give a mapping"),
        ({"axes": {"n": 3}}, r"axes\['n'\] is 3: give a function"),
        ({"axes": {"n s": len}}, "give an identifier"),
        ({"axes": {"n": lambda z: 1}}, "takes z: let it take some .* x, bins"),
        ({"signature": "(n),()->()"}, "signature= is for products"),
        ({"make_inputs": 3}, "give a function of the sizes"),
        ({"axes": None, "make_inputs": len}, "with axes="),
    ],
    ids=range(8),
)
def test_wrong_axes(options: Any, word: str) -> None:
    """The decorator says what axes are."""
    with pytest.raises(ArgumentError, match=word):
        kernel(**options)


@pytest.mark.parametrize(
    ("function", "options", "word"),
    [
        (plain, {"where": "gpu"}, "where='gpu': use one of 'host', 'device', 'any'"),
        (blocked, {"block": []}, "give at least one value"),
        (blocked, {"block": 3}, "block=3: give a list"),
        (blocked, {"block": "16"}, "give a list"),
        (blocked, {"block": [None]}, "block has None: values are numbers, bools or"),
        (blocked, {"block": ["a b"]}, "values are numbers, bools or words"),
        (blocked, {"block": [1 << 63]}, "values are numbers, bools or words"),
        (blocked, {"block": [np.nan]}, "values are numbers, bools or words"),
        (plain, {"block": [1]}, r"can't be called as plain\(x, bins, block=\)"),
        (blocked, {}, r"can't be called as blocked\(x, bins\): missing"),
        (plain, {"valid": 3}, "valid=3 of plain: give a function"),
        (blocked, {"block": [1], "valid": lambda m: m}, "takes m: .* block, n"),
        (lambda x, bins: x, {}, "decorate a def with a name"),
    ],
    ids=range(13),
)
def test_wrong_variants(function: Any, options: Any, word: str) -> None:
    """The decorator says what a variant is."""
    with pytest.raises(ArgumentError, match=word):
        kernel().variant(**options)(function)


def test_a_name_is_given_once() -> None:
    """Two variants of one name would share their figures."""
    one = kernel()
    one.variant(plain)
    with pytest.raises(ArgumentError, match="has a variant plain already"):
        one.variant(plain)


def test_sizes_without_make_inputs() -> None:
    """Tuning by sizes says what it needs."""
    with pytest.raises(ArgumentError, match="has no make_inputs="):
        kernel().tune(sizes=[{"n": 3}])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda n: (np.ones(4), 1), "total makes n=4 for n=50"),
        (lambda n: (np.ones(n), 1, 2), "total: too many positional arguments"),
    ],
    ids=["other sizes", "other arguments"],
)
def test_arguments_of_other_sizes_than_asked(made: Any, told: str) -> None:
    """What would be remembered for sizes that were never measured is refused."""
    with pytest.raises(ArgumentError, match=told):
        kernel(make_inputs=made).explain(n=50)


def test_arguments_of_about_the_sizes_asked() -> None:
    """Sizes that arguments can't have are rounded, as those that are squares."""
    made = kernel(make_inputs=lambda n: (np.ones(round(n**0.5) ** 2), 1))
    assert "reference" == str(made.explain(n=50).variant)


def needs_dim(n: int) -> Any:
    """Fail to make arguments."""
    raise KeyError("dim")


def test_what_make_inputs_raises_names_it() -> None:
    """A mistake in it is told as one, with how it is called."""
    told = r"total raised KeyError: 'dim'; it is called as "
    with pytest.raises(ArgumentError, match=rf"{told}make_inputs\(n=...\)"):
        kernel(make_inputs=needs_dim).explain(n=50)


def test_what_an_axis_raises_names_the_axis() -> None:
    """A call that an axis can't be computed for says which."""
    with pytest.raises(ArgumentError, match="the axis n raised AttributeError: 'str'"):
        kernel()("abc", 1)


def test_sizes_may_be_tuples() -> None:
    """tune(sizes=) takes what the decorator's sizes= takes."""
    made = kernel(make_inputs=lambda n: (np.ones(n), 1))
    (found,) = made.tune(sizes=[(3,)]).resolutions
    assert (("n", 3),) == found.problem.point


def test_sizes_of_other_axes() -> None:
    """Sizes name the kernel's axes."""
    with pytest.raises(ArgumentError, match="give its arguments, or n="):
        kernel().explain(m=1, n=2)


def test_a_callable_with_a_name_is_a_variant() -> None:
    """Kernels of CuPy, say, are objects with a name."""

    class Elementwise:
        name = "elementwise"

        def __call__(self, x: Any, bins: int) -> Any:
            return x.sum() + bins

    one = kernel()
    one.variant(Elementwise())
    assert "user/elementwise" in map(str, one._subject.user.variants())


def test_an_axis_that_no_table_holds() -> None:
    """A size beyond 63 bits is refused by name before anything is measured."""

    @tuned_kernel(axes={"size": lambda x: 1 << 63}, name="beyond")
    def beyond(x: Any) -> Any:
        return x

    with pytest.raises(ArgumentError, match="the axis size gives 9223372036854775808"):
        beyond(np.ones(3))


@pytest.mark.parametrize("tolerance", ["x", -1, (1,), (0, -1), np.nan, {}], ids=repr)
def test_wrong_tolerances(tolerance: Any) -> None:
    """What can't say which results are right is refused where it is written."""
    with pytest.raises(ArgumentError, match="a pair"):
        tuned_kernel(tolerance=tolerance)


@pytest.mark.parametrize(
    "tolerance", [0, 1e-3, (1, 0), [0, np.float32(1)], np.allclose]
)
def test_right_tolerances(tolerance: Any) -> None:
    """A number, a pair or a comparison serves."""
    one = kernel(tolerance=tolerance)
    assert 4.0 == one(np.ones(3), 1)
