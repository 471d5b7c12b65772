"""A spec at sizes, dtypes, operand kinds, layouts and residency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewise.model.expr import evaluate
from tilewise.model.fold import fold_of, fold_operand, unfolded
from tilewise.model.ranges import range_reason
from tilewise.model.spec import Operand, Spec, short_hash

__all__ = ["Form", "Problem", "pose", "scalar_values", "varied", "viewed_array"]


@dataclass(frozen=True, slots=True)
class Form:
    """
    How an array enters the kernel.

    `kind` is "mk" and "kn" for the factors; for operands it says along which
    axes of the result they vary: "mn", "m" (a column), "n" (a row) or "1".
    `layout` is "C" (unit stride along the last axis, where it varies), "F" (along
    the first) or "S" (neither).
    """

    dtype: str
    kind: str
    layout: str

    def __str__(self) -> str:
        """Write dtype, kind and layout."""
        return f"{self.dtype} {self.kind} {self.layout}"

    @property
    def told(self) -> str:
        """The form for people, such as `(m,k) float32` or `(n,) float64 strided`."""
        axes = {"m": "(m,1)", "n": "(n,)", "1": "()"}.get(self.kind)
        order = {"C": "", "F": " in Fortran order", "S": " strided"}[self.layout]
        return f"{axes or '(' + ','.join(self.kind) + ')'} {self.dtype}{order}"


@dataclass(frozen=True, slots=True)
class Problem:
    """
    What is to be computed, as far as a variant may depend on it.

    `forms` are those of x, w and the spec's operands, in this order. `constants`
    are the positions of arguments that are bound once. `fold` says how arguments of
    other ranks are viewed as matrices; `shape` is that of the caller's result.
    `tolerance` identifies what replaces the bound on the error, "" for nothing.
    `device` is the number of the GPU where device arrays live.
    """

    spec: Spec
    m: int
    n: int
    k: int
    forms: tuple[Form, ...]
    residency: str = "host"
    constants: tuple[int, ...] = ()
    precision: str = "strict"
    fold: str = ""
    shape: tuple[int, ...] = ()
    tolerance: str = ""
    device: int = 0

    @property
    def digest(self) -> str:
        """What is computed, whatever the sizes."""
        return self.spec.digest

    @property
    def point(self) -> tuple[tuple[str, int], ...]:
        """The sizes by axis, in the order (m, n, k)."""
        return (("m", self.m), ("n", self.n), ("k", self.k))

    @property
    def dtype(self) -> str:
        """The dtype of the first factor."""
        return self.forms[0].dtype

    @property
    def label(self) -> str:
        """The combination that one decision table is for, in words."""
        names = (self.spec.x, self.spec.w, *self.spec.operands)
        arrays = [f"{o.name} {f.told}" for o, f in zip(names, self.forms, strict=True)]
        numbers = [
            f"{' '.join(name for name, _ in scalar.places)} {scalar.dtype}"
            for scalar in self.spec.scalars
        ]
        bound = f", bound {self.constants}" if self.constants else ""
        loose = f", tolerance {self.tolerance}" if self.tolerance else ""
        where = f"{self.residency}, {self.precision}{bound}{loose}"
        return f"{', '.join(arrays + numbers)}; {where}"

    @property
    def table(self) -> str:
        """The digest of the combination; names take no part."""
        forms = [str(form) for form in self.forms]
        key = (
            forms, self.residency, self.constants, self.precision, self.tolerance
        )  # fmt: skip
        return short_hash(("table 2", key))


def pose(
    spec: Spec,
    args: Sequence[Any],
    *,
    residency: str = "host",
    constants: tuple[int, ...] = (),
    precision: str = "strict",
    tolerance: str = "",
    device: int = 0,
) -> Problem | str:
    """
    Put a spec at the caller's arguments.

    Returns the problem, or the reason why only the reference can serve it. `args`
    are the kernel's arguments in order; arrays need shape, strides and dtype.
    """
    reason = range_reason(spec)
    if reason is not None:
        return reason
    x, w = (viewed_array(f, args[f.position]) for f in (spec.x, spec.w))
    fold = fold_of(spec, x, w)
    if fold is None:
        return f"{spec.x.name} {x.shape} @ {spec.w.name} {w.shape} is no 2-D problem"
    if x.shape[-1] != w.shape[0]:
        return f"{spec.x.name} has k={x.shape[-1]} and {spec.w.name} k={w.shape[0]}"
    x, w, shape = unfolded(fold, x, w)
    (m, k), n = x.shape, w.shape[1]
    forms = [Form(str(x.dtype), "mk", layout(x)), Form(str(w.dtype), "kn", layout(w))]
    for operand in spec.operands:
        view = viewed_array(operand, args[operand.position])
        folded = fold_operand(fold, view, shape)
        form = None if folded is None else operand_form(folded, m, n)
        if form is None:
            return f"{operand.name} with shape {view.shape} does not fit {shape}"
        forms.append(form)
    asked = (residency, constants, precision, fold, shape, tolerance, device)
    return Problem(spec, m, n, k, tuple(forms), *asked)


def viewed_array(operand: Operand, array: Any) -> Any:
    """Return the view of an argument that a spec reads, without copying."""
    if operand.view == "T":
        return array.T
    if operand.view:
        marks = operand.view
        return array[tuple(None if mark == "n" else slice(None) for mark in marks)]
    return array


def operand_form(view: Any, m: int, n: int) -> Form | None:
    """Return an operand's form against an (m, n) result, or None if it has none."""
    shape = (1,) * (2 - view.ndim) + tuple(view.shape)
    if len(shape) > 2 or any(
        have not in (1, want) for have, want in zip(shape, (m, n), strict=True)
    ):
        return None
    kind = ("m" if shape[0] != 1 else "") + ("n" if shape[1] != 1 else "")
    return Form(str(view.dtype), kind or "1", operand_layout(view, kind))


def varied(operand: Operand, form: Form, folded: bool) -> tuple[int, int]:
    """Return the argument's axes that run along rows and columns, -1 for none."""
    if operand.view == "T":
        axes = [1, 0]
    elif operand.view:
        kept = iter(range(operand.view.count(":")))
        axes = [-1 if mark == "n" else next(kept) for mark in operand.view]
    else:
        axes = list(range(2 if folded and operand.ndim else operand.ndim))
    axes = [-1] * (2 - len(axes)) + axes
    row = axes[0] if "m" in form.kind else -1
    return row, axes[1] if "n" in form.kind else -1


def operand_layout(view: Any, kind: str) -> str:
    """Return an operand's layout; one that varies along one axis is "C" or "S"."""
    if kind == "mn":
        return layout(view)
    if kind == "n":
        return "C" if view.strides[-1] == view.dtype.itemsize else "S"
    return "C"


def layout(array: Any) -> str:
    """Return "C", "F" or "S" for a 2-D array; axes of one element fit any."""
    item = array.dtype.itemsize
    if array.strides[1] == item or array.shape[1] <= 1:
        return "C"
    return "F" if array.strides[0] == item or array.shape[0] <= 1 else "S"


def scalar_values(spec: Spec, args: Sequence[Any]) -> list[Any]:
    """Compute a call's hoisted numbers, with Python's and NumPy's arithmetic."""
    values = []
    for scalar in spec.scalars:
        arguments = {name: args[place] for name, place in scalar.places}
        values.append(evaluate(scalar.expr, arguments))
    return values
