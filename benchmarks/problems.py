"""The suite of problems that benchmarks share: sizes (m, n, k) and epilogues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["EPILOGUES", "SIZES", "arguments"]

SQUARES = (16, 32, 64, 128, 256, 512, 1024, 2048)
SIZES = (
    *((s, s, s) for s in SQUARES),
    (32, 512, 784), (128, 4096, 1024), (4096, 4096, 64), (8192, 1024, 32),
    (1, 4096, 4096), (65536, 64, 16), (4096, 64, 4096),
)  # fmt: skip


def relu(x: Any, w: Any, b: Any) -> Any:
    """Bias, then a bound."""
    return np.maximum(x @ w + b, 0)


def gelu(x: Any, w: Any, b: Any) -> Any:
    """Bias, then the tanh form of GELU."""
    z = x @ w + b
    return 0.5 * z * (1 + np.tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)))


def silu(x: Any, w: Any, b: Any) -> Any:
    """Bias, then z times the logistic of z."""
    z = x @ w + b
    return z / (1 + np.exp(-z))


def residual(x: Any, w: Any, b: Any) -> Any:
    """Scale and add a matrix of the result's shape."""
    return (x @ w) * 0.5 + b


def identity(x: Any, w: Any, b: Any) -> Any:
    """Be the product alone; b is not read."""
    return x @ w


EPILOGUES: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (relu, gelu, silu, residual, identity)
}


def arguments(epilogue: str, size: tuple[int, int, int], dtype: str) -> list[Any]:
    """Return (x, w, b) of normal values; b is a matrix for the residual."""
    m, n, k = size
    random = np.random.default_rng(m + n + k)
    shape = (m, n) if epilogue == "residual" else (n,)
    return [random.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), shape)]
