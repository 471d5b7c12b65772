"""Arguments and forms for given sizes, from a kernel's signature or its trace."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tilewise.errors import ArgumentError
from tilewise.model.spec import Spec
from tilewise.model.trace import ArgForm
from tilewise.runtime.dispatch import NUMBERS, is_static
from tilewise.runtime.question import Question, Subject, ask

__all__ = ["arguments_at", "default_forms", "parse_signature", "question_at"]

Axes = tuple[str, ...]


def parse_signature(text: str, parameters: Sequence[str]) -> tuple[Axes, ...]:
    """
    Read NumPy's gufunc notation into the axes of each parameter.

    Raises ArgumentError when the text is not "(m,k),(k,n),...->(m,n)" or its
    operands are not as many as the parameters.
    """
    match = re.fullmatch(r"((?:\([\w,]*\),?)+)->\([\w,]*\)", text.replace(" ", ""))
    if match is None:
        raise ArgumentError(f"signature={text!r} is not like (m,k),(k,n),(n)->(m,n)")
    groups = re.findall(r"\(([\w,]*)\)", match.group(1))
    axes = tuple(tuple(a for a in group.split(",") if a) for group in groups)
    if len(axes) != len(parameters):
        raise ArgumentError(
            f"signature={text!r} has {len(axes)} operands, the function "
            f"{len(parameters)} parameters: {', '.join(parameters)}"
        )
    unknown = {a for group in axes for a in group} - {"m", "n", "k", "1"}
    if unknown:
        raise ArgumentError(f"signature={text!r} has axes other than m, n, k and 1")
    return axes


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
    """Return a parameter's default form: its own default's, or an array's."""
    default = subject.signature.parameters[name].default
    if default is not inspect.Parameter.empty:
        if is_static(default):
            return ArgForm("static", value=default)
        if type(default) in NUMBERS:
            return ArgForm("scalar", type(default).__name__)
    return ArgForm("array", dtype, ndim)


def question_at(
    subject: Subject,
    args: tuple[Any, ...],
    sizes: Sequence[int | None],
    dtype: Any = "float32",
    residency: str = "host",
) -> Question:
    """
    Put arguments as a question, or those that are made for sizes (m, n, k).

    Raises ArgumentError when neither is complete.
    """
    if not args:
        if None in sizes:
            raise ArgumentError(f"{subject.name}: give its arguments, or m=, n= and k=")
        whole = [int(cast(int, size)) for size in sizes]
        args = arguments_at(subject, whole, dtype, residency)
    return ask(subject, subject.bind(args, {}))


def arguments_at(
    subject: Subject, sizes: Sequence[int], dtype: Any, residency: str
) -> tuple[Any, ...]:
    """
    Make arguments for sizes (m, n, k): normal values, the same for the same sizes.

    Raises ArgumentError for sizes below zero, or a residency without a device.
    """
    if residency != "host":
        raise ArgumentError(f"residency={residency!r}: no device is at hand here")
    if min(sizes) < 0:
        raise ArgumentError(f"sizes {tuple(sizes)} go below zero")
    try:
        name = str(np.dtype(dtype))
    except TypeError as error:
        raise ArgumentError(f"dtype={dtype!r}: {error}") from None
    forms = default_forms(subject, name)
    spec = subject.spec(forms)
    if isinstance(spec, str):
        raise ArgumentError(spec)
    random = np.random.default_rng(0)
    shapes = argument_shapes(subject, spec, forms, dict(zip("mnk", sizes, strict=True)))
    return tuple(
        value_of(subject, parameter, form, shape, random)
        for parameter, form, shape in zip(
            subject.parameters, forms, shapes, strict=True
        )
    )


def argument_shapes(
    subject: Subject, spec: Spec, forms: Sequence[ArgForm], sizes: dict[str, int]
) -> list[tuple[int, ...]]:
    """Return each parameter's shape at the sizes; numbers have ()."""
    if subject.options.signature:
        axes = parse_signature(subject.options.signature, subject.parameters)
        return [tuple(sizes.get(a, 1) for a in group) for group in axes]
    shapes: list[tuple[int, ...]] = [(sizes["n"],) if f.ndim else () for f in forms]
    for factor, (rows, columns) in ((spec.x, "mk"), (spec.w, "kn")):
        shape = (sizes[rows], sizes[columns])
        shapes[factor.position] = shape[::-1] if factor.view == "T" else shape
    return shapes


def value_of(
    subject: Subject,
    name: str,
    form: ArgForm,
    shape: tuple[int, ...],
    random: np.random.Generator,
) -> Any:
    """Make one argument: its default, or an array of normal values."""
    default = subject.signature.parameters[name].default
    if form.kind != "array":
        return default
    return random.standard_normal(shape).astype(form.dtype)
