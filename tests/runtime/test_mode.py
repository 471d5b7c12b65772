"""What forbids tuning is named for what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewise import SettingError, tuned_kernel, tuning


def product(x: Any, w: Any) -> Any:
    """Compute something fused."""
    return np.maximum(x @ w, 0)


@pytest.mark.parametrize(
    ("variable", "value"), [("TILEWISE_TUNE", "off"), ("TILEWISE_READONLY", "1")]
)
def test_a_setting_that_forbids_tuning_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """An explicit tune() says which variable to change."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingError, match=f"{variable}={value} forbids tuning"):
        tuned_kernel(product).tune(shapes=[(4, 4, 4)])


def test_a_block_that_forbids_tuning_is_named() -> None:
    """It is the block and no variable that has to change."""
    with tuning("off"), pytest.raises(SettingError, match="outside `with tuning") as e:
        tuned_kernel(product).tune(shapes=[(4, 4, 4)])
    assert "TILEWISE" not in str(e.value)


def test_a_decorator_that_forbids_tuning_is_named() -> None:
    """A block that says "auto" is stronger than it."""
    kernel = tuned_kernel(tune="off")(product)
    with pytest.raises(SettingError, match="in the decorator"):
        kernel.tune(shapes=[(4, 4, 4)])
    with tuning("auto"):
        assert kernel.tune(shapes=[(4, 4, 4)], budget_s=0.01).resolutions
