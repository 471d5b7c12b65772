"""Arguments and forms for given sizes, from a kernel's signature or its trace."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from tilewise.device.chosen import chosen_device
from tilewise.device.views import gpu
from tilewise.errors import ArgumentError
from tilewise.model.spec import Operand, Spec
from tilewise.model.trace import ArgForm
from tilewise.runtime.axes import point_of, raised
from tilewise.runtime.dispatch import NUMBERS, is_static
from tilewise.runtime.question import Question, Subject, ask

__all__ = [
    "Made",
    "arguments_at",
    "assumption",
    "axis_names",
    "default_forms",
    "on_device",
    "operand_axes",
    "parse_signature",
    "question_at",
]

Axes = tuple[str, ...]
T = TypeVar("T")
Made = tuple[Any, str, str | None]
"""What arguments are made by: dtype, residency, and a signature if one is given."""


def parse_signature(text: str, parameters: Sequence[str]) -> tuple[Axes, ...]:
    """
    Read NumPy's gufunc notation into the axes of each parameter.

    Raises ArgumentError when the text is not "(m,k),(k,n),...->(m,n)" or its
    operands are not as many as the parameters.
    """
    axes = operand_axes(text)
    if len(axes) != len(parameters):
        raise ArgumentError(
            f"signature={text!r} has {len(axes)} operands, the function "
            f"{len(parameters)} parameters: {', '.join(parameters)}"
        )
    return axes


def operand_axes(text: str) -> tuple[Axes, ...]:
    """Return the axes of each operand of a signature, or raise ArgumentError."""
    plain = str(text).replace(" ", "")
    match = re.fullmatch(r"((?:\([\w,]*\),?)+)->\(([\w,]*)\)", plain)
    if match is None:
        raise ArgumentError(f"signature={text!r} is not like (m,k),(k,n),(n)->(m,n)")
    groups = re.findall(r"\(([\w,]*)\)", match.group(1))
    axes = tuple(tuple(a for a in group.split(",") if a) for group in groups)
    named = {a for group in axes for a in group} | set(match.group(2).split(","))
    if named - {"m", "n", "k", "1", ""}:
        raise ArgumentError(f"signature={text!r} has axes other than m, n, k and 1")
    return axes


def with_signature(subject: Subject, signature: str | None) -> Subject:
    """Return a subject with another signature, or itself where none is given."""
    if signature is None:
        return subject
    return replace(subject, options=replace(subject.options, signature=signature))


def assumption(subject: Subject, signature: str | None) -> str:
    """Return the signature that arguments are made by where none is stated, or ""."""
    if signature or subject.options.signature or subject.axes:
        return ""
    forms = default_forms(subject)
    spec = subject.spec(forms)
    if isinstance(spec, str):
        return ""
    names = {"m": "m", "n": "n", "k": "k"}
    axes: list[Sequence[str]] = [("n",) if form.ndim else () for form in forms]
    for factor, group in factor_axes(spec, names):
        axes[factor.position] = group
    told = ",".join(f"({','.join(group)})" for group in axes)
    return f"{told}->(m,n)"


def default_forms(subject: Subject, dtype: str = "float32") -> tuple[ArgForm, ...]:
    """
    Return the forms that a kernel is traced with when no arguments are given.

    The signature says the axes; without one a first trace names the two factors,
    and other arrays are taken as (n). Parameters with a default that is a number
    or static keep it.
    """
    if subject.options.signature:
        axes = parse_signature(subject.options.signature, subject.parameters)
        return tuple(
            form_of(subject, name, dtype, len(group))
            for name, group in zip(subject.parameters, axes, strict=True)
        )
    first = tuple(form_of(subject, name, dtype, 2) for name in subject.parameters)
    spec = subject.spec(first)
    if isinstance(spec, str):
        raise ArgumentError(spec)
    factors = {spec.x.name, spec.w.name}
    return tuple(
        form if form.kind != "array" or name in factors else ArgForm("array", dtype, 1)
        for name, form in zip(subject.parameters, first, strict=True)
    )


def form_of(subject: Subject, name: str, dtype: str, ndim: int) -> ArgForm:
    """Return a parameter's default form: its own default's, an array's, a number's."""
    default = subject.signature.parameters[name].default
    if default is not inspect.Parameter.empty:
        if is_static(default):
            return ArgForm("static", value=default)
        if type(default) in NUMBERS:
            return ArgForm("scalar", type(default).__name__)
    if ndim == 0:
        return ArgForm("scalar", number_of(dtype).__name__)
    return ArgForm("array", dtype, ndim)


def number_of(dtype: str) -> type:
    """Return the Python number that goes with arrays of a dtype."""
    kinds: dict[str, type] = {"f": float, "c": complex}
    return kinds.get(np.dtype(dtype).kind, int)


def question_at(
    subject: Subject,
    args: tuple[Any, ...],
    sizes: Mapping[str, int],
    made: Made,
) -> Question:
    """
    Put arguments as a question, or those that are `made` for sizes by axis.

    Raises ArgumentError when neither is complete.
    """
    if not args or sizes:
        wanted = axis_names(subject)
        if args or set(sizes) != set(wanted):
            told = ", ".join(f"{name}=" for name in wanted)
            raise ArgumentError(f"{subject.name}: give its arguments, or {told}")
        args = arguments_at(subject, sizes, *made)
    return ask(subject, subject.bind(args, {}))


def axis_names(subject: Subject) -> tuple[str, ...]:
    """Return the axes of a kernel's problems."""
    return tuple(axis.name for axis in subject.axes) or ("m", "n", "k")


