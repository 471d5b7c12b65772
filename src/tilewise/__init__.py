"""
Fused, tuned and remembered kernels from NumPy expressions.

    from tilewise import tuned_kernel

    @tuned_kernel
    def dense(x, w, b):
        return np.maximum(x @ w + b, 0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewise import errors
from tilewise.errors import (
    ArgumentError,
    EngineError,
    SettingError,
    StoreWarning,
    TilewiseError,
    TraceError,
    UnsupportedOp,
)

if TYPE_CHECKING:
    from tilewise.api.bound import BoundKernel
    from tilewise.api.decision_store import DecisionStore
    from tilewise.api.decorator import tuned_kernel
    from tilewise.api.emulate import Emulation, emulate
    from tilewise.api.explain import Explanation, TuneReport
    from tilewise.api.kernel import TunedKernel
    from tilewise.api.program_cache import ProgramCache
    from tilewise.api.raw import RawKernel
    from tilewise.api.report import Report, report
    from tilewise.api.retune import Discovery, RetuneReport, discover, retune_all
    from tilewise.build.code_version import code_version
    from tilewise.device.fingerprint import hw_fingerprint
    from tilewise.device.host import array_location
    from tilewise.device.provenance import provenance, provenance_changed
    from tilewise.runtime.mode import tuning
    from tilewise.store.stack import ship_defaults

__all__ = [
    "ArgumentError",
    "BoundKernel",
    "DecisionStore",
    "Discovery",
    "Emulation",
    "EngineError",
    "Explanation",
    "ProgramCache",
    "RawKernel",
    "Report",
    "RetuneReport",
    "SettingError",
    "StoreWarning",
    "TilewiseError",
    "TraceError",
    "TuneReport",
    "TunedKernel",
    "UnsupportedOp",
    "array_location",
    "code_version",
    "discover",
    "emulate",
    "errors",
    "hw_fingerprint",
    "provenance",
    "provenance_changed",
    "report",
    "retune_all",
    "ship_defaults",
    "tuned_kernel",
    "tuning",
]

# Loaded when first asked for: importing tilewise then costs 2 ms over NumPy, and who
# wants a fingerprint only loads neither the store nor the emulated device.
HOMES = {
    "BoundKernel": "tilewise.api.bound",
    "DecisionStore": "tilewise.api.decision_store",
    "Discovery": "tilewise.api.retune",
    "Emulation": "tilewise.api.emulate",
    "Explanation": "tilewise.api.explain",
    "ProgramCache": "tilewise.api.program_cache",
    "RawKernel": "tilewise.api.raw",
    "Report": "tilewise.api.report",
    "RetuneReport": "tilewise.api.retune",
    "TuneReport": "tilewise.api.explain",
    "TunedKernel": "tilewise.api.kernel",
    "array_location": "tilewise.device.host",
    "code_version": "tilewise.build.code_version",
    "discover": "tilewise.api.retune",
    "emulate": "tilewise.api.emulate",
    "hw_fingerprint": "tilewise.device.fingerprint",
    "provenance": "tilewise.device.provenance",
    "provenance_changed": "tilewise.device.provenance",
    "report": "tilewise.api.report",
    "retune_all": "tilewise.api.retune",
    "ship_defaults": "tilewise.store.stack",
    "tuned_kernel": "tilewise.api.decorator",
    "tuning": "tilewise.runtime.mode",
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it, once."""
    if name == "__version__":
        return version()
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(HOMES[name]), name)
    return value


def version() -> str:
    """Return the installed distribution's version; a bare checkout has none."""
    from importlib import metadata

    try:
        return metadata.version("tilewise")
    except metadata.PackageNotFoundError:
        return "unknown"


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
