"""What serves a call once its entry is known: a run, `out`, or who steps in."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tilewise.api.checks import (
    check_device_out,
    check_out,
    guard_of,
    into_reference,
)
from tilewise.errors import EngineError
from tilewise.model.variant import Variant
from tilewise.runtime.dispatch import Dispatcher, Entry
from tilewise.runtime.load import reference_entry
from tilewise.runtime.question import Subject
from tilewise.runtime.tally import Tally

__all__ = ["Serving"]


class Serving(Dispatcher):
    """The slower ways of a call: what is not in the table, has `out`, or fails."""

    reference: Callable[..., Any]
    _subject: Subject
    _tally: Tally
    _pin: Variant | None
    _lock: threading.RLock

    def _unfused(self, args: tuple[Any, ...], out: Any) -> Any:
        """Let the reference serve ints that no machine holds, measuring nothing."""
        why = "an int that no machine integer holds"
        served = reference_entry(self.reference, "host", why)
        self._tally.add(served, 1)
        return self._serve(served, args, out)

    def _serve(self, entry: Entry, args: tuple[Any, ...], out: Any) -> Any:
        """Run an entry, into a new array without `out`."""
        if out is not None:
            return self._into(entry, args, out)
        run = entry.run
        try:
            if run is None:
                return cast(Any, entry.direct)(*args)
            return run(*args, np.empty(entry.shape, entry.dtype))
        except (OverflowError, EngineError) as error:
            return self._failed(entry, args, error)

    def _failed(self, entry: Entry, args: tuple[Any, ...], error: Exception) -> Any:
        """Serve a call whose variant raised by the reference."""
        return self._instead(
            entry, error, lambda served: cast(Any, served.direct)(*args)
        )

    def _instead(
        self, entry: Entry, error: Exception, call: Callable[[Entry], Any]
    ) -> Any:
        """
        Let the reference serve a call whose variant raised, and count it so.

        What the reference raises too, and a Python int that no machine integer holds,
        are a matter of that call alone; a variant that can't be run otherwise gives
        way for good, and this is said once.
        """
        residency = "host" if entry.filling is None else "device"
        reason = f"{entry.variant} failed: {error}"
        served = reference_entry(self.reference, residency, reason)
        if entry.variant == served.variant:  # Another thread's call has failed before.
            return call(served)
        is_lasting = isinstance(error, EngineError)
        if is_lasting and self._pin is not None:
            raise error
        result = call(served)
        if is_lasting:
            warnings.warn(
                f"{self._subject.name}: {entry.variant} failed, the reference serves "
                f"instead: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
        with self._lock:
            self._tally.add(entry, -1)
            self._tally.add(served, 1)
            if is_lasting:
                self._tally.retire(entry)
                entry.give_way(cast(Any, served.direct), reason)
        return result

    def _into(self, entry: Entry, args: tuple[Any, ...], out: Any) -> Any:
        """Run an entry into `out`."""
        try:
            return self._filled(entry, args, out)
        except (OverflowError, EngineError) as error:
            return self._instead(
                entry, error, lambda served: self._filled(served, args, out)
            )

    def _filled(self, entry: Entry, args: tuple[Any, ...], out: Any) -> Any:
        filling, run, names = entry.filling, entry.run, self._subject.parameters
        if filling is not None:
            check_device_out(names, args, out, entry.shape, entry.dtype)
            return filling(*args, out)
        if run is None:
            return into_reference(names, entry, args, out)
        if entry.guard is None:
            entry.guard = guard_of(run, args, entry.shape, entry.dtype)
        done = entry.guard(*args, out=out)
        if done is None:
            check_out(names, args, out, entry.shape, entry.dtype)
            done = run(*args, out)
        return done
