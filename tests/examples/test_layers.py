"""Trained models whose products run as fused kernels give what sklearn gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from tilewise import ArgumentError
from tilewise.examples.layers import Network, layer, residuals


def fused_dispatches(kernel: Any) -> int:
    """Count the calls that a generated variant served."""
    counts = kernel.stats.dispatches
    return sum(n for name, n in counts.items() if name != "reference")


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic"])
def test_a_trained_network_gives_sklearns_probabilities(activation: str) -> None:
    """Probabilities agree to 1e-12, predictions exactly, and fused variants ran."""
    digits = load_digits()
    x = digits.data / 16.0
    model = MLPClassifier(
        hidden_layer_sizes=(64, 32), activation=activation, max_iter=12, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Twelve epochs are enough here.
        model.fit(x[:1200], digits.target[:1200])
    layer.pin("cpu/blas_serial")
    try:
        before = fused_dispatches(layer)
        actual = Network.of(model).predict_proba(x[1200:])
        assert fused_dispatches(layer) > before
    finally:
        layer.unpin()
    expected = model.predict_proba(x[1200:])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
    assert np.array_equal(model.predict(x[1200:]), actual.argmax(axis=1))


@pytest.mark.parametrize("labels", ["binary", "multilabel"])
def test_a_network_with_logistic_outputs_gives_sklearns(labels: str) -> None:
    """Two classes have one column, labels that don't exclude each other one each."""
    digits = load_digits()
    x, y = digits.data / 16.0, digits.target
    wanted = y % 2 if labels == "binary" else np.stack([y % 2 == 0, y > 4], 1)
    model = MLPClassifier(hidden_layer_sizes=(16,), max_iter=12, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, wanted)
    layer.pin("cpu/blas_serial")
    try:
        actual = Network.of(model).predict_proba(x)
    finally:
        layer.unpin()
    np.testing.assert_allclose(actual, model.predict_proba(x), rtol=0, atol=1e-12)


def test_a_regressor_is_refused_by_name() -> None:
    """It has no probabilities."""
    data = load_diabetes()
    model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.data, data.target)
    with pytest.raises(ArgumentError, match="MLPRegressor is no classifier"):
        Network.of(model)


@pytest.mark.parametrize("pin", ["cpu/blas_serial", "cpu/small"])
def test_ridge_residuals_are_sklearns(pin: str) -> None:
    """A 1-D w, a 1-D target and a scale: each fused method gives the residuals."""
    data = load_diabetes()
    model = Ridge().fit(data.data, data.target)
    intercept = np.asarray(model.intercept_)
    expected = (data.target - model.predict(data.data)) * 0.5
    residuals.pin(pin)
    try:
        before = fused_dispatches(residuals)
        actual = residuals(data.data, model.coef_, intercept, data.target, 0.5)
        assert fused_dispatches(residuals) > before
    finally:
        residuals.unpin()
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-10)
