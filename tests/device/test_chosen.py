"""TILEWISE_DEVICE chooses the device."""

from __future__ import annotations

import pytest

from tilewise.device.chosen import chosen_device
from tilewise.device.driver import gpus
from tilewise.errors import SettingError


def test_the_emulated_device_is_one(monkeypatch):
    """Two calls give the same device, since buffers live on it."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")

    device = chosen_device()

    assert device is chosen_device()
    assert device.properties.emulated


def test_none_is_none(monkeypatch):
    """With "none" there is no device whatever the machine has."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")

    assert chosen_device() is None


def test_auto_needs_a_gpu(monkeypatch):
    """Without a GPU "auto" is no device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "auto")

    assert (chosen_device() is None) == (not gpus())


def test_another_word_is_named(monkeypatch):
    """A wrong value names the variable."""
    monkeypatch.setenv("TILEWISE_DEVICE", "gpu")

    with pytest.raises(SettingError, match="TILEWISE_DEVICE"):
        chosen_device()


def test_other_settings_are_not_read(monkeypatch):
    """What a staged call asks for at each time costs one variable, not all."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "many")

    assert chosen_device().properties.emulated
