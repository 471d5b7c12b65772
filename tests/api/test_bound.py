"""A bound kernel: constants copied, forms fixed, nothing allocated with out=."""

from __future__ import annotations

import pickle
import re
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, EngineError, tuned_kernel


@tuned_kernel(budget_s=0.05)
def dense(x: Any, w: Any, b: Any) -> Any:
    """Be the kernel that is bound."""
    return np.maximum(x @ w + b, 0)


def inputs(m: int = 8, n: int = 6, k: int = 5) -> list[Any]:
    """Return (x, w, b)."""
    rng = np.random.default_rng(2)
    return [rng.standard_normal(s).astype("f4") for s in ((m, k), (k, n), (n,))]


def close(actual: Any, expected: Any) -> bool:
    """Compare within float32's last digits."""
    return bool(np.allclose(actual, expected, rtol=1e-5, atol=1e-5))


def test_a_bound_kernel_gives_the_functions_values() -> None:
    """bound(x) is dense(x, w, b)."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    assert close(bound(x), dense.reference(x, w, b))


def test_later_writes_to_a_constant_are_not_seen() -> None:
    """Constants are copies."""
    x, w, b = inputs()
    expected = dense.reference(x, w, b)
    bound = dense.bind(x, w, b, constant=("w", "b"))
    w[:] = 0
    assert close(bound(x), expected)


def test_update_replaces_a_constant() -> None:
    """update(w=) is seen by the next call."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    bound.update(w=2 * w)
    assert close(bound(x), dense.reference(x, 2 * w, b))


def test_two_bound_kernels_do_not_mix() -> None:
    """A, B, A with different data and sizes gives each its own result."""
    first, second = inputs(8, 6, 5), inputs(3, 9, 7)
    one = dense.bind(*first, constant=("w", "b"))
    other = dense.bind(*second, constant=("w", "b"))
    for bound, args in ((one, first), (other, second), (one, first)):
        assert close(bound(args[0]), dense.reference(*args))


def test_a_new_array_comes_back_each_time() -> None:
    """Results of two calls do not share memory."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    assert not np.shares_memory(bound(x), bound(x))


def test_out_is_filled() -> None:
    """bound(x, out=y) returns y."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    out = np.empty((8, 6), np.float32)
    assert bound(x, out=out) is out
    assert close(out, dense.reference(x, w, b))


def test_a_wrong_shape_names_both() -> None:
    """The error has the bound form and the given one."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    with pytest.raises(ArgumentError, match=r"\(8, 5\).*\(7, 5\)"):
        bound(x[:7])


def test_a_wrong_dtype_names_both() -> None:
    """The error has the bound dtype and the given one."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    with pytest.raises(ArgumentError, match=r"float32.*float64"):
        bound(x.astype("f8"))


def test_release_ends_it() -> None:
    """A call after release() says so."""
    x, w, b = inputs()
    with dense.bind(x, w, b, constant=("w", "b")) as bound:
        bound(x)
    with pytest.raises(EngineError, match="released"):
        bound(x)


def test_an_unknown_constant_is_named() -> None:
    """The error lists the parameters."""
    with pytest.raises(ArgumentError, match="no parameter v"):
        dense.bind(*inputs(), constant=("v",))


def test_bound_kernels_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than the limit is refused, and release() makes room."""
    from tilewise.api import bound

    monkeypatch.setattr(bound, "LIMIT", len(bound.ALIVE) + 1)
    first = dense.bind(*inputs(), constant=("w",))
    with pytest.raises(EngineError, match="release"):
        dense.bind(*inputs(), constant=("w",))
    first.release()
    dense.bind(*inputs(), constant=("w",)).release()


def test_a_static_argument_is_bound_by_value() -> None:
    """A bound kernel never runs another string's branch."""

    def act(x: Any, w: Any, name: str) -> Any:
        return np.tanh(x @ w) if name == "tanh" else np.maximum(x @ w, 0)

    x, w, _ = inputs()
    bound = tuned_kernel(tune="off")(act).bind(x, w, "relu", constant="w")
    with pytest.raises(ArgumentError, match="name was bound as str 'relu'"):
        bound(x, "tanh")


