"""
Write values that code uses as texts: equal texts for what computes the same.

One table by type. A type without a row is refused, and so is what can change without
being seen: lists, dicts, sets and writable arrays.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import re
import reprlib
import struct
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from tilewise.build.keys import digest
from tilewise.build.origin import foreign, home

__all__ = ["Unidentified", "encode"]

SCHEMA = 1


class Unidentified(Exception):
    """A value that has no encoding; the text says why."""


class Reader(Protocol):
    """What the encodings ask of the reader that walks through functions."""

    package: str

    def once(self, value: object, encoding: Callable[[], str]) -> str:
        """Return the encoding at the first meeting, the meeting's number later."""

    def function(self, function: types.FunctionType) -> str:
        """Return the encoding of a Python function with all that it uses."""


Encoder = Callable[[Any, Reader], str]


def encode(value: object, reader: Reader, hint: str = "") -> str:
    """
    Return the encoding of a value that the user's code calls `hint`.

    Raises Unidentified for what has none.
    """
    plain = PLAIN.get(type(value))
    if plain is not None:
        return plain(value, reader)
    known = home(value, hint, reader.package)
    if known is not None:
        return f"name {known}"
    for kind, encoder in KINDS:
        if isinstance(value, kind):
            return encoder(value, reader)
    for one in type(value).__mro__:
        attributes = KERNELS.get((one.__module__.partition(".")[0], one.__name__))
        if attributes is not None:
            return kernel(value, attributes, reader)
    if dataclasses.is_dataclass(value):
        return frozen_fields(value, reader)
    raise Unidentified(unknown(value))


def unknown(value: object) -> str:
    """Say why a value has no encoding."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    kind = kind.removeprefix("builtins.")
    if isinstance(value, (list, dict, set, bytearray, np.ndarray)):
        return f"a {kind} can change without being seen"
    return f"nothing tells one {kind} from another"


def composite(kind: str, items: Iterable[tuple[str, object]], reader: Reader) -> str:
    """Return the encoding of labelled values as one digest."""
    parts = [(label, inner(label, value, reader)) for label, value in items]
    return f"{kind} {digest(parts, SCHEMA)}"


def inner(label: str, value: object, reader: Reader) -> str:
    """Return the encoding of a part; the reason of a refusal says which part."""
    try:
        return encode(value, reader, label)
    except Unidentified as error:
        raise Unidentified(f"{label} of it: {error}") from None


def literal(value: object, _: Reader) -> str:
    """Write a number or text by type and value."""
    return f"{type(value).__name__} {value!r}"


def floating(value: float, _: Reader) -> str:
    """Write a float by its bits: signs of zero and NaNs are told apart."""
    return f"float {struct.pack('>d', value).hex()}"


def complex_number(value: complex, reader: Reader) -> str:
    """Write a complex number by its two floats."""
    return f"complex {floating(value.real, reader)} {floating(value.imag, reader)}"


def sequence(value: tuple[object, ...], reader: Reader) -> str:
    """Write a tuple, or a named tuple with its type's fields, item by item."""
    names = getattr(value, "_fields", range(len(value)))
    items = ((f"item {name}", item) for name, item in zip(names, value, strict=True))
    return composite("tuple", items, reader)


def unordered(value: frozenset[object], reader: Reader) -> str:
    """Write a frozen set in the order of its items' encodings."""
    items = sorted(inner("an item", item, reader) for item in value)
    return f"frozenset {digest((('item', item) for item in items), SCHEMA)}"


def interval(value: slice, reader: Reader) -> str:
    """Write a slice by its three parts."""
    parts = (("start", value.start), ("stop", value.stop), ("step", value.step))
    return composite("slice", parts, reader)


def mapping(value: Mapping[Any, object], reader: Reader) -> str:
    """Write a read-only mapping in the order of its keys' encodings."""
    pairs = sorted((inner("a key", key, reader), item) for key, item in value.items())
    return composite("mapping", ((key, item) for key, item in pairs), reader)


def array(value: np.ndarray[Any, Any], _: Reader) -> str:
    """Write a read-only array by dtype, shape and bytes."""
    if value.flags.writeable or value.dtype.hasobject:
        raise Unidentified(unknown(value))
    parts = (("dtype", repr(value.dtype)), ("shape", repr(value.shape)))
    return "array " + digest((*parts, ("bytes", value.tobytes())), SCHEMA)


