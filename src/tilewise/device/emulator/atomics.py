"""
Run atomic operations: lanes that hit one place take turns in the order of threads.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator import halves
from tilewise.device.emulator.floats import maximum, minimum
from tilewise.device.emulator.lanes import Lanes
from tilewise.device.emulator.memory import Memory
from tilewise.device.emulator.shadow import ATOMIC, SharedMemory
from tilewise.device.emulator.site import Site

__all__ = ["atomic"]

Array: TypeAlias = Any
Update: TypeAlias = Callable[..., Array]


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, limit: Array) -> Array:
    wraps = (old == 0) | (old > limit)
    return np.where(wraps, limit, old - old.dtype.type(1))


def _swap_if(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


_UPDATES: Final[Mapping[str, Update]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": _increment,
    "dec": _decrement,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": _swap_if,
}
_HALVES: Final[Mapping[str, Update]] = {
    "add": halves.add,
    "min": minimum,
    "max": maximum,
}


def _update(site: Site) -> Update:
    if "f16" in site.type:
        return partial(halves.half_op(site.type, _HALVES[site.atomic]))
    return _UPDATES[site.atomic]


def atomic(
    memory: Memory, lanes: Lanes, address: Any, values: tuple[Any, ...], site: Site
) -> Array:
    """Update memory and return what each lane found there."""
    address = np.broadcast_to(address, len(lanes))
    access = memory.place(lanes, address, site)
    memory.before_load(access, site)
    found = np.zeros(len(lanes), site.dtype)
    at = np.arange(len(lanes)) if access.ok is None else np.flatnonzero(access.ok)
    if not len(at):
        return found
    operands = [np.broadcast_to(v, len(lanes))[at] for v in values]
    if access.ok is not None:
        access = memory.only(access, at)
    memory.before_store(access, site)
    rows = access.bytes >> (site.dtype.itemsize.bit_length() - 1)
    found[at] = _in_turns(memory.view(site.dtype, 1), rows, operands, _update(site))
    if isinstance(memory, SharedMemory):
        granules, threads = memory.granules(access, site.nbytes)
        memory.own(granules, threads)
        memory.owner[granules] |= ATOMIC
    else:
        memory.after_store(access, values, site)
    return found


def _in_turns(flat: Array, rows: Array, operands: list[Array], update: Update) -> Array:
    found = np.empty(len(rows), flat.dtype)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(rows)])
    turn = np.arange(len(rows)) - np.repeat(starts, lengths)
    by_turn = order[np.argsort(turn, kind="stable")]
    counts = np.bincount(turn)
    for group in np.split(by_turn, np.cumsum(counts)[:-1]):
        old = flat[rows[group]]
        found[group] = old
        flat[rows[group]] = update(old, *(o[group] for o in operands))
    return found
