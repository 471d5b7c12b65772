"""
From a call's arguments to what they ask: the traced spec and its problem.

A question that no engine may answer carries the reason; the reference serves it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.device.located import device_number
from tilewise.device.views import (
    DeviceView,
    device_view,
    is_device_array,
)
from tilewise.engines.user import UserEngine
from tilewise.errors import ArgumentError
from tilewise.model.axes import AxesProblem, Posed
from tilewise.model.problem import Problem, pose
from tilewise.model.spec import Spec, match, short_hash
from tilewise.model.trace import ArgForm, trace
from tilewise.runtime.axes import Axis, forms_of, point_of
from tilewise.runtime.dispatch import NUMBERS, is_static, static_key

__all__ = ["Options", "Question", "Subject", "arg_form", "ask", "residency_of"]

TOLERANCE = "tolerance="
"""Where a subject keeps the code version of a tolerance; no method is named so."""


@dataclass(frozen=True, slots=True)
class Options:
    """A kernel's options as its decorator states them; empty means the default."""

    signature: str | None = None
    engines: tuple[str, ...] = ()
    tune: str = "auto"
    precision: str = "strict"
    tolerance: Any = None
    budget_s: float | None = None
    axes: Any = None
    sizes: tuple[Mapping[str, int], ...] = ()
    make_inputs: Callable[..., Any] | None = None