def scalar(value: np.generic, _: Reader) -> str:
    """Write a NumPy scalar by dtype and bytes."""
    if value.dtype.hasobject:
        raise Unidentified(unknown(value))
    return f"scalar {value.dtype!r} {value.tobytes().hex()}"


def function(value: types.FunctionType, reader: Reader) -> str:
    """Write a Python function with all that it uses."""
    return reader.once(value, lambda: reader.function(value))


def module(value: types.ModuleType, reader: Reader) -> str:
    """Write a module of a foreign package by its name; a user's is not read whole."""
    known = foreign(value.__name__, reader.package)
    if known is None:
        raise Unidentified("a module is used whole, not by its names")
    return f"module {known}"


def method(value: types.MethodType, reader: Reader) -> str:
    """Write a bound method by its function and its object."""
    parts = (("function", value.__func__), ("self", value.__self__))
    return composite("method", parts, reader)


def builtin(value: types.BuiltinMethodType, reader: Reader) -> str:
    """Write a method in C by its name and its object, which is no module."""
    return f"builtin {value.__name__} {inner('the object', value.__self__, reader)}"


def partial(value: functools.partial[Any], reader: Reader) -> str:
    """Write a partial by its function and arguments."""
    keywords = tuple(sorted(value.keywords.items()))
    parts = (("func", value.func), ("args", value.args), ("keywords", keywords))
    return composite("partial", parts, reader)


def cached(value: Any, reader: Reader) -> str:
    """Write a function behind functools.cache by the function."""
    return composite("cached", (("function", value.__wrapped__),), reader)


def descriptor(value: Any, reader: Reader) -> str:
    """Write a static or class method, or a property, by its functions."""
    names = ("__func__", "fget", "fset", "fdel", "func")
    parts = ((name, getattr(value, name)) for name in names if hasattr(value, name))
    return composite(type(value).__name__, parts, reader)


def member(value: enum.Enum, reader: Reader) -> str:
    """Write an enum's member by its name and value."""
    parts = (("name", value.name), ("value", value.value))
    return composite("enum", parts, reader)


def pattern(value: re.Pattern[Any], _: Reader) -> str:
    """Write a regular expression by its text and flags."""
    return f"pattern {value.flags} {value.pattern!r}"


UNREAD = (
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__slots__",
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__",
    "__firstlineno__", "__static_attributes__", "__parameters__", "__orig_bases__",
    "__dataclass_params__", "__dataclass_fields__", "__match_args__", "__hash__",
    "__abstractmethods__", "_abc_impl",
)  # fmt: skip
MADE = (
    "__init__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__",
    "__setattr__", "__delattr__", "__getstate__", "__setstate__", "__replace__",
)  # fmt: skip
PLACED = (types.MemberDescriptorType, types.GetSetDescriptorType)


def klass(value: type, reader: Reader) -> str:
    """Write a user's class by its bases and what it defines."""
    return reader.once(value, lambda: class_body(value, reader))


def class_body(value: type, reader: Reader) -> str:
    """Return the encoding of a class's content; an enum's is its members."""
    if issubclass(value, enum.Enum):
        return composite("enum", ((m.name, m.value) for m in value), reader)
    items: list[tuple[str, object]]
    items = [(f"base {at}", base) for at, base in enumerate(value.__bases__)]
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        defaults = tuple(sorted(getattr(value, "_field_defaults", {}).items()))
        items += [("fields", value._fields), ("defaults", defaults)]
    else:
        items += dataclass_fields(value)
        skipped = {*UNREAD, *(MADE if dataclasses.is_dataclass(value) else ())}
        items += sorted(
            (name, item)
            for name, item in vars(value).items()
            if not isinstance(item, PLACED)
            and not (name in skipped and made(name, item))
        )
    return composite("class", items, reader)


def made(name: str, item: object) -> bool:
    """Say whether an attribute is Python's own, or a method that dataclass made."""
    code = getattr(item, "__code__", None)
    places = ("<string>", dataclasses.__file__, reprlib.__file__)
    return name in UNREAD or (code is not None and code.co_filename in places)


