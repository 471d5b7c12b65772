"""
The one table of elementwise operations.

A row says what NumPy calls the operation (the oracle of values and dtypes),
whether its operands commute, what it costs, and how each language writes it.
Adding an operation is adding one row; a language whose library has no function
of the row's name defines it in its own prelude.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = [
    "OPS",
    "WEAK",
    "Op",
    "is_weak",
    "lookup",
    "loop_dtypes",
    "row_of",
    "weak_name",
]

WEAK: Mapping[str, type] = MappingProxyType(
    {"pybool": bool, "int": int, "float": float, "complex": complex}
)
"""Python scalars by name: they adapt to the arrays they meet. "bool" is NumPy's."""


@dataclass(frozen=True, slots=True)
class Op:
    """
    One elementwise operation.

    `call` evaluates it on NumPy arrays and `scalar` on Python numbers. `text` is
    its expression with `{0}`, `{1}` for the operands; `c` and `glsl` override it
    where those languages differ. `flops` is its weight in roofline figures.
    """

    name: str
    arity: int
    call: Callable[..., Any]
    text: str
    commutes: bool = False
    flops: int = 1
    scalar: Callable[..., Any] | None = None
    c: str = ""
    glsl: str = ""
    public: str = ""

    def written(self, language: str) -> str:
        """Return the template for "python", "c" or "glsl"."""
        return {"c": self.c, "glsl": self.glsl}.get(language) or self.text


def infix(name: str, sign: str, **more: Any) -> Op:
    """Make a row for a binary operator that all languages write alike."""
    return Op(name, 2, getattr(np, name), f"({{0}} {sign} {{1}})", **more)


def function(name: str, arity: int = 1, flops: int = 1, **more: Any) -> Op:
    """Make a row for a function that is called by NumPy's name."""
    holes = ", ".join(f"{{{i}}}" for i in range(arity))
    call = more.pop("call", None) or getattr(np, name)
    return Op(name, arity, call, f"{name}({holes})", flops=flops, **more)


ROWS = (
    infix("add", "+", commutes=True, scalar=operator.add),
    infix("subtract", "-", scalar=operator.sub),
    infix("multiply", "*", commutes=True, scalar=operator.mul),
    infix("divide", "/", flops=4, scalar=operator.truediv),
    function("floor_divide", 2, 6, scalar=operator.floordiv),
    function("remainder", 2, 6, scalar=operator.mod),
    function("power", 2, 30, scalar=operator.pow),
    Op("negative", 1, np.negative, "(-{0})", scalar=operator.neg),
    Op("positive", 1, np.positive, "{0}", flops=0, scalar=operator.pos),
    function("absolute", scalar=operator.abs),
    infix("less", "<", scalar=operator.lt),
    infix("less_equal", "<=", scalar=operator.le),
    infix("greater", ">", scalar=operator.gt),
    infix("greater_equal", ">=", scalar=operator.ge),
    infix("equal", "==", commutes=True, scalar=operator.eq),
    infix("not_equal", "!=", commutes=True, scalar=operator.ne),
    infix("bitwise_and", "&", commutes=True, scalar=operator.and_),
    infix("bitwise_or", "|", commutes=True, scalar=operator.or_),
    infix("bitwise_xor", "^", commutes=True, scalar=operator.xor),
    function("invert", scalar=operator.invert),
    function("logical_and", 2, commutes=True),
    function("logical_or", 2, commutes=True),
    function("logical_not"),
    function("maximum", 2, commutes=True),
    function("minimum", 2, commutes=True),
    function("exp", flops=12),
    function("exp2", flops=12),
    function("expm1", flops=16),
    function("log", flops=12),
    function("log1p", flops=16),
    function("log2", flops=12),
    function("sqrt", flops=4),
    function("square"),
    function("reciprocal", flops=4),
    function("tanh", flops=16),
    function("sin", flops=16),
    function("cos", flops=16),
    function("arctan", flops=16),
    function("sign", flops=2),
    function("floor"),
    function("rint"),
    function("hypot", 2, 8),
    function("logaddexp", 2, 24),
    function("heaviside", 2, 3),
    function("isnan"),
    function("isfinite"),
    Op("where", 3, np.where, "where({0}, {1}, {2})"),
)


def scipy_rows() -> tuple[Op, ...]:
    """Return the rows for scipy's functions, or none where scipy is not there."""
    try:
        from scipy.special import erf, expit
    except ImportError:
        return ()
    return (
        function("erf", flops=20, call=erf, public="scipy.special.erf"),
        function("expit", flops=14, call=expit, public="scipy.special.expit"),
    )


OPS: dict[str, Op] = {row.name: row for row in ROWS}
BY_CALL: dict[Any, Op] = {row.call: row for row in ROWS}


def lookup(name: str) -> Op:
    """Return the row of an operation by name; scipy's rows are read when met."""
    if name not in OPS:
        for row in scipy_rows():
            OPS[row.name] = BY_CALL[row.call] = row
    return OPS[name]


def row_of(call: Any) -> Op | None:
    """Return the row of a NumPy or scipy function, or None."""
    if call not in BY_CALL and getattr(call, "__name__", "") in ("erf", "expit"):
        for row in scipy_rows():
            OPS[row.name] = BY_CALL[row.call] = row
    return BY_CALL.get(call)


def weak_name(value: object) -> str:
    """Return the name of a Python scalar's type, or "" for anything else."""
    return next((n for n, kind in WEAK.items() if type(value) is kind), "")


def is_weak(dtype: str) -> bool:
    """Say whether a dtype's name is that of a Python scalar."""
    return dtype in WEAK


@lru_cache(maxsize=4096)
def loop_dtypes(
    name: str, dtypes: tuple[str, ...], result: str | None = None
) -> tuple[str, ...]:
    """
    Return the dtypes in which NumPy computes an operation, the result's last.

    `dtypes` are the operands' dtype names, those of Python scalars being "pybool",
    "int", "float" and "complex"; `result` is the caller's `dtype=`. NumPy's
    `ufunc.resolve_dtypes` is the oracle. Raises TypeError where NumPy has no loop.
    """
    if name == "where":
        value = str(np.result_type(*(weak_value(d) for d in dtypes[1:])))
        return ("bool", value, value, value)
    all_weak = all(is_weak(d) for d in dtypes)
    given = tuple(resolvable(d, strong=all_weak) for d in dtypes)
    if all(d is np.dtype(bool) or d is bool for d in given) and name == "subtract":
        raise TypeError("numpy boolean subtract is not supported")
    ufunc: Any = lookup(name).call
    more: dict[str, Any] = {}
    if result is not None:
        more["signature"] = (*(None for _ in given), np.dtype(result))
    return tuple(str(d) for d in ufunc.resolve_dtypes((*given, None), **more))


def resolvable(dtype: str, *, strong: bool) -> Any:
    """Return what `resolve_dtypes` takes for a dtype's name."""
    kind = WEAK.get(dtype)
    if kind is None:
        return np.dtype(dtype)
    return np.dtype(kind) if strong or kind is bool else kind


def weak_value(dtype: str) -> Any:
    """Return a value with which `result_type` treats a Python scalar as weak."""
    kind = WEAK.get(dtype)
    if kind is None or kind is bool:
        return np.dtype(kind or dtype)
    return kind(1)
