"""
Hold the registers of all threads between basic blocks.

A register is an array over the live threads, or a scalar while all have one value.
Blocks that run for all threads hand their arrays over as they are, so an array may
stand in several registers; before the first write to some of its lanes it is copied.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tilewise.device.emulator.program import Step
from tilewise.device.emulator.types import DTYPES

__all__ = ["Registers"]

Array: TypeAlias = np.ndarray[Any, Any]


class Registers:
    """The register file of a chunk."""

    def __init__(self, types: dict[str, str]) -> None:
        self.types = types
        self.values: dict[str, Any] = {
            name: DTYPES[type_].type(0) for name, type_ in types.items()
        }
        self._owned: set[str] = set()

    def read(self, step: Step, chosen: Array | None = None) -> list[Any]:
        """Return a block's inputs, for some lanes where they are given."""
        if chosen is None:
            self._owned.difference_update(step.inputs)
            return [self.values[name] for name in step.inputs]
        return [self.values_at(name, chosen) for name in step.inputs]

    def values_at(self, name: str, chosen: Array) -> Any:
        """Return a register in some lanes."""
        value = self.values[name]
        return value[chosen] if value.ndim else value

    def write(self, step: Step, results: tuple[Any, ...]) -> None:
        """Take over a block's results for all lanes."""
        self._owned.difference_update(step.outputs)
        for name, value in zip(step.outputs, results, strict=True):
            self.values[name] = value

    def write_some(
        self, step: Step, results: tuple[Any, ...], chosen: Array, size: int
    ) -> None:
        """Take over a block's results for some lanes out of `size`."""
        for name, value in zip(step.outputs, results, strict=True):
            if name not in self._owned:
                dtype = DTYPES[self.types[name]]
                spread = np.broadcast_to(self.values[name], size)
                self.values[name] = np.array(spread, dtype)
                self._owned.add(name)
            self.values[name][chosen] = value

    def keep(self, chosen: Array) -> None:
        """Drop all lanes but some."""
        for name, value in self.values.items():
            if value.ndim:
                self.values[name] = value[chosen]
        self._owned.clear()