def dataclass_fields(value: type) -> Iterator[tuple[str, object]]:
    """Yield what the methods that dataclass generates are made from."""
    if dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            given = (one.default, one.default_factory)
            known = tuple(
                "-" if item is dataclasses.MISSING else item for item in given
            )
            yield f"field {one.name}", (one.init, one.kw_only is True, known)


def frozen_fields(value: Any, reader: Reader) -> str:
    """Write an instance of a frozen dataclass by its class and fields."""
    if not type(value).__dataclass_params__.frozen:
        raise Unidentified(f"the dataclass {type(value).__qualname__} is not frozen")
    names = [one.name for one in dataclasses.fields(value)]
    items = [("class", type(value)), *((name, getattr(value, name)) for name in names)]
    return composite("dataclass", items, reader)


def kernel(value: object, attributes: tuple[str, ...], reader: Reader) -> str:
    """Write a library's kernel by the attributes that make it what it is."""
    items = []
    for name in attributes:
        item = getattr(value, name.removeprefix("!"))
        if name.startswith("!") and item is not None:
            raise Unidentified(f"its {name[1:]} names a file, which can change")
        items.append((name, frozen(item)))
    return composite(type(value).__name__, items, reader)


def frozen(value: object) -> object:
    """Return a library's own options, which nobody changes, without mutable types."""
    if isinstance(value, dict):
        return tuple(sorted((key, frozen(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(frozen, value))
    if isinstance(value, set):
        return frozenset(value)
    if type(value).__name__ == "ParameterInfo":  # CuPy's, which is all in its text
        return str(value)
    return value


KERNELS: Mapping[tuple[str, str], tuple[str, ...]] = types.MappingProxyType(
    {
        ("numba", "Dispatcher"): ("py_func", "targetoptions", "locals"),
        ("numba", "CUDADispatcher"): ("py_func", "targetoptions"),
        ("numba", "DUFunc"): ("_dispatcher",),
        ("numba", "UFuncDispatcher"): ("py_func", "targetoptions"),
        ("numba", "CFunc"): ("_pyfunc",),
        ("numba", "Type"): ("name",),
        ("cupy", "RawKernel"): ("code", "name", "options", "backend", "!file_path"),
        ("cupy", "RawModule"): ("code", "options", "backend", "!file_path"),
        ("cupy", "ElementwiseKernel"): (
            "params", "operation", "preamble", "reduce_dims", "kwargs",
        ),
        ("cupy", "ReductionKernel"): (
            "params", "map_expr", "reduce_expr", "post_map_expr", "identity",
            "reduce_type", "preamble", "options",
        ),
        ("cupy", "Fusion"): ("func",),
        ("cupyx", "_JitRawKernel"): ("_func",),
        ("tilewise", "TunedKernel"): ("reference",),
        ("tilewise", "RawKernel"): ("source", "arch"),
    }
)  # fmt: skip
"""The attributes that identify a kernel; "!" marks one that must be None."""

PLAIN: Mapping[type, Encoder] = types.MappingProxyType(
    {
        type(None): literal,
        bool: literal,
        int: literal,
        str: literal,
        bytes: literal,
        range: literal,
        type(Ellipsis): literal,
        type(NotImplemented): literal,
        float: floating,
        complex: complex_number,
        tuple: sequence,
        frozenset: unordered,
        slice: interval,
        types.MappingProxyType: mapping,
    }
)

KINDS: tuple[tuple[Any, Encoder], ...] = (
    (enum.Enum, member),
    (np.generic, scalar),
    (np.dtype, lambda value, _: f"dtype {value!r}"),
    (np.ndarray, array),
    (types.FunctionType, function),
    (types.ModuleType, module),
    (types.MethodType, method),
    (types.BuiltinMethodType, builtin),
    (functools.partial, partial),
    (type(functools.cache(lambda: None)), cached),
    ((staticmethod, classmethod, property, functools.cached_property), descriptor),
    (re.Pattern, pattern),
    (logging.Logger, lambda value, _: f"logger {value.name}"),
    ((types.GenericAlias, types.UnionType), literal),
    (type, klass),
    (tuple, sequence),
)
