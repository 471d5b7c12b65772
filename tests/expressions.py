"""Random kernels as source text, for tests that compare with the function itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPE = (5, 4, 3)  # m, n, k of the arguments below
UNARY = (
    "-{0}", "abs({0})", "np.exp({0})", "np.exp2({0})", "np.expm1({0})",
    "np.log({0})", "np.log1p({0})", "np.log2({0})", "np.sqrt({0})",
    "np.square({0})", "np.reciprocal({0})", "np.tanh({0})", "np.sin({0})",
    "np.cos({0})", "np.arctan({0})", "np.sign({0})", "np.floor({0})",
    "np.rint({0})", "np.clip({0}, -1, 2)", "np.clip({0}, None, 0.5)",
    "{0}.clip(0.25)", "np.clip({0}, min=-2, max=alpha)", "{0} ** 2", "{0} ** 3",
    "{0} ** 0.5", "{0} ** -1", "2 ** {0}", "1 / {0}", "1 - {0}", "np.negative({0})",
    "erf({0})", "expit({0})", "{0}.astype(np.float64)", "{0}.astype('f4')",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} // {1}", "{0} % {1}",
    "np.maximum({0}, {1})", "np.minimum({0}, {1})", "np.hypot({0}, {1})",
    "np.logaddexp({0}, {1})", "np.heaviside({0}, {1})", "{0} ** {1}",
    "np.power({0}, {1})", "np.add({0}, {1}, dtype=np.float64)",
)  # fmt: skip
MASKS = (
    "({0} > {1})", "({0} <= {1})", "({0} == {1})", "({0} != {1})", "np.isnan({0})",
    "np.isfinite({0})", "~({0} < {1})", "(({0} > {1}) & ({1} >= 0))",
    "(({0} > {1}) | np.isnan({1}))",
)  # fmt: skip
LEAVES = (
    "z", "z", "z", "b", "b[None, :]", "c[:, None]", "c.reshape(-1, 1)", "r", "alpha",
    "2", "0.5", "-1.25", "np.float32(1.5)", "np.float64(0.25)", "x.shape[1]",
    "np.sqrt(2 / np.pi)", "alpha / x.shape[1] ** 0.5", "GLOBAL", "np.array(0.75)",
    "alpha * 2 + 1", "z.shape[0]", "np.sqrt(w.shape[0])",
)  # fmt: skip
STATEMENTS = (
    "z += {0}", "z *= {0}", "np.maximum(z, {0}, out=z)", "z -= alpha",
    "np.exp(z, out=z)", "z = helper(z)", "z **= 2", "np.add(z, b, out=z)",
)  # fmt: skip
GLOBAL = 1.5


class Maker:
    """Makes one random kernel from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int) -> str:
        """Write an expression that may or may not read the product."""
        pick = self.random.random()
        if depth <= 0 or pick < 0.2:
            return self.random.choice(LEAVES)
        if pick < 0.5:
            return f"({self.fill(UNARY, self.array(depth - 1))})"
        if pick < 0.85:
            return (
                f"({self.fill(BINARY, self.array(depth - 1), self.value(depth - 1))})"
            )
        mask = self.fill(MASKS, self.array(depth - 1), self.value(depth - 1))
        if pick < 0.95:
            return f"np.where({mask}, {self.value(depth - 1)}, {self.array(depth - 1)})"
        return f"({mask} * {self.array(depth - 1)})"

    def array(self, depth: int) -> str:
        """Write an expression that is an array."""
        text = self.value(depth)
        return text if any(a in text for a in ("z", "b", "c[", "c.", "r")) else "z"

    def fill(self, templates: tuple[str, ...], *parts: str) -> str:
        """Fill a random template."""
        return self.random.choice(templates).format(*parts)

    def source(self) -> str:
        """Write the function."""
        lines = [self.random.choice(("z = x @ w", "z = np.dot(x, w)"))]
        for _ in range(self.random.choice((0, 0, 1, 2))):
            leaf = self.random.choice(("b", "alpha", "c[:, None]", "0.5", "b * 2"))
            lines.append(self.random.choice(STATEMENTS).format(leaf))
        lines.append(f"return z + {self.value(3)}")
        return "def f(x, w, b, c, r, alpha):\n    " + "\n    ".join(lines)


def helper(z: Any) -> Any:
    """Do what a user's helper function does."""
    return z * 0.5 + 1


def random_kernel(seed: int) -> tuple[Callable[..., Any], str]:
    """Return a random kernel of (x, w, b, c, r, alpha) and its source."""
    from scipy.special import erf, expit

    source = Maker(seed).source()
    space = {
        "np": np, "GLOBAL": GLOBAL, "helper": helper, "erf": erf, "expit": expit
    }  # fmt: skip
    exec(source, space)
    return space["f"], source


def arguments(seed: int, dtype: str, shape: tuple[int, int, int] = SHAPE) -> list[Any]:
    """Return arguments for a random kernel, special values among them."""
    m, n, k = shape
    rng = np.random.default_rng(seed)
    arrays = [
        rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), n, m, (m, n))
    ]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1.0])
    for array in arrays[2:]:
        hit = rng.random(array.shape) < 0.1
        array[hit] = rng.choice(special, int(hit.sum()))
    return [*arrays, float(rng.standard_normal())]
