"""
Layers of a trained network, and ridge regression, as tuned kernels.

    mlp = Network.of(classifier)          # a fitted sklearn MLPClassifier
    probabilities = mlp.predict_proba(x)  # (samples, features) -> (samples, classes)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.api.decorator import tuned_kernel
from tilewise.errors import ArgumentError

__all__ = ["Network", "layer", "residuals"]


@tuned_kernel(
    signature="(m,k),(k,n),(n),()->(m,n)",
    sizes=[(1, 32, 64), (1797, 32, 64), (1797, 10, 32)],  # of a network for the digits
)
def layer(x: Any, w: Any, b: Any, activation: str = "relu") -> Any:
    """
    Compute one dense layer: (m, k) @ (k, n) + (n), then the activation.

    `activation` is sklearn's name: identity, relu, tanh or logistic.
    """
    z = x @ w + b
    if activation == "relu":
        return np.maximum(z, 0)
    if activation == "tanh":
        return np.tanh(z)
    if activation == "logistic":
        return 1 / (1 + np.exp(-z))
    return z


@tuned_kernel(signature="(m,k),(k),(),(m),()->(m)", sizes=[(442, 1, 10)])
def residuals(x: Any, w: Any, intercept: Any, y: Any, scale: float = 1.0) -> Any:
    """Compute scaled residuals of a linear model: (y - (x @ w + intercept)) * scale."""
    return (y - (x @ w + intercept)) * scale


@dataclass(frozen=True, slots=True)
class Network:
    """
    The weights, biases and activations of a fitted classifier.

    `output` is sklearn's name for the last layer's: softmax for several classes,
    logistic for two of them (one column) and for labels that don't exclude each other.
    """

    weights: tuple[Any, ...]
    biases: tuple[Any, ...]
    activation: str
    output: str

    @classmethod
    def of(cls, classifier: Any) -> Network:
        """Take a fitted sklearn MLPClassifier; raises ArgumentError for others."""
        output = classifier.out_activation_
        if output not in ("softmax", "logistic"):
            kind = type(classifier).__name__
            raise ArgumentError(f"{kind} is no classifier: its output is {output}")
        return cls(
            tuple(classifier.coefs_),
            tuple(classifier.intercepts_),
            classifier.activation,
            output,
        )

    def predict_proba(self, x: Any) -> Any:
        """Return the probability of each class or label, (samples, classes)."""
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = layer(x, w, b, self.activation)
        if self.output == "logistic":
            p = layer(x, self.weights[-1], self.biases[-1], "logistic")
            return np.hstack([1 - p, p]) if p.shape[1] == 1 else p
        z = layer(x, self.weights[-1], self.biases[-1], "identity")
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
