"""The face: a decorated function that is called like the function itself."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from tilewise.api.bound import BoundKernel
from tilewise.api.checks import checked_parameters, checked_pin
from tilewise.api.method import MethodAdapter, MethodCall, MethodKernel, Proxy
from tilewise.api.own import OwnVariants, axes_key, checked_axes
from tilewise.api.registry import register
from tilewise.api.serving import Serving
from tilewise.api.shapes import assumption, default_forms, question_at
from tilewise.errors import ArgumentError
from tilewise.model.resolution import REFERENCE
from tilewise.model.spec import Spec
from tilewise.model.standin import Standin, store
from tilewise.model.variant import Variant
from tilewise.runtime.dispatch import Dispatcher, Entry, python_key
from tilewise.runtime.load import entry_for
from tilewise.runtime.question import Options, Subject, ask
from tilewise.runtime.resolve import Resolver
from tilewise.runtime.tally import Tally

if TYPE_CHECKING:  # What a call does not need is imported when it is asked for.
    from tilewise.api.explain import Explanation, Stats, TuneReport

__all__ = ["TunedKernel"]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def no_pack(*args: Any) -> bytes | None:
    """Stand for the native key until the first miss has loaded it."""
    return None


class TunedKernel(OwnVariants, Serving, Generic[P, R]):
    """
    A function that runs as the fastest verified variant for its arguments.

    Made by `tuned_kernel`. It is called like the function, with NumPy arrays of
    shapes (m, k) and (k, n) for the factors of its product and whatever broadcasts
    to (m, n) for the rest, and returns what the function returns: same dtype, same
    shape, values within the stated tolerance.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        options: Options,
        *,
        listed: bool = True,
    ) -> None:
        if isinstance(function, TunedKernel):
            function = function.reference
        functools.update_wrapper(self, function, updated=())
        self.reference: Callable[..., Any] = function
        parameters = checked_parameters(function)
        axes = checked_axes(options.axes, parameters)
        self._subject = Subject(function, name, parameters, options, axes)
        super().__init__(axes_key(self._subject) if axes else no_pack)
        self._pin: Variant | None = None
        self._tally, self._lock = Tally(), threading.RLock()
        self._methods: dict[type, MethodKernel] = {}
        self._bound: weakref.WeakSet[BoundKernel] = weakref.WeakSet()
        if listed:
            register(self)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, out: A, **kwargs: Any) -> A: ...
    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Run the kernel; see the class. `out=` is filled and returned."""

    __call__ = Dispatcher.__call__  # type: ignore[assignment]  # noqa: F811

    def __reduce__(self) -> str:
        return self.__qualname__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if type(instance) is Proxy:  # super().method() in a method that is traced.
            return MethodType(self.reference, instance)
        return MethodCall(self, instance)

    def _for_class(self, owner: type, wanted: str = "") -> MethodKernel:
        """Return the kernel of this method in a class, one more attribute wanted."""
        if self._subject.axes or self._subject.user.methods:
            raise ArgumentError(
                f"{self._subject.name} is a method: axes and variants are for functions"
            )
        with self._lock:
            known = self._methods.get(owner)
            if known is None or (wanted and wanted not in known.adapter.names):
                names = (*known.adapter.names, wanted) if known else ()
                adapter = MethodAdapter(self.reference, owner, names)
                name, options = self._subject.name, self._subject.options
                kernel = TunedKernel(adapter.function(), name, options, listed=False)
                kernel._pin, kernel._tally = self._pin, self._tally
                known = self._methods[owner] = MethodKernel(adapter, kernel)
            return known

    def _renew_locks(self) -> None:
        """Replace locks that another thread may have held when a child was forked."""
        self._lock, self._subject.lock = threading.RLock(), threading.RLock()
        for method in self._methods.values():
            method.kernel._renew_locks()

    def __repr__(self) -> str:
        return f"<tuned kernel {self._subject.name}: {self.__module__}>"

    # What is asked.

    @property
    def spec(self) -> Spec:
        """
        The product and epilogue at the signature's, or else the default, forms.

        Raises TraceError when the function's structure cannot be fused, ArgumentError
        for a kernel with axes, which is never traced.
        """
        if self._subject.axes:
            raise ArgumentError(f"{self._subject.name} has axes, so it has no spec")
        found = self._subject.spec(default_forms(self._subject))
        if isinstance(found, str):
            raise ArgumentError(found)
        return found

    def explain(
        self,
        *args: Any,
        dtype: Any = "float32",
        residency: str = "host",
        signature: str | None = None,
        **sizes: int,
    ) -> Explanation:
        """
        Say what a call would run and why, without running or measuring anything.

        Takes the kernel's arguments, or sizes: m=, n= and k= with a dtype and, where
        the decorator states none, a signature; or those of a kernel's own axes, for
        which its `make_inputs` makes arguments. Raises ArgumentError when neither is
        complete.
        """
        made = (dtype, residency, signature)
        question = question_at(self._subject, args, sizes, made)
        resolution = self._resolver().explained(question, self._pin)
        assumed = "" if args else assumption(self._subject, signature)
        from tilewise.api.explain import Explanation

        return Explanation(self._subject.name, resolution, assumed)

    def variants(self, *args: Any) -> list[Variant]:
        """Return the variants that could serve these arguments, the reference first."""
        question = ask(self._subject, self._subject.bind(args, {}))
        if question.problem is None:
            return [REFERENCE]
        able, _ = self._resolver().survey(question, question.problem)
        return [REFERENCE, *able]

    # What is run.

    def pin(self, variant: str | Variant) -> None:
        """
        Run one variant only: "cpu/blas_serial", or with its configuration.

        Raises ArgumentError for an engine or method that there is none of, and for a
        variant of its own that the kernel has not; a pinned variant that can't run
        raises EngineError when the kernel is called.
        """
        pin = checked_pin(variant, self._subject, self._resolver().workshop.engines)
        self._set_pin(pin)

    def unpin(self) -> None:
        """Let the decisions choose again."""
        self._set_pin(None)

    def _set_pin(self, pin: Variant | None) -> None:
        self._pin = pin
        self._clear()
        for method in self._methods.values():
            method.kernel._set_pin(pin)

    def tune(
        self,
        *args: Any,
        shapes: Sequence[tuple[int, int, int]] | None = None,
        sizes: Sequence[Mapping[str, int] | tuple[int, ...]] | None = None,
        ranges: Mapping[str, int | tuple[int, int]] | None = None,
        dtype: Any = "float32",
        residency: str = "host",
        signature: str | None = None,
        force: bool = False,
        budget_s: float | None = None,
        progress: bool | None = None,
    ) -> TuneReport:
        """
        Measure every applicable variant and keep the winner of each region.

        Takes the kernel's arguments, or `shapes`, a list of (m, n, k) for which
        arguments are made by a signature: the one given, the decorator's, or one that
        is assumed, which the report says; `sizes` are mappings of a kernel's own axes,
        or tuples in their order, for which its `make_inputs` makes them. `ranges`, such
        as {"m": (1, 4096), "n": (1, 4096), "k": 64}, are swept: every size in them is
        then decided. Without any it takes the sizes that the decorator states. Inputs
        are never written, outputs are poisoned, so a variant that leaves an element
        unwritten is rejected. What is decided already is measured again only with
        `force`. `budget_s` bounds measuring (seconds a problem, or a sweep: 60);
        compiling is counted apart. `progress` shows where it is on a terminal, or lines
        elsewhere when True. Ctrl-C keeps what is decided by then and the report says
        so. Raises SettingError naming what forbids tuning, such as TILEWISE_TUNE=off.
        """
        from tilewise.api.tuning import tune

        try:
            return tune(
                self._subject, self._resolver(), self._tally, args, shapes=shapes,
                sizes=sizes, ranges=ranges, made=(dtype, residency, signature),
                force=force, budget_s=budget_s, progress=progress,
            )  # fmt: skip
        finally:
            self._clear()

    def bind(self, *args: Any, constant: Sequence[str] = ()) -> BoundKernel:
        """
        Return the kernel at these arguments' forms, with the constants copied.

        `constant` names the arguments that stay; the bound kernel is called with the
        others. Waits where another measures the same problem. At most 1024 bound
        kernels may be alive. Raises ArgumentError for a name that is no parameter.
        """
        return BoundKernel(self, self._subject.bind(args, {}), constant)

    def _bound_entry(self, args: tuple[Any, ...], constants: tuple[int, ...]) -> Entry:
        """Resolve a bound call."""
        question = replace(ask(self._subject, args, constants), bound=True)
        return entry_for(self._resolver(), question, self._pin, self._tally)[0]

    def forget(self) -> None:
        """Drop what this kernel remembers in memory; the next call traces again."""
        with self._subject.lock:
            specs = list(self._subject.specs.values())
            self._subject.specs.clear()
            digests = {s.digest for s in specs if not isinstance(s, str)}
            digests.add(self._subject.versions.get("", ""))
            self._subject.versions.clear()
        self._resolver().tables.drop(digests)
        self._clear()
        for method in list(self._methods.values()):
            method.kernel.forget()

    @property
    def stats(self) -> Stats:
        """Counts of what this kernel did in this process, as a method too."""
        live: list[Entry] = []
        for kernel in (self, *(method.kernel for method in self._methods.values())):
            live += list(kernel._entries.values())
            for bound in list(kernel._bound):
                live += bound._live()
        from tilewise.api.explain import stats_of

        return stats_of(self._tally.with_live(live))

    def _clear(self) -> None:
        """Retire the entries, keeping their counts."""
        with self._lock:
            retired, self._entries = self._entries, {}
            for entry in retired.values():
                self._tally.retire(entry)

    @staticmethod
    def _resolver() -> Resolver:
        from tilewise.runtime.once import resolver  # Imported when first needed.

        return resolver()

    # The ways of a call that the dispatcher does not know.

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return self._subject.bind(args, kwargs)

    def _miss(self, args: tuple[Any, ...], out: Any) -> Any:
        if any(type(arg) is Standin for arg in args):
            result = self.reference(*args)
            return result if out is None else store(out, result)
        if self._pack is no_pack:
            from tilewise.device.pack import packer  # It brings llvmlite.

            self._pack = packer()
        entries, given = self._entries, args
        args = self._subject.bind(args, {})
        if any(type(arg) is int and arg.bit_length() > 63 for arg in args):
            return self._unfused(given, out)
        question = ask(self._subject, args)
        rest = args[len(given) :]
        entry, lasting = entry_for(
            self._resolver(), question, self._pin, self._tally, rest
        )
        key = self._pack(*given) or python_key(given)
        with self._lock:
            # A pin or forget meanwhile has begun a new table: this answer is not its.
            if key is not None and lasting and entries is self._entries:
                entry = entries.setdefault(key, entry)
                entry.count += 1
            else:
                self._tally.add(entry, 1)
        return self._serve(entry, given, out)
