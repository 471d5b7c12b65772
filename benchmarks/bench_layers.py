"""
Trained models on scikit-learn's real data: through tuned layers, and by sklearn.

    python benchmarks/bench_layers.py

The network is sklearn's MLPClassifier on its digits, the regression its Ridge on its
diabetes data; what is compared is the same answer, checked before it is timed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier

from benchmarks.record import append, interleaved, ratio, spread
from tilewise.examples.layers import Network, layer, residuals

ROUNDS = 25
PROTOCOL = (
    "float64, tuned first, then 25 shuffled rounds of tuned layers, the same functions "
    "as plain NumPy, and sklearn itself; ratios by round with 95 % bounds"
)


def network(activation: str, rows: int) -> dict[str, Any]:
    """Time the probabilities of some digits; milliseconds, and ratios over tuned."""
    digits = load_digits()
    x = digits.data / 16.0
    model = MLPClassifier(
        hidden_layer_sizes=(64, 32), activation=activation, max_iter=20, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Twenty epochs are enough here.
        model.fit(x, digits.target)
    mlp, some, before = Network.of(model), x[:rows], layer.stats.dispatches
    plain = Plain(mlp)
    for one in (mlp, plain):
        found = one.predict_proba(some)
        np.testing.assert_allclose(found, model.predict_proba(some), 0, 1e-12)
    calls = {
        "tuned": lambda: mlp.predict_proba(some),
        "numpy": lambda: plain.predict_proba(some),
        "sklearn": lambda: model.predict_proba(some),
    }
    ran = ran_since(layer, before)
    return {"what": f"MLP {activation}", "rows": rows, "ran": ran, **timed(calls)}


class Plain:
    """The same network, each layer being the function that was decorated."""

    def __init__(self, mlp: Network) -> None:
        self.mlp = mlp

    def predict_proba(self, x: Any) -> Any:
        """Return class probabilities."""
        *hidden, last = zip(self.mlp.weights, self.mlp.biases, strict=True)
        for w, b in hidden:
            x = layer.reference(x, w, b, self.mlp.activation)
        z = layer.reference(x, *last, "identity")
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)


def ridge() -> dict[str, Any]:
    """Time the scaled residuals of the diabetes data."""
    data = load_diabetes()
    model = Ridge().fit(data.data, data.target)
    args = (data.data, model.coef_, model.intercept_, data.target, 0.5)

    def by_sklearn() -> Any:
        return (data.target - model.predict(data.data)) * 0.5

    np.testing.assert_allclose(residuals(*args), by_sklearn(), 1e-12, 1e-10)
    calls = {
        "tuned": lambda: residuals(*args),
        "numpy": lambda: residuals.reference(*args),
        "sklearn": by_sklearn,
    }
    ran = ran_since(residuals, {})
    rows = len(data.target)
    return {"what": "ridge residuals", "rows": rows, "ran": ran, **timed(calls)}


def ran_since(kernel: Any, before: Mapping[str, int]) -> str:
    """Return which variants served a kernel's calls since some counts of them."""
    counts = kernel.stats.dispatches
    return ", ".join(name for name in counts if counts[name] > before.get(name, 0))


def timed(calls: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the microseconds of each, and how many times as fast tuned layers are."""
    found = interleaved(calls, ROUNDS, 20)
    us = {name: spread([ns / 1e3 for ns in times]) for name, times in found.items()}
    over = {f"over_{n}": ratio(found[n], found["tuned"]) for n in ("numpy", "sklearn")}
    return {"unit": "us", **us, **over}


if __name__ == "__main__":
    rows = [network(a, n) for a in ("relu", "tanh", "logistic") for n in (1, 100, 1797)]
    append("layers", PROTOCOL, [*rows, ridge()])
