"""What an engine can build: a method with its configuration, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Artifact", "Target", "Value", "Variant"]

Value = int | float | str | bool


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """
    A method and its configuration, written `numba_cuda/shared tile=16`.

    `engine` and `method` name the algorithm; `config` holds (name, value) pairs
    in the order in which the engine states them.
    """

    engine: str
    method: str = ""
    config: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        """Write the variant as it is read by `parse`."""
        values = "".join(f" {name}={value}" for name, value in self.config)
        return self.name + values

    @property
    def name(self) -> str:
        """The engine and its method, without the configuration."""
        return f"{self.engine}/{self.method}" if self.method else self.engine

    @classmethod
    def parse(cls, text: str) -> Variant:
        """
        Read a variant from its written form.

        Raises ValueError when `text` is not `engine[/method] [name=value ...]`.
        """
        head, *pairs = text.split() or [""]
        engine, _, method = head.partition("/")
        if not engine or any("=" not in pair for pair in pairs):
            raise ValueError(f"{text!r} is not engine/method name=value ...")
        named = (pair.partition("=")[::2] for pair in pairs)
        return cls(engine, method, tuple((name, read(value)) for name, value in named))


def read(text: str) -> Value:
    """Read a configuration value: True, False, an integer, a float or a word."""
    if text in ("True", "False"):
        return text == "True"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True, slots=True)
class Target:
    """
    What a build is for.

    `kind` is "cpu", "cuda" or "gl". For the CPU, `arch` is LLVM's name, `features` its
    feature string, `abi` Python's ABI tag and NumPy's C-API version. For CUDA,
    `arch` carries its suffix (sm_90a is not sm_90), for OpenGL it is renderer and
    version; where it is empty nothing can be built and `reason` says why.
    `shared_bytes` is the shared memory of one block, `units` the usable threads or
    the multiprocessors, `buffer_bytes` the most that one array may have (0: no limit).
    """

    kind: str
    arch: str
    triple: str = ""
    features: str = ""
    abi: str = ""
    units: int = 1
    shared_bytes: int = 0
    buffer_bytes: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """
    Compiled bytes with all that is needed to load them again.

    `kind` is "object", "ptx", "cubin" or "glsl"; `entry` the symbol to call; `code` the
    bytes and `text` the PTX that a cubin was linked from (or b""). `resources`
    are figures such as registers and shared bytes; `toolchain` the exact
    versions it was made with; `verified` names the kinds of devices on which its
    results were checked: "emulated" or a GPU's part of the fingerprint.
    """

    kind: str
    entry: str
    code: bytes
    text: bytes = b""
    arch: str = ""
    variant: str = ""
    resources: tuple[tuple[str, int], ...] = ()
    toolchain: tuple[tuple[str, str], ...] = ()
    build_ms: float = 0.0
    verified: tuple[str, ...] = ()
