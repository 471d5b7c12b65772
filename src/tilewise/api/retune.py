"""All kernels of a package: find them, measure each on every device of this host."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tilewise.api.explain import TuneReport
from tilewise.api.kernel import TunedKernel
from tilewise.api.method import kernel_of_class
from tilewise.api.modules import imported
from tilewise.api.registry import kernels
from tilewise.api.shapes import arguments_at, axis_names, on_device
from tilewise.device.fingerprint import hw_fingerprint, visible_gpus
from tilewise.errors import ArgumentError
from tilewise.runtime.question import Subject
from tilewise.store.stack import open_store

__all__ = [
    "Discovery",
    "KernelTuning",
    "RetuneReport",
    "discover",
    "retune_all",
    "wishes",
]

Kernel = TunedKernel[Any, Any]
Wish = tuple[Mapping[str, int], str]
"""What is measured: sizes by axis, and the dtype of arguments that are made."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """
    The kernels of a package; iterating gives them.

    `failures` are the modules that could not be imported, with the error.
    """

    package: str
    kernels: tuple[Kernel, ...]
    failures: tuple[tuple[str, str], ...] = ()

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __str__(self) -> str:
        lines = [f"{self.package}: {len(self)} kernel{'s' * (len(self) != 1)}"]
        lines += [f"  {place_of(kernel)}" for kernel in self.kernels]
        lines += [f"  can't import {name}: {error}" for name, error in self.failures]
        return "\n".join(lines)


def discover(package: str) -> Discovery:
    """
    Import all modules of a package, or one module, and list its kernels.

    A module that fails to import is reported and the others are listed; `__main__`
    modules are left alone, since importing one runs a program. Raises ArgumentError
    where the package itself can't be imported.
    """
    root = imported(package)
    failures: list[tuple[str, str]] = []
    load_below(root, failures)
    name = root.__name__
    own = [k for k in kernels() if f"{k.__module__}.".startswith(f"{name}.")]
    # Of a module that was loaded again the later kernels stand.
    found = {id(k) if "<locals>" in k.__qualname__ else place_of(k): k for k in own}
    return Discovery(name, tuple(found.values()), tuple(failures))


def load_below(package: Any, failures: list[tuple[str, str]]) -> None:
    """Import the modules of a package and of those in it, noting what fails."""
    for info in pkgutil.iter_modules(getattr(package, "__path__", ())):
        name = f"{package.__name__}.{info.name}"
        if info.name == "__main__":
            continue
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:
            failures.append((name, f"{type(error).__name__}: {error}"))
        else:
            load_below(module, failures)


def place_of(kernel: Kernel) -> str:
    """Return a kernel's module and name."""
    return f"{kernel.__module__}:{kernel.__qualname__}"


@dataclass(frozen=True, slots=True)
class KernelTuning:
    """One kernel on one device: its report, or why there is none."""

    kernel: str
    device: str
    report: TuneReport | None = None
    failure: str = ""
    skipped: str = ""

    def __str__(self) -> str:
        where = f"{self.kernel} on {self.device}"
        if self.report is None:
            return f"{where}: {self.failure or self.skipped}"
        winners = dict.fromkeys(str(r.variant) for r in self.report.resolutions)
        count = len(self.report.resolutions)
        told = f"{count} problem{'s' * (count != 1)}, {', '.join(winners)}"
        return f"{where}: {told}"


@dataclass(frozen=True, slots=True)
class RetuneReport:
    """What `retune_all` did, kernel by kernel; `str()` lists the failures last."""

    package: str
    done: tuple[KernelTuning, ...]
    imports: tuple[tuple[str, str], ...] = ()
    interrupted: bool = False

    @property
    def failures(self) -> tuple[str, ...]:
        """What failed, in words: modules that can't be imported, then kernels."""
        modules = (f"can't import {name}: {error}" for name, error in self.imports)
        return (*modules, *(str(one) for one in self.done if one.failure))

    def __str__(self) -> str:
        lines = [str(one) for one in self.done if not one.failure]
        if self.interrupted:
            lines.append("interrupted: what is decided is kept")
        lines += [f"failed: {text}" for text in self.failures]
        return "\n".join(lines) or f"{self.package} has no tuned kernels"


