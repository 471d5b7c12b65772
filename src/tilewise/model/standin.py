"""The stand-in for an array or a number while a function is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tilewise.errors import TraceError
from tilewise.model.expr import Node
from tilewise.model.ops import OPS, WEAK, Op, row_of
from tilewise.model.source import caret
from tilewise.model.trace import Session, unsupported

__all__ = ["Standin", "clip", "store"]


class Standin:
    """
    Records what is done with it; everything that would read a value raises.

    `dtype` and `ndim` are concrete; `shape` is a tuple of symbolic sizes.
    """

    __slots__ = ("_node", "_own", "_session")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, session: Session, node: int, own: bool = False) -> None:
        # Whether it is a copy, which may be written though it stands for an argument.
        self._session, self._node, self._own = session, node, own

    # What is known while tracing.

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that `isinstance` sees: ndarray, or the Python number's type."""
        node = self._session.node(self._node)
        if node.weak:
            return WEAK[node.dtype]
        if node.op == "scalar":
            return type(np.dtype(node.dtype).type())
        return np.ndarray

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._known("ndim").ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype."""
        return np.dtype(self._known("dtype").dtype)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, as numbers that are known when the kernel is called."""
        self._known("shape")
        return self._session.shape(self._node)

    def _known(self, attribute: str) -> Node:
        node = self._session.node(self._node)
        if node.weak:
            raise AttributeError(f"{node.dtype!r} object has no attribute {attribute}")
        return node

    # Views of arguments.

    @property
    def T(self) -> Standin:
        """The transpose."""
        return self._view("T") if self.ndim > 1 else self

    @property
    def mT(self) -> Standin:
        """The transpose of a matrix."""
        if self.ndim < 2:
            raise TypeError("a matrix transpose takes two axes")
        return self.T

    def transpose(self, *axes: Any) -> Standin:
        """Reverse the axes; other permutations are refused."""
        flat = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple) else axes
        if flat in ((), (None,), tuple(range(self.ndim))[::-1]):
            return self.T
        raise unsupported("a permutation of axes")

    def __getitem__(self, index: Any) -> Standin:
        how = unit_axes(index, self._known("[]").ndim)
        if how is None:
            raise unsupported("indexing", "only None and full slices are views")
        return self._view(how) if "n" in how else self

    def reshape(self, *shape: Any, **kwargs: Any) -> Standin:
        """Add unit axes to a 1-D argument; other reshapes are refused."""
        flat = shape[0] if len(shape) == 1 and type(shape[0]) is tuple else shape
        how = "".join("n" if type(s) is int and s == 1 else ":" for s in flat)
        long = [s for s in flat if not (type(s) is int and s == 1)]
        if kwargs or self.ndim != 1 or len(long) != 1 or not self._is_own(long[0]):
            raise unsupported(
                "reshape", "only unit axes may be added to a 1-D argument"
            )
        return self._view(how) if "n" in how else self

    def _is_own(self, size: Any) -> bool:
        own = self.shape[0]
        if type(size) is Standin:
            return bool(size._node == own._node)
        return type(size) is int and size == -1

    def _view(self, how: str) -> Standin:
        node = self._session.node(self._node)
        if node.op != "array":
            raise unsupported(
                "a view of a computed array",
                instead="Transpose or index the argument itself.",
            )
        ndim = node.ndim if how == "T" else len(how)
        return self._make(Node("view", (self._node,), node.dtype, ndim, how))

    def _make(self, node: Node) -> Standin:
        made: Standin = self._session.wrap(node)
        return made

    # Conversions and NumPy's methods.

    def astype(self, dtype: Any, *, copy: bool = True) -> Standin:
        """Convert to a dtype; without `copy` an array of that dtype is itself."""
        if self._known("astype").dtype == str(np.dtype(dtype)) and not copy:
            return self
        index = self._session.cast(self._node, str(np.dtype(dtype)))
        return Standin(self._session, index, own=True)

    def copy(self) -> Standin:
        """Return a stand-in that can be written without changing this one."""
        self._known("copy")
        return Standin(self._session, self._node, own=True)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Bound the values; None is no bound."""
        return clip(self._session, self, min, max)

    def dot(self, other: Any) -> Any:
        """Multiply by another array."""
        return self._session.product("dot", self, other)

    # NumPy's protocols.

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **more: Any
    ) -> Any:
        name = f"np.{ufunc.__name__}"
        if method != "__call__":
            raise unsupported(f"{name}.{method}", "it mixes elements")
        dtype = more.pop("dtype", None)
        if more:
            raise unsupported(f"{name} with {', '.join(more)}=")
        result = self._session_call(ufunc, inputs, dtype)
        return result if out is None else store(out[0], result)

    def _session_call(self, ufunc: Any, inputs: tuple[Any, ...], dtype: Any) -> Any:
        if ufunc is np.matmul and dtype is not None:
            raise unsupported("np.matmul with dtype=", "a product has its factors'")
        if ufunc is np.matmul:
            return self._session.product("matmul", *inputs)
        row = row_of(ufunc)
        if row is None:
            raise unsupported(f"np.{ufunc.__name__}")
        return self._session.call(row, *inputs, dtype=dtype)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        from tilewise.model.functions import FUNCTIONS

        rule = FUNCTIONS.get(function)
        if rule is None:
            raise unsupported(f"np.{getattr(function, '__name__', function)}")
        return rule(self._session, *args, **kwargs)

    def __matmul__(self, other: Any) -> Any:
        return self._session.product("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._session.product("matmul", other, self)

    def __imatmul__(self, other: Any) -> Any:
        raise unsupported("@=", instead="Write `z = z @ w`.")

    # What would read a value.

    def __bool__(self) -> bool:  # noqa: PLE0304
        self._refuse(
            "a decision on values", "Use np.where instead of if, and, or, max."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("a conversion to an array", "Use the argument as it is.")

    def __iter__(self) -> Any:
        self._refuse("a loop over elements", "Write the whole-array expression.")

    def __len__(self) -> int:  # noqa: PLE0303
        self._refuse("len()", "Use .shape[0], which is a symbolic size.")

    def __float__(self) -> float:
        self._refuse(
            "a conversion to a number", "Use np.sqrt(v) or v ** 0.5, not math."
        )

    __int__ = __index__ = __complex__ = __float__

    def __contains__(self, item: object) -> bool:
        self._refuse("`in`", "Compare with == and combine with |.")

    def __setitem__(self, index: Any, value: Any) -> None:
        self._refuse("an assignment to elements", "Use np.where.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        raise unsupported(f".{name}")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise TraceError(
            f"{what} cannot be traced: {self._session.name} is traced without values",
            caret(),
            "An epilogue computes each output element from one element of the product.",
            instead,
        )

    def __repr__(self) -> str:
        node = self._session.node(self._node)
        return f"<{node.op} {node.value or ''} {node.dtype} {node.ndim}-D, traced>"


def unit_axes(index: Any, ndim: int) -> str | None:
    """Write an index of None and full slices as "n" and ":", or return None."""
    parts = index if isinstance(index, tuple) else (index,)
    marks = ""
    for part in parts:
        if part is Ellipsis:
            marks += "."
        elif type(part) is slice and part == slice(None):
            marks += ":"
        elif part is None:
            marks += "n"
        else:
            return None
    rest = ndim - marks.count(":")
    if rest < 0 or marks.count(".") > 1:
        raise IndexError("too many indices for array")
    return marks.replace(".", ":" * rest) if "." in marks else marks + ":" * rest


def clip(session: Session, value: Any, low: Any, high: Any) -> Any:
    """Record np.clip as maximum then minimum, which is its definition."""
    if low is None and high is None:
        return value.copy()
    if low is not None:
        value = session.call(OPS["maximum"], value, low)
    return value if high is None else session.call(OPS["minimum"], value, high)


def store(target: Any, result: Standin) -> Standin:
    """Record a write into an intermediate array: it becomes the cast result."""
    if type(target) is not Standin:
        raise TraceError("out= names an array that is not an intermediate", caret())
    session, node = target._session, target._session.node(target._node)
    if node.op in ("array", "view") and not target._own:
        raise TraceError(
            f"{session.name} writes into its argument",
            caret(),
            "A kernel leaves its arguments unchanged.",
            "Write `z = x + 1` instead of `x += 1`.",
        )
    value = session.node(result._node)
    if value.ndim > node.ndim:
        raise TypeError("an intermediate is written with more axes than it has")
    if not np.can_cast(value.dtype, node.dtype, "same_kind"):
        raise TypeError(f"Cannot cast {value.dtype} to {node.dtype} ('same_kind')")
    if session.has_product(result._node) != session.has_product(target._node):
        raise unsupported("a write that changes the shape of an intermediate")
    target._node = session.cast(result._node, node.dtype)
    return target


def forward(row: Op) -> Callable[[Standin, Any], Any]:
    """Make the operator method with the stand-in on the left."""
    return lambda self, other: self._session.operate(row, self, other)


def backward(row: Op) -> Callable[[Standin, Any], Any]:
    """Make the operator method with the stand-in on the right."""
    return lambda self, other: self._session.operate(row, other, self)


def in_place(row: Op) -> Callable[[Standin, Any], Any]:
    """Make the in-place method; a number is replaced, an array is written."""

    def method(self: Standin, other: Any) -> Any:
        node = self._session.node(self._node)
        result = self._session.operate(row, self, other)
        is_number = node.weak or (node.ndim == 0 and node.op != "array")
        return result if is_number else store(self, result)

    return method


BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
COMPARE = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {
    "neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"
}  # fmt: skip

for _method, _name in BINARY.items():
    setattr(Standin, f"__{_method}__", forward(OPS[_name]))
    setattr(Standin, f"__r{_method}__", backward(OPS[_name]))
    setattr(Standin, f"__i{_method}__", in_place(OPS[_name]))
for _method, _name in COMPARE.items():
    setattr(Standin, f"__{_method}__", forward(OPS[_name]))
for _method, _name in UNARY.items():
    setattr(
        Standin,
        f"__{_method}__",
        lambda self, row=OPS[_name]: self._session.operate(row, self),
    )
