"""The door of axes kernels and of users' variants: what they give is checked here."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from tilewise.engines.user import PLACES, UserMethod, predicate_names
from tilewise.errors import ArgumentError
from tilewise.model.variant import Variant
from tilewise.runtime.axes import Axis, axis_of, form_of
from tilewise.runtime.dispatch import Key
from tilewise.runtime.question import Subject

__all__ = [
    "OwnVariants",
    "axes_key",
    "check_maker",
    "check_tolerance",
    "checked_axes",
    "stated_sizes",
    "user_method",
]

F = TypeVar("F", bound=Callable[..., Any])


def checked_axes(axes: Any, parameters: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes that a decorator states; ArgumentError for what is none."""
    if axes is None:
        return ()
    if not isinstance(axes, Mapping) or not axes:
        raise ArgumentError(
            f"axes={axes!r}: give a mapping of names to functions of the arguments, "
            'such as {"n_samples": lambda x, y: x.size}'
        )
    for name in axes:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"axes has the name {name!r}: give an identifier")
    return tuple(axis_of(name, axes[name], parameters) for name in axes)


def check_maker(axes: Any, make_inputs: Any) -> None:
    """Raise ArgumentError when what makes arguments is no function, or has no axes."""
    if make_inputs is not None and (axes is None or not callable(make_inputs)):
        raise ArgumentError(
            f"make_inputs={make_inputs!r}: give a function of the sizes by axis, with "
            "axes="
        )


def check_tolerance(tolerance: Any) -> None:
    """Raise ArgumentError for what can't say which results are right."""
    if tolerance is None or callable(tolerance):
        return
    pair = tolerance if isinstance(tolerance, (tuple, list)) else (tolerance, tolerance)
    try:
        is_right = len(pair) == 2 and all(float(one) >= 0 for one in pair)
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        raise ArgumentError(
            f"tolerance={tolerance!r}: give a number from 0, a pair (relative, "
            "absolute), or a function of (actual, expected)"
        )


def stated_sizes(axes: Any, sizes: Any) -> tuple[Mapping[str, int], ...]:
    """Return the sizes that a decorator states, by axis."""
    names = tuple(axes or "mnk")
    found = list(sizes) if isinstance(sizes, Iterable) else [sizes]
    for at, one in enumerate(found):
        if isinstance(one, tuple) and len(one) == len(names):
            found[at] = dict(zip(names, one, strict=True))
        elif not isinstance(one, Mapping) or set(one) != set(names):
            raise ArgumentError(
                f"sizes has {one!r}: give sizes of {', '.join(names)}, as in "
                f"{dict.fromkeys(names, 64)}"
            )
    return tuple(found)


def axes_key(subject: Subject) -> Callable[..., Key]:
    """Return the function from a call's arguments to the key of its entry."""
    axes, count = subject.axes, len(subject.parameters)

    def key(*given: Any) -> Key:
        args = given if len(given) == count else subject.bind(given, {})
        sizes = tuple([axis.at(args) for axis in axes])
        return (len(given), sizes, tuple([form_of(arg) for arg in args]))

    return key


class OwnVariants:
    """The part of a kernel that takes its user's own variants."""

    _subject: Subject

    def _clear(self) -> None:
        raise TypeError("a kernel says what its entries are")

    @overload
    def variant(self, function: F, /) -> F: ...
    @overload
    def variant(
        self,
        function: None = None,
        /,
        *,
        where: str = "any",
        valid: Callable[..., Any] | None = None,
        isolated: bool = True,
        **lists: Sequence[Any],
    ) -> Callable[[F], F]: ...
    def variant(
        self,
        function: Any = None,
        /,
        *,
        where: str = "any",
        valid: Callable[..., Any] | None = None,
        isolated: bool = True,
        **lists: Any,
    ) -> Any:
        """
        Add a variant of the user's own that competes for this kernel's calls.

            @joint_hist.variant(block_size=[128, 256], where="device")
            def shared(x, y, bins, *, block_size): ...

        It takes the kernel's arguments, and by keyword one value from each list: every
        combination is a variant, `user/shared block_size=128`. It returns what the
        function returns. `where` says where its arguments may live ("host", "device"
        or "any"). `valid` is given those of its parameters and of the sizes (by axis,
        or m, n and k) that it names, and says whether the variant can serve them.

        On the host it is verified and timed in a worker process, so that one that
        crashes, exits or hangs is rejected with the reason; `isolated=False` measures
        it here, which one that uses a GPU on host arrays needs. A worker has 20 budgets
        (2 to 60 s) to compile and answer, and tunes no kernels that a variant calls.

        May be used at any time; calls after it race it. Returns the function unchanged.
        Raises ArgumentError saying what is allowed.
        """

        def add(given: Any) -> Any:
            method = user_method(
                self._subject, given, lists, where=where, valid=valid, isolated=isolated
            )
            self._subject.user.methods[method.name] = method
            self._clear()
            return given

        return add if function is None else add(function)


