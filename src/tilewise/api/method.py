"""
A decorated method: what it reads from `self` become operands of a kernel.

While tracing, and in the reference, `self` is a proxy that hands out the attributes'
values and refuses writes. Which attributes a method reads is learned by letting it
ask: a name that is not known yet is added and the work starts again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from tilewise.errors import TraceError
from tilewise.model.source import caret

if TYPE_CHECKING:
    from tilewise.api.kernel import TunedKernel

__all__ = [
    "MethodAdapter",
    "MethodCall",
    "MethodKernel",
    "Proxy",
    "Unread",
    "kernel_of_class",
]


class Unread(Exception):
    """A method reads an attribute that its adapter does not hand out yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class Absent:
    """Stands for an attribute that an instance does not have."""


class Proxy:
    """Stand for an object: attributes by name, methods and properties of its class."""

    __slots__ = ("_tilewise_owner", "_tilewise_values")

    def __init__(self, owner: type, values: dict[str, Any]) -> None:
        object.__setattr__(self, "_tilewise_owner", owner)
        object.__setattr__(self, "_tilewise_values", values)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The object's class, for isinstance and super()."""
        owner: type = self._tilewise_owner
        return owner

    def __getattr__(self, name: str) -> Any:
        owner = self._tilewise_owner
        value = self._tilewise_values.get(name, Unread)
        if value is Absent:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {name!r}")
        if value is not Unread:
            return value
        found = inspect.getattr_static(owner, name, None)
        if isinstance(found, property) and found.fget is not None:
            return found.fget(self)
        found = getattr(found, "reference", found)  # That of another tuned method.
        if isinstance(found, FunctionType):
            return MethodType(found, self)
        if isinstance(found, (staticmethod, classmethod)):
            return getattr(owner, name)
        raise Unread(name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TraceError(
            f"the method writes self.{name}",
            caret(),
            "A kernel leaves its arguments unchanged, self too.",
            "Return the array and assign it outside.",
        )


class MethodAdapter:
    """
    A function of (arguments..., attributes...) that runs a method on a proxy.

    `names` are the attributes handed out; `parameters` the kernel's parameters.
    """

    def __init__(
        self, method: Callable[..., Any], owner: type, names: tuple[str, ...]
    ) -> None:
        self.method, self.owner, self.names = method, owner, names
        self.reference = method  # Tracing looks into what a captured one reads.
        own = list(inspect.signature(method).parameters.values())[1:]
        self.arguments = tuple(p.name for p in own)
        self.prefix = "self_"
        while any(self.prefix + name in self.arguments for name in names):
            self.prefix = f"_{self.prefix}"
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        extra = [inspect.Parameter(self.prefix + name, kind) for name in names]
        plain = [p.replace(default=inspect.Parameter.empty) for p in own]
        self.signature = inspect.Signature(plain + extra)
        self.functions = frozenset(functions_of(owner))

    def function(self) -> Callable[..., Any]:
        """Return the function that a kernel is made of."""

        def adapted(*args: Any, **kwargs: Any) -> Any:
            bound = self.signature.bind(*args, **kwargs).arguments
            values = {name: bound[self.prefix + name] for name in self.names}
            given = [bound[name] for name in self.arguments]
            return self.method(Proxy(self.owner, values), *given)

        adapted.__name__ = self.method.__name__
        adapted.__qualname__ = self.method.__qualname__
        adapted.__module__ = self.method.__module__
        adapted.__doc__ = self.method.__doc__
        adapted.__signature__ = self.signature  # type: ignore[attr-defined]
        return adapted

    def values(self, instance: Any) -> tuple[Any, ...]:
        """Read the attributes from an instance, in order."""
        return tuple(getattr(instance, name, Absent) for name in self.names)

    def shadowed(self, instance: Any) -> str:
        """Name a function of the class that an instance has its own value for."""
        own = self.functions.intersection(getattr(instance, "__dict__", ()))
        return min(own.difference(self.names), default="")


def functions_of(owner: type) -> Iterator[str]:
    """Yield the names of a class's functions, inherited ones too."""
    kinds = (FunctionType, staticmethod, classmethod)
    for base in owner.__mro__:
        yield from (n for n, value in vars(base).items() if isinstance(value, kinds))


@dataclass(frozen=True, slots=True)
class MethodKernel:
    """A method's kernel in one class, and what it reads from `self`."""

    adapter: MethodAdapter
    kernel: TunedKernel[Any, Any]


def kernel_of_class(
    kernel: TunedKernel[Any, Any], owner: type
) -> TunedKernel[Any, Any]:
    """
    Return the kernel of a method in a class, without an instance.

    What the method reads from `self` is taken for arrays. Raises TraceError where it
    is not, such as a name of an activation.
    """
    wanted = ""
    while True:
        known = kernel._for_class(owner, wanted)
        try:
            _ = known.kernel.spec
        except Unread as unread:
            wanted = unread.name
        else:
            return known.kernel


class MethodCall:
    """A tuned method of one instance: called, tuned and explained without `self`."""

    def __init__(self, kernel: TunedKernel[Any, Any], instance: Any) -> None:
        self._kernel, self._instance = kernel, instance
        self.__doc__, self.__name__ = kernel.__doc__, kernel.__name__

    def __repr__(self) -> str:
        return f"<{self._kernel!r} of {self._instance!r}>"

    def __call__(self, /, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Run the method; attributes are read from the instance now."""
        return self._with(lambda kernel, full: kernel(*full, out=out), args, kwargs)

    def explain(self, *args: Any) -> Any:
        """Say what a call would run and why."""
        return self._with(lambda kernel, full: kernel.explain(*full), args, {})

    def tune(self, *args: Any, **options: Any) -> Any:
        """Measure every applicable variant at these arguments."""
        return self._with(lambda kernel, full: kernel.tune(*full, **options), args, {})

    def bind(self, *args: Any, constant: tuple[str, ...] = ()) -> Any:
        """Bind the method at these arguments; attributes are named `self_w`."""
        self.explain(*args)  # The attributes are known once the method is traced.
        return self._with(
            lambda kernel, full: kernel.bind(*full, constant=constant), args, {}
        )

    @property
    def stats(self) -> Any:
        """The counts of the method in the instance's class."""
        return self._kernel._for_class(type(self._instance)).kernel.stats

    def variants(self, *args: Any) -> Any:
        """Return the variants that could serve these arguments."""
        return self._with(lambda kernel, full: kernel.variants(*full), args, {})

    def reference(self, *args: Any, **kwargs: Any) -> Any:
        """Run the method as it was written."""
        return self._kernel.reference(self._instance, *args, **kwargs)

    def pin(self, variant: Any) -> None:
        """Run one variant only, in every instance; see `TunedKernel.pin`."""
        self._kernel.pin(variant)

    def unpin(self) -> None:
        """Let the decisions choose again, in every instance."""
        self._kernel.unpin()

    def forget(self) -> None:
        """Drop what the method remembers in memory, of every instance."""
        self._kernel.forget()

    def _with(
        self, action: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Do something with the kernel and all arguments, learning attributes."""
        args = self._complete(args, kwargs)
        wanted = ""
        while True:
            known = self._kernel._for_class(type(self._instance), wanted)
            try:
                wanted = known.adapter.shadowed(self._instance)
                if not wanted:
                    full = (*args, *known.adapter.values(self._instance))
                    return action(known.kernel, full)
            except Unread as unread:
                wanted = unread.name

    def _complete(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        signature = self._kernel._subject.signature
        if not kwargs and len(args) == len(signature.parameters) - 1:
            return args
        bound = signature.bind(self._instance, *args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())[1:]
