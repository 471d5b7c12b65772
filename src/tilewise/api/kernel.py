"""The face: a decorated function that is called like the function itself."""

from __future__ import annotations

import functools
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from tilewise.api.bound import BoundKernel
from tilewise.api.checks import check_device_out, check_out, checked_parameters
from tilewise.api.explain import Explanation, Stats, TuneReport, saving_us
from tilewise.api.method import MethodAdapter, MethodCall, MethodKernel
from tilewise.api.progress import progress_of
from tilewise.api.registry import register
from tilewise.api.shapes import arguments_at, default_forms
from tilewise.build.build import Counts
from tilewise.errors import ArgumentError, EngineError, SettingError
from tilewise.model.resolution import REFERENCE, Resolution
from tilewise.model.spec import Spec
from tilewise.model.standin import Standin
from tilewise.model.variant import Variant
from tilewise.runtime.dispatch import Dispatcher, Entry, python_key
from tilewise.runtime.on_device import allocating, reference_on
from tilewise.runtime.question import Options, Question, Subject, ask
from tilewise.runtime.resolve import Resolver, is_passing, mode_of

__all__ = ["TunedKernel"]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def no_pack(*args: Any) -> bytes | None:
    """Stand for the native key until the first miss has loaded it."""
    return None


class TunedKernel(Dispatcher, Generic[P, R]):
    """
    A function that runs as the fastest verified variant for its arguments.

    Made by `tuned_kernel`. It is called like the function, with NumPy arrays of
    shapes (m, k) and (k, n) for the factors of its product and whatever broadcasts
    to (m, n) for the rest, and returns what the function returns: same dtype, same
    shape, values within the stated tolerance.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], name: str, options: Options) -> None:
        super().__init__(no_pack)
        functools.update_wrapper(self, function)
        self.reference: Callable[..., Any] = function
        parameters = checked_parameters(function)
        self._subject = Subject(function, name, parameters, options)
        self._pin: Variant | None = None
        self._counts, self._tunings = Counts(), 0
        self._retired: Counter[str] = Counter()
        self._fallbacks, self._tuning_ms, self._saved_us = 0, 0.0, 0.0
        self._lock, self._tuning = threading.RLock(), threading.Lock()
        self._methods: dict[type, MethodKernel] = {}
        register(self)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, out: A, **kwargs: Any) -> A: ...
    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Run the kernel; see the class. `out=` is filled and returned."""

    __call__ = Dispatcher.__call__  # noqa: F811

    def __reduce__(self) -> str:
        return self.__qualname__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return MethodCall(self, instance)

    def _for_class(self, owner: type, wanted: str = "") -> MethodKernel:
        """Return the kernel of this method in a class, one more attribute wanted."""
        with self._lock:
            known = self._methods.get(owner)
            if known is None or (wanted and wanted not in known.adapter.names):
                names = (*known.adapter.names, wanted) if known else ()
                adapter = MethodAdapter(self.reference, owner, names)
                kernel = TunedKernel(
                    adapter.function(), self._subject.name, self._subject.options
                )
                known = self._methods[owner] = MethodKernel(adapter, kernel)
            return known

    def __repr__(self) -> str:
        return f"<tuned kernel {self._subject.name}: {self.__module__}>"

    # What is asked.

    @property
    def spec(self) -> Spec:
        """
        The product and epilogue at the signature's, or else the default, forms.

        Raises TraceError when the function's structure cannot be fused.
        """
        found = self._subject.spec(default_forms(self._subject))
        if isinstance(found, str):
            raise ArgumentError(found)
        return found

    def explain(
        self,
        *args: Any,
        m: int | None = None,
        n: int | None = None,
        k: int | None = None,
        dtype: Any = "float32",
        residency: str = "host",
    ) -> Explanation:
        """
        Say what a call would run and why, without running or measuring anything.

        Takes the kernel's arguments, or sizes (m, n, k) with a dtype. Raises
        ArgumentError when neither is complete.
        """
        question = self._question(args, (m, n, k), dtype, residency)
        resolution = self._resolver().look(question, self._pin)
        return Explanation(self._subject.name, resolution)

    def variants(self, *args: Any) -> list[Variant]:
        """Return the variants that could serve these arguments, the reference first."""
        question = self._question(args, (None, None, None), "float32", "host")
        if question.problem is None:
            return [REFERENCE]
        resolver = self._resolver()
        able, _ = resolver.workshop.survey(question.problem, resolver.allowed(question))
        return [REFERENCE, *able]

    def _question(
        self, args: tuple[Any, ...], sizes: Sequence[int | None], dtype: Any, place: str
    ) -> Question:
        if not args:
            if None in sizes:
                raise ArgumentError(
                    f"{self._subject.name}: give its arguments, or m=, n= and k="
                )
            whole = [int(cast(int, size)) for size in sizes]
            args = arguments_at(self._subject, whole, dtype, place)
        return ask(self._subject, self._subject.bind(args, {}))

    # What is run.

    def pin(self, variant: str | Variant) -> None:
        """
        Run one variant only: "cpu/blas_serial", or with its configuration.

        Raises ValueError for text that is no variant; a pinned variant that can't
        run raises EngineError when the kernel is called.
        """
        self._pin = Variant.parse(variant) if isinstance(variant, str) else variant
        self._clear()

    def unpin(self) -> None:
        """Let the decisions choose again."""
        self._pin = None
        self._clear()

    def tune(
        self,
        *args: Any,
        shapes: Sequence[tuple[int, int, int]] | None = None,
        dtype: Any = "float32",
        residency: str = "host",
        force: bool = False,
        budget_s: float | None = None,
        progress: bool | None = None,
    ) -> TuneReport:
        """
        Measure every applicable variant and keep the winner of each region.

        Takes the kernel's arguments, or `shapes`, a list of (m, n, k) for which
        arguments are made. Inputs are never written, outputs are poisoned, so a
        variant that leaves an element unwritten is rejected. What is decided
        already is measured again only with `force`. `budget_s` bounds measuring
        (seconds a problem); compiling is counted apart. `progress` shows a bar on a
        terminal, or lines elsewhere when True. Ctrl-C keeps what is decided by then and
        the report says so. Raises SettingError when
        TILEWISE_TUNE=off or TILEWISE_READONLY forbids writing.
        """
        problems = [(None, None, None)] if shapes is None else list(shapes)
        resolutions: list[Resolution] = []
        show = progress_of(self._subject.name, len(problems), progress)
        interrupted = False
        with show.shown():
            for sizes in problems:
                question = self._question(args, sizes, dtype, residency)
                if mode_of(question) == "off":
                    raise SettingError("TILEWISE_TUNE", "off", "auto or force to tune")
                show.begin("x".join(map(str, sizes)) if args == () else "")
                try:
                    resolutions.append(self._tuned(question, force, budget_s))
                except KeyboardInterrupt:
                    interrupted = True
                    break
                show.end(resolutions[-1])
        self._clear()
        return TuneReport(self._subject.name, tuple(resolutions), interrupted)

    def _tuned(
        self, question: Question, force: bool, budget_s: float | None
    ) -> Resolution:
        """Measure a question unless it is decided, and say what is decided then."""
        resolver = self._resolver()
        resolution = resolver.look(question)
        undecided = resolution.grade != "measured" and not resolution.final
        if force or undecided:
            self._settle(resolver, question, budget_s)
            resolution = resolver.look(question)
        return resolution

    def bind(self, *args: Any, constant: Sequence[str] = ()) -> BoundKernel:
        """
        Return the kernel at these arguments' forms, with the constants copied.

        `constant` names the arguments that stay; the bound kernel is called with the
        others. Raises ArgumentError for a name that is no parameter.
        """
        return BoundKernel(self, self._subject.bind(args, {}), constant)

    def _bound_entry(self, args: tuple[Any, ...], constants: tuple[int, ...]) -> Entry:
        """Resolve a bound call and list its entry among the kernel's own."""
        question = ask(self._subject, args, constants)
        entry, _ = self._entry(question)
        return self._entries.setdefault(("bound", id(entry)), entry)

    def forget(self) -> None:
        """Drop what this kernel remembers in memory; the next call traces again."""
        self._subject.specs.clear()
        self._resolver().tables.clear()
        self._clear()

    @property
    def stats(self) -> Stats:
        """Counts of what this kernel did in this process."""
        dispatches, fallbacks = Counter(self._retired), self._fallbacks
        saved_us = self._saved_us
        for entry in list(self._entries.values()):
            dispatches[entry.variant] += entry.count
            fallbacks += entry.count if entry.fallback else 0
            saved_us += entry.count * entry.saving_us
        counts = self._counts
        return Stats(
            dict(sorted((+dispatches).items())),
            counts.compiles,
            counts.artifact_hits,
            counts.memory_hits,
            fallbacks,
            self._tunings,
            counts.compile_ms,
            self._tuning_ms,
            saved_us / 1e3,
        )

    def _clear(self) -> None:
        """Retire the entries, keeping their counts."""
        with self._lock:
            retired, self._entries = self._entries, {}
            for entry in retired.values():
                self._retired[entry.variant] += entry.count
                self._fallbacks += entry.count if entry.fallback else 0
                self._saved_us += entry.count * entry.saving_us

    @staticmethod
    def _resolver() -> Resolver:
        from tilewise.runtime.process import resolver  # Imported when first needed.

        return resolver()

    # The ways of a call that the dispatcher does not know.

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return self._subject.bind(args, kwargs)

    def _miss(self, args: tuple[Any, ...], out: Any) -> Any:
        if any(type(arg) is Standin for arg in args):
            return self.reference(*args)
        if self._pack is no_pack:
            from tilewise.device.pack import packer  # It brings llvmlite.

            self._pack = packer()
        given, args = args, self._subject.bind(args, {})
        question = ask(self._subject, args)
        entry, lasting = self._entry(question)
        key = self._pack(*given) or python_key(given)
        if len(given) < len(args) and entry.run is not None:
            entry.run = with_defaults(entry.run, args[len(given) :])
        if key is not None and lasting:
            entry = self._entries.setdefault(key, entry)
            entry.count += 1
        else:
            self._retired[entry.variant] += 1
            self._fallbacks += entry.fallback
        if out is not None:
            return self._into(entry, given, out)
        if entry.run is None:
            return cast(Any, entry.direct)(*given)
        return entry.run(*given, np.empty(entry.shape, entry.dtype))

    def _entry(self, question: Question) -> tuple[Entry, bool]:
        """Resolve a question; the second value says whether the answer lasts."""
        resolver = self._resolver()
        resolution, lasting = resolver.look(question, self._pin), True
        if self._wants_tuning(question, resolution):
            if self._tuning.acquire(blocking=False):
                try:
                    self._settle(resolver, question, None)
                finally:
                    self._tuning.release()
                resolution = resolver.look(question)
            else:
                lasting = False  # Another thread measures: use what there is.
        if not resolution.final and resolution.grade != "measured":
            lasting &= not is_passing()
        return self._working(resolver, resolution, question.residency), lasting

    def _wants_tuning(self, question: Question, resolution: Resolution) -> bool:
        mode = mode_of(question)
        undecided = resolution.grade != "measured" or mode == "force"
        return mode != "off" and undecided and not resolution.final

    def _settle(
        self, resolver: Resolver, question: Question, budget_s: float | None
    ) -> None:
        self._tunings += 1
        begun = time.perf_counter()
        resolver.settle(question, self._counts, budget_s)
        self._tuning_ms += 1e3 * (time.perf_counter() - begun)

    def _working(
        self, resolver: Resolver, resolution: Resolution, residency: str
    ) -> Entry:
        """Load what was resolved; what fails gives way to the reference, loudly."""
        on_device = residency == "device"
        fallback = resolution.variant == REFERENCE and resolution.grade == "none"
        fallback &= self._pin is None
        try:
            run = resolver.run_of(resolution, self._counts)
        except EngineError as error:
            if self._pin is not None:
                raise
            warnings.warn(
                f"{self._subject.name}: {resolution.variant} failed, "
                f"the reference serves instead: {error}",
                RuntimeWarning,
                stacklevel=5,
            )
            run, fallback = None, True
        if run is None or resolution.problem is None:
            direct = reference_on(self.reference) if on_device else self.reference
            return Entry("reference", None, direct=direct, fallback=fallback)
        problem = resolution.problem
        shape, dtype = problem.shape, np.dtype(problem.spec.dtype)
        entry = Entry(str(resolution.variant), run, shape, dtype, fallback=fallback)
        if on_device:
            entry.direct, entry.run = allocating(run, problem), None
            entry.filling = run
        entry.saving_us = saving_us(resolution)
        return entry

    def _into(self, entry: Entry, args: tuple[Any, ...], out: Any) -> Any:
        if entry.filling is not None:
            check_device_out(out, entry.shape, entry.dtype)
            return entry.filling(*args, out)
        if entry.run is None:
            result = cast(Any, entry.direct)(*args)
            check_out(
                self._subject.parameters, args, out, np.shape(result), result.dtype
            )
            np.copyto(out, result)
            return out
        check_out(self._subject.parameters, args, out, entry.shape, entry.dtype)
        return entry.run(*args, out)


def with_defaults(run: Callable[..., Any], rest: tuple[Any, ...]) -> Callable[..., Any]:
    """Append defaulted arguments before `out`."""
    return lambda *args: run(*args[:-1], *rest, args[-1])