def test_a_masked_constant_keeps_its_mask() -> None:
    """A bound masked array gives what the function gives."""
    x, w, b = inputs()
    masked: Any = np.ma.masked_greater(b, 0)
    bound = tuned_kernel(tune="off")(dense.reference).bind(
        x, w, masked, constant=("b",)
    )
    assert np.array_equal(bound(x, w).mask, dense.reference(x, w, masked).mask)


def test_a_list_constant_is_a_copy() -> None:
    """Later writes to a bound list are not seen."""
    x, w, b = inputs()
    values = b.tolist()
    expected = dense.reference(x, w, values)
    bound = tuned_kernel(tune="off")(dense.reference).bind(
        x, w, values, constant=("b",)
    )
    values[0] = 1e6
    assert close(bound(x, w), expected)


def test_constant_may_be_any_iterable() -> None:
    """A generator of names binds what it names."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=(name for name in ("w", "b")))  # type: ignore[arg-type]
    assert close(bound(x), dense.reference(x, w, b))


def test_a_released_kernel_is_not_updated() -> None:
    """update() and `with` after release() name the fault."""
    x, w, b = inputs()
    bound = dense.bind(x, w, b, constant=("w", "b"))
    bound.release()
    with pytest.raises(EngineError, match="released"):
        bound.update(w=w)
    with pytest.raises(EngineError, match="released"), bound:
        pass


def test_a_bound_huge_int_is_numpys() -> None:
    """An int that no register holds is served by the function."""
    x, w, _ = inputs()
    bound = dense.bind(x, w, 2, constant=("w",))
    out = np.empty((8, 6), "f4")
    assert close(bound(x, 2**70), dense.reference(x, w, 2**70))
    assert close(bound(x, 2**70, out=out), dense.reference(x, w, 2**70))


def packed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often w is packed, in the list that is returned."""
    from tilewise.engines.cpu import runs

    packings: list[int] = []
    pack = runs.packed_by_numpy

    def counted(w: Any, block: Any) -> Any:
        packings.append(1)
        return pack(w, block)

    monkeypatch.setattr(runs, "packed_by_numpy", counted)
    return packings


