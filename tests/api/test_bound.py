"""A bound kernel: constants copied, forms fixed, nothing allocated with out=."""

from __future__ import annotations

import pickle
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

from tilewise import ArgumentError, EngineError, tuned_kernel
from tilewise.runtime.once import resolver


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


def test_bind_waits_while_another_measures() -> None:
    """What is bound is decided, not what serves meanwhile."""
    x, w, b = inputs()
    kernel, tuning = tuned_kernel(budget_s=0.05)(dense.reference), resolver().tuning
    held = threading.Event()

    def measure() -> None:
        with tuning:
            held.set()
            time.sleep(0.5)

    other = threading.Thread(target=measure)
    other.start()
    assert held.wait(20)
    bound = kernel.bind(x[:3], w, b, constant=("w", "b"))
    other.join()
    assert 1 == kernel.stats.tunings
    assert close(bound(x[:3]), dense.reference(x[:3], w, b))
