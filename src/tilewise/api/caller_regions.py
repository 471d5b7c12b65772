"""Regions as a caller writes them, mappings with `<axis>_max`, `_min` and `_eq`."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from tilewise.errors import ArgumentError
from tilewise.model.box import Bound, Box, BoxTable, Number, Place, Word, hole

__all__ = ["boxes_of", "checked_axes", "point_of", "written"]

ENDINGS = ("_max", "_min", "_eq")
TAKEN = ("code_version",)


def checked_axes(axes: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the axes; raises ArgumentError for what is none."""
    if isinstance(axes, str):
        axes = (axes,)
    for axis in axes:
        if not isinstance(axis, str) or not axis.isidentifier() or axis in TAKEN:
            raise ArgumentError(f"{axis!r} can't name an axis: use another identifier")
    if not axes or len(set(axes)) < len(axes):
        raise ArgumentError(f"axes={list(axes)!r}: at least one, and each once")
    return tuple(axes)


def boxes_of(
    regions: Sequence[Mapping[str, Any]] | object, axes: tuple[str, ...]
) -> tuple[Box, ...]:
    """
    Read regions in the order in which they are tried.

    Raises ArgumentError for a bound that is none, a region that earlier ones cover
    completely, and a point that no region serves; each is named.
    """
    if not isinstance(regions, Sequence) or isinstance(regions, (str, bytes)):
        raise ArgumentError(f"regions is a {type(regions).__name__}, not a list")
    boxes: list[Box] = []
    for number, region in enumerate(regions):
        box = box_of(region, axes, f"region {number}")
        check_kinds([*boxes, box], axes)
        if boxes and hole(box, boxes, axes) is None:
            raise ArgumentError(
                f"region {number} is covered completely by those before it: "
                "put it before them or leave it out"
            )
        boxes.append(box)
    gap = hole(Box(()), boxes, axes)
    if gap is not None:
        raise ArgumentError(
            f"no region serves {written(gap)}: end with a catch-all, a region "
            "without bounds"
        )
    return tuple(boxes)


def box_of(region: object, axes: tuple[str, ...], where: str) -> Box:
    """Read one region; what bounds no axis is its payload."""
    if not isinstance(region, Mapping):
        raise ArgumentError(f"{where} is a {type(region).__name__}, not a mapping")
    limits: dict[str, dict[str, Any]] = {axis: {} for axis in axes}
    payload = {}
    for key, value in region.items():
        if not isinstance(key, str):
            raise ArgumentError(f"{where}: the key {key!r} is not text")
        axis, ending = split(key)
        if axis in limits:
            limits[axis][ending] = value
        elif ending:
            known = suggestion(axis, axes)
            raise ArgumentError(f"{where}: {key!r} bounds no axis; {known}")
        else:
            payload[key] = value
    bounds = [bound_of(axis, found, where) for axis, found in limits.items() if found]
    bounded = tuple(bound for bound in bounds if bound is not None)
    return Box(bounded, text_of(region, where), text_of(payload, where))


def split(key: str) -> tuple[str, str]:
    """Take a key apart into axis and ending; ("...", "") where it has none."""
    for ending in ENDINGS:
        if key.endswith(ending):
            return key.removesuffix(ending), ending
    return key, ""


def bound_of(axis: str, found: dict[str, Any], where: str) -> Bound | None:
    """Read the bounds of one axis; None is unbounded."""
    given = {ending: value for ending, value in found.items() if value is not None}
    names = {ending: f"{where}: {axis}{ending}={v!r}" for ending, v in given.items()}
    equal = given.get("_eq")
    if equal is not None:
        if len(given) > 1:
            raise ArgumentError(f"{names['_eq']} stands beside another bound of {axis}")
        if isinstance(equal, (str, bool)):
            return Bound(axis, equal=equal)
        return Bound(axis, equal=number_of(equal, names["_eq"]))
    if not given:
        return None
    low = number_of(given.get("_min", 0), names.get("_min", ""))
    high = number_of(given["_max"], names["_max"]) if "_max" in given else None
    if high is not None and high < low:
        raise ArgumentError(f"{names['_max']} is below {axis}_min={low!r}")
    return Bound(axis, low, high)


def number_of(value: object, what: str) -> Number:
    """Return a size as a Python number; raises ArgumentError for what is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{what} is a {type(value).__name__}, not a number")
    number = int(value) if isinstance(value, Integral) else float(value)
    if math.isnan(number):
        raise ArgumentError(f"{what} is not a number")
    if math.isinf(number):
        raise ArgumentError(f"{what} is infinite: None is unbounded")
    if number < 0:
        raise ArgumentError(f"{what} is negative")
    return number


def check_kinds(boxes: list[Box], axes: tuple[str, ...]) -> None:
    """Raise ArgumentError for an axis of both words and numbers."""
    for axis in axes:
        bounds = [b for box in boxes for b in box.bounds if b.axis == axis]
        kinds = {isinstance(bound.equal, (str, bool)) for bound in bounds}
        if len(kinds) > 1:
            number = len(boxes) - 1
            raise ArgumentError(f"region {number}: {axis} has both words and numbers")


def text_of(kept: Mapping[str, Any], where: str) -> str:
    """Write what a region has as JSON; raises ArgumentError for what has no form."""
    try:
        return json.dumps(dict(kept), allow_nan=False, default=plain)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{where} keeps what JSON can't: {error}") from None


def plain(value: object) -> Number:
    """Return NumPy's and other numbers as Python's, for JSON."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{value!r} of type {type(value).__name__}")


def point_of(
    table: BoxTable, values: Mapping[str, object]
) -> tuple[tuple[str, Place], ...]:
    """
    Return the values of all axes in order.

    Raises ArgumentError for an axis that is missing, misspelt, NaN, negative or of
    another kind than the regions' bounds.
    """
    for axis in values:
        if axis not in table.axes:
            known = suggestion(axis, table.axes)
            raise ArgumentError(f"{table.name!r} has no axis {axis!r}; {known}")
    missing = [axis for axis in table.axes if axis not in values]
    if missing:
        raise ArgumentError(f"{table.name!r} needs a value for {', '.join(missing)}")
    return tuple((axis, place(table, axis, values[axis])) for axis in table.axes)


def place(table: BoxTable, axis: str, value: object) -> Word | Number:
    """Check one value against what the regions say of its axis."""
    bounds = [b for box in table.boxes for b in box.bounds if b.axis == axis]
    words = table.words(axis)
    is_word = isinstance(value, (str, bool))
    if words and not is_word:
        named = ", ".join(map(repr, words))
        raise ArgumentError(f"{axis}={value!r} is no word as the regions have: {named}")
    if is_word and (words or not bounds):
        return value  # type: ignore[return-value]
    return number_of(value, f"{axis}={value!r}")


def suggestion(axis: str, axes: Sequence[str]) -> str:
    """Name the axes, or the one that was meant."""
    close = difflib.get_close_matches(axis, axes, 1)
    return f"did you mean {close[0]!r}?" if close else f"the axes are {', '.join(axes)}"


def written(point: tuple[tuple[str, Place], ...]) -> str:
    """Write a point as `n=11, place='device'`."""
    return ", ".join(
        f"{axis}={'any other word' if value is None else repr(value)}"
        for axis, value in point
    )