def arguments_at(
    subject: Subject,
    sizes: Mapping[str, int],
    dtype: Any,
    residency: str,
    signature: str | None = None,
) -> tuple[Any, ...]:
    """
    Make arguments for sizes by axis, the same for the same sizes.

    A kernel with axes makes them itself; for others they are normal values, and
    `signature` replaces the decorator's. Raises ArgumentError for sizes below zero, or
    a residency without a device.
    """
    if residency not in ("host", "device"):
        raise ArgumentError(f"residency={residency!r}: use host or device")
    for axis, size in sizes.items():
        if type(size) is not int or size < 0:
            raise ArgumentError(f"{axis}={size!r} is no size: give an integer from 0")
    if subject.axes:
        args = own_inputs(subject, sizes)
    else:
        args = normal_inputs(with_signature(subject, signature), sizes, dtype)
    return args if residency == "host" else tuple(map(on_device, args))


def own_inputs(subject: Subject, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """
    Let a kernel with axes make its arguments, of up to twice or half of the sizes.

    Raises ArgumentError for others: what is measured is remembered for what was asked.
    """
    make = subject.options.make_inputs
    if make is None:
        raise ArgumentError(
            f"{subject.name} has no make_inputs=, which makes arguments for sizes: "
            "give arguments instead"
        )
    try:
        made = make(**sizes)
    except Exception as error:
        called = ", ".join(f"{axis}=..." for axis in sizes)
        raise ArgumentError(
            f"make_inputs of {subject.name} raised {raised(error)}; it is called as "
            f"make_inputs({called})"
        ) from error
    try:
        args = subject.bind(made if isinstance(made, tuple) else (made,), {})
    except TypeError as error:
        raise ArgumentError(f"what make_inputs returns is no call: {error}") from None
    for axis, size in point_of(subject.axes, args):
        low, high = sorted((max(size, 1), max(sizes[axis], 1)))
        if high > 2 * low:
            raise ArgumentError(
                f"make_inputs of {subject.name} makes {axis}={size} for {axis}="
                f"{sizes[axis]}"
            )
    return args


def normal_inputs(
    subject: Subject, sizes: Mapping[str, int], dtype: Any
) -> tuple[Any, ...]:
    """Make normal values for sizes (m, n, k)."""
    try:
        name = str(np.dtype(dtype))
    except TypeError as error:
        raise ArgumentError(f"dtype={dtype!r}: {error}") from None
    forms = default_forms(subject, name)
    spec = subject.spec(forms)
    if isinstance(spec, str):
        raise ArgumentError(spec)
    random = np.random.default_rng(0)
    shapes = argument_shapes(subject, spec, forms, dict(sizes))
    return tuple(
        value_of(subject, parameter, form, shape, random)
        for parameter, form, shape in zip(
            subject.parameters, forms, shapes, strict=True
        )
    )


def on_device(value: Any, number: int = 0) -> Any:
    """Copy an array to the device in use, or another GPU; other values stay."""
    device = gpu(number) if number else chosen_device()
    if device is None:
        raise ArgumentError(
            "residency='device': there is no CUDA device here; TILEWISE_DEVICE="
            "emulated runs the kernels in NumPy, which decides nothing"
        )
    if not isinstance(value, np.ndarray):
        return value
    buffer = device.allocate(value.nbytes)
    device.copy_in(buffer, value)
    return device.array(buffer, value.shape, value.dtype)


def argument_shapes(
    subject: Subject, spec: Spec, forms: Sequence[ArgForm], sizes: dict[str, int]
) -> list[tuple[int, ...]]:
    """Return each parameter's shape at the sizes; numbers have ()."""
    if subject.options.signature:
        axes = parse_signature(subject.options.signature, subject.parameters)
        return [tuple(sizes.get(a, 1) for a in group) for group in axes]
    shapes: list[tuple[int, ...]] = [(sizes["n"],) if f.ndim else () for f in forms]
    for factor, shape in factor_axes(spec, sizes):
        shapes[factor.position] = shape
    return shapes


def factor_axes(spec: Spec, sizes: dict[str, T]) -> list[tuple[Operand, tuple[T, T]]]:
    """Return the two factors with what stands for each of their axes."""
    found = []
    for factor, (rows, columns) in ((spec.x, "mk"), (spec.w, "kn")):
        shape = (sizes[rows], sizes[columns])
        found.append((factor, shape[::-1] if factor.view == "T" else shape))
    return found


def value_of(
    subject: Subject,
    name: str,
    form: ArgForm,
    shape: tuple[int, ...],
    random: np.random.Generator,
) -> Any:
    """Make one argument: its default, a number from 1, or an array of normal values."""
    default = subject.signature.parameters[name].default
    if form.kind == "scalar" and default is inspect.Parameter.empty:
        number = {kind.__name__: kind for kind in NUMBERS}[form.dtype]
        return number(1.0 + abs(random.standard_normal()))
    if form.kind != "array":
        return default
    try:
        return random.standard_normal(shape).astype(form.dtype)
    except (MemoryError, ValueError) as error:  # Beyond memory, or any address.
        raise ArgumentError(f"{name} of shape {shape}: {error}") from error
