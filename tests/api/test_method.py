"""A decorated method: attributes are operands read at each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import TraceError, tuned_kernel


class Layer:
    """A layer with a weight, a bias, a number, a string and a helper."""

    def __init__(self, n: int, k: int, kind: str = "relu", scale: float = 1.0) -> None:
        rng = np.random.default_rng(n)
        self.w = rng.standard_normal((k, n))
        self.b = rng.standard_normal(n)
        self.kind, self.scale = kind, scale

    def activate(self, z: Any) -> Any:
        """Be a helper that reads a static attribute."""
        return np.maximum(z, 0) if self.kind == "relu" else np.tanh(z)

    @property
    def doubled(self) -> Any:
        """Be computed from an attribute."""
        return self.b * 2

    @tuned_kernel(budget_s=0.05)
    def forward(self, x: Any) -> Any:
        """Compute the layer."""
        return self.activate(x @ self.w + self.b) * self.scale

    @tuned_kernel(budget_s=0.05)
    def with_property(self, x: Any, alpha: float = 2.0) -> Any:
        """Read a property."""
        return x @ self.w + self.doubled * alpha

    @tuned_kernel(budget_s=0.05)
    def writes(self, x: Any) -> Any:
        """Write to self."""
        self.last = x @ self.w
        return self.last


class Taller(Layer):
    """Calls its parent's tuned method and asks for its own class."""

    @tuned_kernel(tune="off")
    def forward(self, x: Any) -> Any:
        """Add one to what the parent computes."""
        return super().forward(x) + (1 if isinstance(self, Layer) else 2)


class Partial:
    """Has a bias or none."""

    def __init__(self, **bias: float) -> None:
        self.w = np.ones((4, 3))
        self.__dict__.update(bias)

    @tuned_kernel(tune="off")
    def forward(self, x: Any) -> Any:
        """Add the bias if there is one."""
        return x @ self.w + getattr(self, "b", 0.0)


def plain(layer: Layer, x: Any) -> Any:
    """Compute a layer with NumPy."""
    z = x @ layer.w + layer.b
    return (np.maximum(z, 0) if layer.kind == "relu" else np.tanh(z)) * layer.scale


X = np.random.default_rng(0).standard_normal((5, 4))


def test_a_method_gives_the_functions_values() -> None:
    """The bound method computes what the plain one would."""
    layer = Layer(3, 4)
    np.testing.assert_allclose(layer.forward(X), plain(layer, X), rtol=1e-12)


def test_attributes_are_read_at_each_call() -> None:
    """A replaced weight and a changed number are seen."""
    layer = Layer(3, 4)
    layer.forward(X)
    layer.w, layer.scale = layer.w * 3, 0.5
    np.testing.assert_allclose(layer.forward(X), plain(layer, X), rtol=1e-12)


def test_static_attributes_are_traced_by_value() -> None:
    """Two instances with different strings take different branches."""
    for kind in ("relu", "tanh", "relu"):
        layer = Layer(3, 4, kind)
        np.testing.assert_allclose(
            layer.forward(X), plain(layer, X), rtol=1e-10, atol=1e-12
        )


def test_properties_and_defaults_work() -> None:
    """A property is computed from operands, a default is filled in."""
    layer = Layer(3, 4)
    expected = X @ layer.w + layer.b * 2 * 2.0
    np.testing.assert_allclose(layer.with_property(X), expected, rtol=1e-12)


def test_writing_to_self_raises() -> None:
    """A method that keeps state is refused by name."""
    with pytest.raises(TraceError, match=r"writes self\.last"):
        Layer(3, 4).writes(X)


def test_a_missing_attribute_is_an_attribute_error() -> None:
    """What the instance does not have is Python's own error."""
    layer = Layer(3, 4)
    del layer.b
    with pytest.raises(AttributeError, match="b"):
        layer.forward(X)


def test_a_method_is_explained() -> None:
    """The method explains itself on the bound method."""
    layer = Layer(3, 4)
    Layer.forward.forget()  # Another test's call would be found in memory.
    layer.forward(X)
    assert "measured" == layer.forward.explain(X).grade


def test_a_method_calls_its_parents() -> None:
    """A tuned method may call super() and ask for its own class."""
    layer = Taller(3, 4)
    np.testing.assert_allclose(layer.forward(X), plain(layer, X) + 1, rtol=1e-12)


def test_an_instance_may_hide_a_function_of_its_class() -> None:
    """A function set on the instance serves it alone, as in Python."""
    hidden: Any = Layer(3, 4)
    hidden.activate = np.tanh
    expected = np.tanh(X @ hidden.w + hidden.b)
    Layer(3, 4).forward(X)
    np.testing.assert_allclose(hidden.forward(X), expected, rtol=1e-12)


def test_an_attribute_may_be_absent() -> None:
    """An attribute that one instance has and another lacks is asked for by both."""
    full, bare = Partial(b=2.0), Partial()
    assert np.array_equal(full.forward(X), X @ full.w + 2)
    assert np.array_equal(bare.forward(X), X @ bare.w)


def test_a_method_of_an_instance_shows_both() -> None:
    """The kernel and whose method it is."""
    layer = Layer(2, 3)
    expected = f"<{Layer.forward!r} of {layer!r}>"
    assert expected == repr(layer.forward)