def user_method(
    subject: Subject,
    function: Any,
    lists: Mapping[str, Any],
    *,
    where: str,
    valid: Any,
    isolated: bool,
) -> UserMethod:
    """Return a user's variant as it was decorated; ArgumentError says what is wrong."""
    name = str(getattr(function, "__name__", getattr(function, "name", "")))
    if not callable(function) or not name.isidentifier():
        raise ArgumentError(f"{function!r} is no variant: decorate a def with a name")
    known = subject.user.methods.get(name)
    if known is not None:
        told = f"{known.function.__module__}.{known.function.__qualname__}"
        raise ArgumentError(
            f"{subject.name} has a variant {name} already, {told}: rename one"
        )
    if where not in PLACES:
        told = ", ".join(map(repr, PLACES))
        raise ArgumentError(f"where={where!r}: use one of {told}")
    choices = tuple((key, values_of(key, lists[key])) for key in lists)
    check_parameters(subject, name, function, tuple(lists))
    check_predicate(subject, name, valid, tuple(lists))
    return UserMethod(name, function, choices, where, valid, isolated)


def values_of(name: str, values: Any) -> tuple[Any, ...]:
    """Return a parameter's values: numbers, bools or words, each once."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name}={values!r}: give a list of values")
    found = [v.item() if isinstance(v, np.generic) else v for v in values]
    if not found:
        raise ArgumentError(f"{name}=[]: give at least one value")
    for value in found:
        if not is_number(value) and not is_word(value):
            raise ArgumentError(
                f"{name} has {value!r}: values are numbers, bools or words"
            )
    return tuple(dict.fromkeys(found))


def is_number(value: Any) -> bool:
    """Say whether a value is a number that a record and a written form keep."""
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) and abs(value) < 1 << 63


def is_word(value: Any) -> bool:
    """Say whether a value is a text that a variant's written form keeps."""
    if not isinstance(value, str) or len(value.split()) != 1:
        return False
    return Variant.parse(f"user value={value}").config == (("value", value),)


def check_parameters(
    subject: Subject, name: str, function: Any, extra: Sequence[str]
) -> None:
    """Raise ArgumentError when a variant can't be called as variants are."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some compiled functions do not tell.
        return
    given = dict.fromkeys(extra)
    try:
        signature.bind(*subject.parameters, **given)
    except TypeError as error:
        called = ", ".join([*subject.parameters, *(f"{key}=" for key in extra)])
        raise ArgumentError(
            f"{name}{signature} can't be called as {name}({called}): {error}"
        ) from None


def check_predicate(
    subject: Subject, name: str, valid: Any, extra: Sequence[str]
) -> None:
    """Raise ArgumentError when `valid` asks for what is neither parameter nor size."""
    if valid is None:
        return
    if not callable(valid):
        raise ArgumentError(f"valid={valid!r} of {name}: give a function")
    sizes = [axis.name for axis in subject.axes] or ["m", "n", "k"]
    unknown = set(predicate_names(valid) or ()) - {*sizes, *extra}
    if unknown:
        raise ArgumentError(
            f"valid= of {name} takes {', '.join(sorted(unknown))}: it may take "
            f"{', '.join([*extra, *sizes])}"
        )