@pytest.mark.parametrize("shape", [(8, 5), (5,), (2, 3, 5)], ids=str)
def test_a_constant_w_is_packed_once(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls run on the panels made at bind, also those of a batch or a vector."""
    _, w, b = inputs()
    x = np.random.default_rng(3).standard_normal(shape).astype("f4")
    kernel = tuned_kernel(dense.reference)
    kernel.pin("cpu/packed threads=1")
    packings = packed(monkeypatch)
    bound = kernel.bind(x, w, b, constant=("w", "b"))
    results = [bound(x), bound(2 * x), bound(x)]
    assert 1 == len(packings)
    assert all(
        close(result, dense.reference(arg, w, b))
        for result, arg in zip(results, (x, 2 * x, x), strict=True)
    )


def test_an_update_packs_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The panels are those of the new w."""
    x, w, b = inputs()
    kernel = tuned_kernel(dense.reference)
    kernel.pin("cpu/packed threads=1")
    packings = packed(monkeypatch)
    bound = kernel.bind(x, w, b, constant=("w", "b"))
    bound.update(w=2 * w)
    assert close(bound(x), dense.reference(x, 2 * w, b))
    assert 2 == len(packings)


def pinned() -> Any:
    """Return a fresh kernel that runs compiled code."""
    kernel = tuned_kernel(dense.reference)
    kernel.pin("cpu/small")
    return kernel


BAD_OUT = {
    "(8, 7)": lambda x: np.empty((8, 7), "f4"),
    "float64": lambda x: np.empty((8, 6), "f8"),
    "read-only": lambda x: np.broadcast_to(np.float32(0), (8, 6)),
    "MaskedArray": lambda x: np.ma.masked_array(np.empty((8, 6), "f4")),
    "overlaps x": lambda x: np.lib.stride_tricks.as_strided(x, (8, 6)),
}


@pytest.mark.parametrize("told", BAD_OUT)
def test_a_bad_out_is_named(told: str) -> None:
    """The error says what is wrong, and nothing is counted or written."""
    x, w, b = inputs()
    kernel = pinned()
    bound = kernel.bind(x, w, b, constant=("w", "b"))
    before = x.copy()
    with pytest.raises(ArgumentError, match=re.escape(told)):
        bound(x, out=BAD_OUT[told](x))
    assert np.array_equal(before, x)


def test_an_out_of_any_order_is_filled() -> None:
    """Strides that no guard knows are served all the same."""
    x, w, b = inputs()
    out = np.zeros((6, 8), "f4").T
    assert pinned().bind(x, w, b, constant=("w", "b"))(x, out=out) is out
    assert close(out, dense.reference(x, w, b))


def test_a_subclass_names_both() -> None:
    """A masked array is no array of the bound form."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant=("w", "b"))
    with pytest.raises(ArgumentError, match=r"bound as float32.*MaskedArray float32"):
        bound(np.ma.masked_array(x))


def test_calls_of_bound_kernels_are_counted() -> None:
    """Those of living, updated, released and forgotten ones add up."""
    x, w, b = inputs()
    kernel, out = pinned(), np.empty((8, 6), "f4")
    one = kernel.bind(x, w, b, constant=("w", "b"))
    with kernel.bind(x, w, b, constant=("w",)) as other:
        other(x, b)
    kernel.bind(x, w, b, constant=("b",))(x, w, out=out)
    one(x), one(x, out=out), one.update(w=w), one(x, out=np.empty((6, 8), "f4").T)
    assert {"cpu/small": 5} == kernel.stats.dispatches
    one(x)
    assert {"cpu/small": 6} == kernel.stats.dispatches


def test_a_variant_that_cannot_be_launched_gives_way() -> None:
    """The reference serves, with one warning, with and without `out`."""
    x, w, b = inputs()
    kernel = pinned()
    bound = kernel.bind(x, w, b, constant=("w", "b"))
    kernel.unpin()

    def failing(*args: Any) -> Any:
        raise EngineError("lost")

    bound._entry.run = failing
    bound._arm()
    out = np.empty((8, 6), "f4")
    with pytest.warns(RuntimeWarning, match=r"cpu/small failed.*lost"):
        bound(x, out=out)
    assert close(out, dense.reference(x, w, b))
    assert close(bound(x), dense.reference(x, w, b))
    assert {"reference": 2} == kernel.stats.dispatches
    assert 2 == kernel.stats.fallbacks


def test_a_forgotten_bound_kernel_frees_its_constants() -> None:
    """It is in no cycle: its copies go with the last reference."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant=("w", "b"))
    copy = weakref.ref(bound._args[1])
    bound(x)
    del bound
    assert copy() is None


def test_release_frees_the_constants() -> None:
    """Nothing keeps the copies."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant=("w", "b"))
    copy = weakref.ref(bound._args[1])
    bound.release()
    assert copy() is None


def test_threads_may_call_while_a_constant_is_replaced() -> None:
    """Each result is that of the old or of the new w."""
    x, w, b = inputs()
    bound = pinned().bind(x, w, b, constant=("w", "b"))
    right = [dense.reference(x, w, b), dense.reference(x, -w, b)]
    stop = threading.Event()
    wrong: list[Any] = []

    def calling() -> None:
        while not stop.is_set():
            result = bound(x)
            if not any(close(result, one) for one in right):
                wrong.append(result)

    threads = [threading.Thread(target=calling) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        bound.update(w=w if turn % 2 else -w)
    stop.set()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_a_bound_kernel_is_not_pickled() -> None:
    """The error says what to do instead."""
    x, w, b = inputs()
    with pytest.raises(TypeError, match="bind again"):
        pickle.dumps(pinned().bind(x, w, b, constant=("w", "b")))


def test_a_bound_kernel_names_itself() -> None:
    """repr() says what it is bound to."""
    bound = pinned().bind(*inputs(), constant=("w", "b"))
    assert "<dense bound to w, b>" == repr(bound)


def test_an_axes_kernel_is_bound_by_copies() -> None:
    """Another value of an open number gives what the function gives."""

    @tuned_kernel(axes={"n": lambda x, bins: x.size}, tune="off")
    def counted(x: Any, bins: int) -> Any:
        return np.bincount(x, minlength=bins)

    x = np.arange(50) % 7
    bound = counted.bind(x, 9, constant="x")
    expected, x[:] = np.bincount(x, minlength=12), 0
    assert np.array_equal(expected, bound(12))
    bound.update(x=x)
    assert [50, 0] == bound(2).tolist()
    with pytest.raises(ArgumentError, match=r"\(50,\).*\(3,\)"):
        bound.update(x=x[:3])
