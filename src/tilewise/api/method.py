"""
A decorated method: what it reads from `self` become operands of a kernel.

While tracing, and in the reference, `self` is a proxy that hands out the attributes'
values and refuses writes. Which attributes a method reads is learned by letting it
ask: a name that is not known yet is added and the work starts again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from tilewise.errors import TraceError
from tilewise.model.source import caret

if TYPE_CHECKING:
    from tilewise.api.kernel import TunedKernel

__all__ = ["MethodAdapter", "MethodCall", "MethodKernel", "Proxy", "Unread"]


class Unread(Exception):
    """A method reads an attribute that its adapter does not hand out yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class Proxy:
    """Stand for an object: attributes by name, methods and properties of its class."""

    __slots__ = ("_owner", "_values")

    def __init__(self, owner: type, values: dict[str, Any]) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        found = inspect.getattr_static(self._owner, name, None)
        if isinstance(found, property) and found.fget is not None:
            return found.fget(self)
        if isinstance(found, FunctionType):
            return MethodType(found, self)
        if isinstance(found, (staticmethod, classmethod)):
            return getattr(self._owner, name)
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
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
        extra = [inspect.Parameter(f"self_{name}", kinds) for name in names]
        plain = [p.replace(default=inspect.Parameter.empty) for p in own]
        self.signature = inspect.Signature(plain + extra)
        self.arguments = tuple(p.name for p in own)

    def function(self) -> Callable[..., Any]:
        """Return the function that a kernel is made of."""

        def adapted(*args: Any, **kwargs: Any) -> Any:
            bound = self.signature.bind(*args, **kwargs).arguments
            values = {name: bound[f"self_{name}"] for name in self.names}
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
        return tuple(getattr(instance, name) for name in self.names)


@dataclass(frozen=True, slots=True)
class MethodKernel:
    """A method's kernel in one class, and what it reads from `self`."""

    adapter: MethodAdapter
    kernel: TunedKernel[Any, Any]


class MethodCall:
    """A tuned method of one instance: called, tuned and explained without `self`."""

    def __init__(self, kernel: TunedKernel[Any, Any], instance: Any) -> None:
        self._kernel, self._instance = kernel, instance
        self.__doc__, self.__name__ = kernel.__doc__, kernel.__name__

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
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
        return self._with(
            lambda kernel, full: kernel.bind(*full, constant=constant), args, {}
        )

    @property
    def stats(self) -> Any:
        """The counts of the method in the instance's class."""
        return self._kernel._for_class(type(self._instance)).kernel.stats

    def _with(
        self, action: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Do something with the kernel and all arguments, learning attributes."""
        args = self._complete(args, kwargs)
        wanted = ""
        while True:
            known = self._kernel._for_class(type(self._instance), wanted)
            try:
                full = (*args, *known.adapter.values(self._instance))
                return action(known.kernel, full)
            except Unread as unread:
                wanted = unread.name
                if not hasattr(self._instance, wanted):
                    kind = type(self._instance).__name__
                    raise AttributeError(
                        f"{kind!r} object has no attribute {wanted!r}"
                    ) from None

    def _complete(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        signature = self._kernel._subject.signature
        if not kwargs and len(args) == len(signature.parameters) - 1:
            return args
        bound = signature.bind(self._instance, *args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())[1:]
