"""
Give constants and variables of one kernel their names and addresses.

One namespace serves all block functions of a kernel: `np`, the block targets and
whatever a row asks for as a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.device.emulator.flow import Flow
from tilewise.device.emulator.layout import Frame

__all__ = ["EXIT", "WAIT", "Names"]

#: Program counters beyond all blocks: waiting at a barrier (+ next block), and ended.
WAIT, EXIT = 1 << 20, 1 << 28


class Names:
    """Hold the namespace and the addresses of one kernel."""

    def __init__(
        self,
        shared: Frame,
        local: Frame,
        params: dict[str, int],
        addresses: dict[str, int],
        flow: Flow,
    ) -> None:
        self.shared, self.local, self.params = shared, local, params
        self.addresses, self.targets = addresses, flow.targets
        self.watched, self.blocks = flow.watched, len(flow.blocks)
        self.space: dict[str, Any] = {"np": np, "EXIT": EXIT, "WAIT": WAIT}
        self._known: dict[Any, str] = {}

    def constant(self, value: Any, key: Any = None) -> str:
        """Return the name of a constant; equal keys share one."""
        key = ("id", id(value)) if key is None else key
        if key not in self._known:
            name = f"C{len(self._known)}"
            self._known[key] = name
            self.space[name] = value
        return self._known[key]

    def address_of(self, symbol: str) -> int | None:
        """Return a variable's address within its own space, None if unknown."""
        for offsets in (
            self.shared.offsets,
            self.local.offsets,
            self.addresses,
        ):
            if symbol in offsets:
                return offsets[symbol]
        return None