@dataclass(slots=True)
class Subject:
    """
    The user's function with its options, its own variants and what is known of it.

    With `axes` it is never traced. `specs` are those traced so far, `versions` the
    code versions read so far: of variants by name, of an axes kernel under "".
    """

    function: Callable[..., Any]
    name: str
    parameters: tuple[str, ...]
    options: Options
    axes: tuple[Axis, ...] = ()
    user: UserEngine = field(default_factory=UserEngine)
    specs: dict[Any, Spec | str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    signature: inspect.Signature = field(init=False)

    def __post_init__(self) -> None:
        """Read the signature once: that takes 40 us, and calls by keyword need it."""
        self.signature = inspect.signature(self.function)

    @property
    def place(self) -> str:
        """Where the function is written: "module:name", or the file of a script."""
        module = str(self.function.__module__)
        if module == "__main__":
            code = getattr(self.function, "__code__", None)
            module = str(getattr(code, "co_filename", "<unknown>"))
        return f"{module}:{self.function.__qualname__}"

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """
        Return all arguments in order, defaults filled in.

        Raises TypeError naming the kernel where a call of the function itself would.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.parameters)

    def version(self, method: str = "") -> str:
        """
        Return the code version of a user's variant, or the digest of an axes kernel.

        Raises TraceError naming what the code uses that cannot be identified.
        """
        from tilewise.build.code_version import code_version

        with self.lock:
            if method not in self.versions:
                own = self.user.methods
                self.versions[method] = (
                    code_version(own[method].function) if method else self.axes_digest()
                )
            return self.versions[method]

    def axes_digest(self) -> str:
        """Return the digest of name, code, axes and tolerance."""
        from tilewise.build.code_version import code_version

        axes = [(axis.name, code_version(axis.function)) for axis in self.axes]
        free = self.options.tolerance
        right = code_version(free) if callable(free) else repr(free)
        code = code_version(self.function)
        return short_hash(("axes kernel 1", self.name, code, axes, right), 64)

    @property
    def tolerance(self) -> str:
        """What identifies the tolerance: its numbers, or a function's code version."""
        free = self.options.tolerance
        if not callable(free):
            pair = free if isinstance(free, (tuple, list)) else (free, free)
            return "" if free is None else " ".join(repr(float(one)) for one in pair)
        from tilewise.build.code_version import code_version

        with self.lock:
            if TOLERANCE not in self.versions:
                self.versions[TOLERANCE] = f"by code {code_version(free)[:16]}"
            return self.versions[TOLERANCE]

    def spec(self, forms: tuple[ArgForm, ...]) -> Spec | str:
        """Trace and match once per combination of forms; a str says why not."""
        key = tuple((f.kind, f.dtype, f.ndim, static_key(f.value)) for f in forms)
        with self.lock:
            if key not in self.specs:
                self.specs[key] = self.traced(forms)
            return self.specs[key]

    def traced(self, forms: tuple[ArgForm, ...]) -> Spec | str:
        """Trace the function; dtypes that NumPy has no loop for are a reason."""
        named = dict(zip(self.parameters, forms, strict=True))
        try:
            return match(trace(self.function, named), self.parameters)
        except ArgumentError:
            raise
        except TypeError as error:
            return f"NumPy computes this without a fused form: {error}"


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """
    A call: its arguments, where they live, and the problem or why there is none.

    `bound` says that what answers it is called again and again at these sizes.
    """

    subject: Subject
    args: tuple[Any, ...]
    residency: str
    spec: Spec | None = None
    problem: Posed | None = None
    reason: str = ""
    bound: bool = False

    @property
    def fused(self) -> Problem | None:
        """The problem where it is one that engines generate code for."""
        return self.problem if isinstance(self.problem, Problem) else None


def ask(
    subject: Subject, args: tuple[Any, ...], constants: tuple[int, ...] = ()
) -> Question:
    """
    Put a call's arguments as a question.

    `constants` are the positions of bound arguments. Raises TypeError for mixed
    residency, TraceError for a structure that cannot be fused or for code that cannot
    be identified.
    """
    residency = residency_of(subject, args)
    device = max(map(device_number, args)) if residency == "device" else 0
    if subject.axes:
        point, forms = point_of(subject.axes, args), forms_of(subject.parameters, args)
        whole = (subject.version(), point, forms, residency, constants, device)
        return Question(subject, args, residency, problem=AxesProblem(*whole))
    seen = viewed(args) if residency == "device" else args
    traced = [arg_form(n, a) for n, a in zip(subject.parameters, seen, strict=True)]
    for form in traced:
        if isinstance(form, str):
            return Question(subject, args, residency, reason=form)
    spec = subject.spec(tuple(f for f in traced if not isinstance(f, str)))
    if isinstance(spec, str):
        return Question(subject, args, residency, reason=spec)
    posed = pose(
        spec,
        seen,
        residency=residency,
        device=device,
        constants=constants,
        precision=subject.options.precision,
        tolerance=subject.tolerance,
    )
    if isinstance(posed, str):
        return Question(subject, args, residency, spec, reason=posed)
    return Question(subject, args, residency, spec, posed)


def viewed(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return device arrays as views that have strides and flags, as NumPy's do."""
    return tuple(device_view(arg) if is_device_array(arg) else arg for arg in args)


def residency_of(subject: Subject, args: Sequence[Any]) -> str:
    """Return "host" or "device"; raises TypeError naming who is where when mixed."""
    places: dict[str, list[str]] = {}
    for name, arg in zip(subject.parameters, args, strict=True):
        if isinstance(arg, np.ndarray) or is_device_array(arg):
            places.setdefault(place_of(arg), []).append(name)
    if len(places) > 1:
        told = "; ".join(f"{', '.join(n)} on the {p}" for p, n in places.items())
        raise TypeError(
            f"the arguments of {subject.name} live in different places: {told}. "
            "Move them to one."
        )
    return "device" if any(p != "host" for p in places) else "host"


def place_of(array: Any) -> str:
    """Return "host", or the device with its number."""
    return "host" if isinstance(array, np.ndarray) else f"device {device_number(array)}"


def arg_form(name: str, arg: Any) -> ArgForm | str:
    """Return what tracing needs to know of an argument, or why it takes it not."""
    kind = type(arg)
    if is_static(arg):
        return ArgForm("static", value=arg)
    if kind in NUMBERS:
        return ArgForm("scalar", kind.__name__)
    if isinstance(arg, np.generic):
        return ArgForm("scalar", str(arg.dtype))
    if kind in (np.ndarray, DeviceView):
        return array_form(name, arg)
    return f"{name} is a {kind.__name__}, not an array or a number"


def array_form(name: str, array: Any) -> ArgForm | str:
    """Return an array's form; unusual dtypes and memory are for the reference."""
    if array.dtype.kind not in "biufc":
        return f"{name} has dtype {array.dtype}"
    if not array.dtype.isnative:
        return f"{name} has dtype {array.dtype.str}, not in this machine's byte order"
    if not array.flags.aligned:
        return f"{name} is not aligned in memory"
    return ArgForm("array", str(array.dtype), array.ndim)