def retune_all(
    package: str,
    *,
    force: bool = False,
    devices: Sequence[str | int] | None = None,
    budget_s: float | None = None,
    progress: bool | None = None,
) -> RetuneReport:
    """
    Measure every kernel of a package on the CPU and on each distinct GPU.

    Each is measured at the sizes that are decided for it anywhere, or else at those
    that its decorator states (`sizes=`); one with neither is skipped and named. What
    is decided and holds is measured again only with `force`. `devices` chooses among
    "cpu" and the numbers of GPUs. What fails is listed at the end and stops nothing.
    Raises ArgumentError for a device that is not there.
    """
    places = places_of(devices)
    found = discover(package)
    done: list[KernelTuning] = []
    options = {"force": force, "budget_s": budget_s, "progress": progress}
    steps = [(kernel, *place) for place in places for kernel in found.kernels]
    for at, (kernel, device, number) in enumerate(steps, 1):
        if progress or (progress is None and sys.stderr.isatty()):
            told = f"{at} of {len(steps)}: {place_of(kernel)} on {device}"
            print(told, file=sys.stderr)
        try:
            one = one_tuning(kernel, device, number, options)
        except KeyboardInterrupt:
            return RetuneReport(found.package, tuple(done), found.failures, True)
        done.append(one)
        if one.report is not None and one.report.interrupted:
            return RetuneReport(found.package, tuple(done), found.failures, True)
    return RetuneReport(found.package, tuple(done), found.failures)


def places_of(devices: Sequence[str | int] | None) -> list[tuple[str, int | None]]:
    """Return the chosen devices with their numbers; the CPU has None."""
    gpus = visible_gpus()
    if devices is None:
        # One of each kind: decisions hold for all that have its fingerprint.
        first = {
            hw_fingerprint(number): number for number in reversed(range(len(gpus)))
        }
        devices = ["cpu", *sorted(first.values())]
    found: list[tuple[str, int | None]] = []
    for device in devices:
        if device == "cpu":
            found.append(("cpu", None))
        elif type(device) is int and 0 <= device < len(gpus):
            found.append((f"GPU {device} ({gpus[device].name})", device))
        else:
            numbers = ", ".join(map(str, range(len(gpus)))) or "there is no GPU"
            raise ArgumentError(
                f"devices has {device!r}: use 'cpu' or a GPU's number ({numbers})"
            )
    return found


def one_tuning(
    kernel: Kernel, device: str, number: int | None, options: Mapping[str, Any]
) -> KernelTuning:
    """Measure one kernel on one device; whatever it raises is its failure."""
    place = place_of(kernel)
    try:
        kernel = whole(kernel)
        wanted = wishes(kernel._subject)
        if not wanted:
            why = "skipped, nothing is decided for it and it states no sizes="
            return KernelTuning(place, device, skipped=why)
        parts = tuned(kernel, wanted, number, options)
    except Exception as error:
        return KernelTuning(place, device, failure=f"{type(error).__name__}: {error}")
    joined = tuple(r for part in parts for r in part.resolutions)
    interrupted = any(part.interrupted for part in parts)
    return KernelTuning(place, device, TuneReport(parts[0].kernel, joined, interrupted))


def whole(kernel: Kernel) -> Kernel:
    """Return a kernel, or that of a method in the class where it is written."""
    path, _, name = kernel.__qualname__.rpartition(".")
    if not path or "<locals>" in path:
        return kernel
    owner = attrgetter(path)(sys.modules[kernel.__module__])
    is_method = isinstance(owner, type) and vars(owner).get(name) is kernel
    return kernel_of_class(kernel, owner) if is_method else kernel


def tuned(
    kernel: Kernel,
    wanted: Sequence[Wish],
    number: int | None,
    options: Mapping[str, Any],
) -> list[TuneReport]:
    """Measure a kernel at some sizes, its arguments on the host or on a GPU."""
    if number is None:
        sizes: dict[str, list[Mapping[str, int]]] = {}
        for size, dtype in wanted:
            sizes.setdefault(dtype, []).append(size)
        return [kernel.tune(sizes=s, dtype=d, **options) for d, s in sizes.items()]
    reports = []
    for size, dtype in wanted:
        args = arguments_at(kernel._subject, size, dtype, "host")
        there = [on_device(arg, number) for arg in args]
        reports.append(kernel.tune(*there, **options))
    return reports


def wishes(subject: Subject) -> list[Wish]:
    """Return the sizes and dtypes that are decided for a kernel, else those stated."""
    axes = axis_names(subject)
    found = {
        (decision.point, table.key.dtype or "float32"): None
        for table in open_store().tables()
        if table.kernel_name == subject.name
        for decision in table.decisions
        if tuple(axis for axis, _ in decision.point) == axes
    }
    stored: list[Wish] = [(dict(point), dtype) for point, dtype in found]
    return stored or [(sizes, "float32") for sizes in subject.options.sizes]
