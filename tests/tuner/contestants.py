"""Contestants that are right, and some with one fault each, for `dense` in float32."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.model.variant import Variant
from tilewise.tuner.contest import Case, Contestant


def dense(x: Any, w: Any, b: Any) -> Any:
    """Compute what all contestants should."""
    return np.maximum(x @ w + b, 0)


def case(
    function: Callable[..., Any] = dense,
    shape: tuple[int, int, int] = (9, 6, 12),
    dtype: str = "float32",
    **changes: Any,
) -> Case:
    """Pose a function of (x, w, b) at random arguments of sizes (m, n, k)."""
    m, n, k = shape
    random = np.random.default_rng(7)
    args = tuple(
        random.standard_normal(size).astype(dtype) for size in ((m, k), (k, n), n)
    )
    result = np.asarray(function(*args))
    point = (("m", m), ("n", n), ("k", k))
    posed = Case(args, function, None, result.shape, result.dtype, k, point=point)
    values = {name: getattr(posed, name) for name in posed.__slots__} | changes
    return Case(**values)


def right(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Fill the output as NumPy would."""
    np.matmul(x, w, out=out)
    np.add(out, b, out=out)
    return np.maximum(out, 0, out=out)


def half_writer(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Leave the last row unwritten."""
    out[:-1] = dense(x, w, b)[:-1]
    return out


def outside_writer(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Write one row too many, where there is memory for it."""
    right(x, w, b, out)
    beyond = np.lib.stride_tricks.as_strided(out, (len(out) + 1, *out.shape[1:]))
    beyond[-1] = 0
    return out


def input_changer(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Use an argument as scratch memory."""
    right(x, w, b, out)
    b[0] += 1
    return out


def input_returner(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Return an argument."""
    right(x, w, b, out)
    return x


def another_returner(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Return a new array and fill the output."""
    return right(x, w, b, out).copy()


def nan_dropper(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Take the larger number, as C's fmaxf does, where NumPy passes NaN on."""
    out[...] = np.fmax(x @ w + b, 0)
    return out


def inf_dropper(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Clip to the largest finite number."""
    with np.errstate(all="ignore"):
        out[...] = np.minimum(dense(x, w, b), np.finfo(out.dtype).max)
    return out


def off_by_a_thousandth(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Be wrong by 1e-3 of each value."""
    right(x, w, b, out)
    out *= out.dtype.type(1.001)
    return out


def bias_forgetter(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Take the first element of the bias for all."""
    out[...] = dense(x, w, b[:1])
    return out


def lower_precision(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Round the factors to 10 bits of mantissa, as TF32 does."""

    def tf32(a: Any) -> Any:
        bits = (np.ascontiguousarray(a).view(np.uint32) + 0x1000) & 0xFFFFE000
        return bits.astype(np.uint32).view(np.float32)

    with np.errstate(all="ignore"):
        return right(tf32(x), tf32(w), b, out)


def lazy(x: Any, w: Any, b: Any, out: Any) -> Any:
    """Be right, but so slow that three rounds settle it under any load."""
    time.sleep(0.003)
    return right(x, w, b, out)


def raiser(*args: Any) -> Any:
    """Raise."""
    raise ValueError("no such tile")


def exiter(*args: Any) -> Any:
    """Leave Python in an orderly way."""
    raise SystemExit(3)


def quitter(*args: Any) -> Any:
    """End the process at once."""
    os._exit(4)


def aborter(*args: Any) -> Any:
    """Abort as C code does."""
    os.abort()


def interrupter(*args: Any) -> Any:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def looper(*args: Any) -> Any:
    """Never end."""
    while True:
        pass


def hoarder(*args: Any) -> Any:
    """Ask for 64 GiB and touch all of it."""
    return np.ones(1 << 33)


def entry(run: Any, *, isolated: bool = False, compile_ms: float = 0.0) -> Contestant:
    """Name a contestant after its function."""
    return Contestant(Variant("test", run.__name__), run, compile_ms, isolated)
