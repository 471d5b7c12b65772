"""Kernels and values of classes count by what makes them what they are."""

from __future__ import annotations

import enum
from collections import namedtuple
from dataclasses import dataclass, make_dataclass
from types import MappingProxyType
from typing import Any

import cupy
import numba
import numpy as np
import pytest
from numba import cuda, float32
from scipy.special import erf, expit

from tilewise import TraceError, code_version
from tilewise.api.raw import RawKernel


def doubled(x: Any) -> Any:
    """Be a kernel's function."""
    return x * float32(2)


def tripled(x: Any) -> Any:
    """Be another kernel's function."""
    return x * float32(3)


def stored(a: Any) -> None:
    """Be a GPU kernel's function."""
    a[cuda.grid(1)] = float32(0.5)


@dataclass(frozen=True)
class Config:
    """A frozen value of the user's."""

    tile: int
    name: str = "a"

    def threads(self) -> int:
        """Be a method that dataclass did not make."""
        return self.tile * 2


@dataclass
class Loose:
    """A value that can change."""

    tile: int = 1


class Mode(enum.Enum):
    """The user's choice."""

    FAST = 1
    EXACT = 2


Point = namedtuple("Point", "x y")  # noqa: PYI024 - the untyped kind is meant
SOURCE = 'extern "C" __global__ void k(float* a) { a[0] = 1.0f; }'


def raw(source: str = SOURCE, name: str = "k", options: tuple[str, ...] = ()) -> Any:
    """Make CuPy's kernel from CUDA source."""
    return cupy.RawKernel(source, name, options)


def elementwise(operation: str = "y = x * 2", kind: str = "float32 x") -> Any:
    """Make CuPy's kernel from one operation."""
    return cupy.ElementwiseKernel(kind, "float32 y", operation, "k")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (numba.njit(doubled), numba.njit(tripled)),
        (numba.njit(doubled), numba.njit(fastmath=True)(doubled)),
        (cuda.jit(stored), cuda.jit(fastmath=True)(stored)),
        (cuda.jit(stored), cuda.jit(device=True)(stored)),
        (numba.vectorize(doubled), numba.vectorize(tripled)),
        (numba.float32, numba.float64),
        (numba.float32[:], numba.float32[::1]),
        (raw(), raw(SOURCE.replace("1.0f", "2.0f"))),
        (raw(), raw(options=("-use_fast_math",))),
        (raw(), raw(SOURCE.replace("k(", "l("), "l")),
        (cupy.RawModule(code=SOURCE), cupy.RawModule(code=SOURCE + " ")),
        (elementwise(), elementwise("y = x * 3")),
        (elementwise(), elementwise(kind="float64 x")),
        (cupy.fuse()(doubled), cupy.fuse()(tripled)),
        (erf, expit),
        (Config(1), Config(2)),
        (Config(1), Config(1, "b")),
        (Mode.FAST, Mode.EXACT),
        (Point(1, 2), Point(2, 1)),
        (Point(1, 2), (1, 2)),
        (MappingProxyType({"a": 1}), MappingProxyType({"a": 2})),
        (make_dataclass("D", ["a"]), make_dataclass("D", ["b"])),
        (make_dataclass("D", [("a", int, 1)]), make_dataclass("D", [("a", int, 2)])),
        (doubled, numba.njit(doubled)),
    ],
    ids=[
        *[
            "function",
            "option",
            "fastmath",
            "device",
            "vectorized",
            "type",
            "layout",
            "source",
            "nvcc",
            "entry",
            "module",
        ],
        *[
            "operation",
            "params",
            "fused",
            "ufunc",
            "field",
            "second",
            "member",
            "point",
            "tuple",
        ],
        *["mapping", "named", "default", "compiled"],
    ],
)
def test_differences_count(one: Any, two: Any):
    """Another function, option, source, field or member is another version."""
    assert code_version(one) != code_version(two)


@pytest.mark.parametrize(
    "make",
    [
        lambda: numba.njit(fastmath=True)(doubled),
        lambda: cuda.jit(stored),
        raw,
        elementwise,
        lambda: cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "k"),
        lambda: Config(3),
        lambda: MappingProxyType({"b": 1, "a": 2}),
        lambda: np.dtype([("a", "f4"), ("b", "i8")]),
    ],
    ids=[
        "numba",
        "cuda",
        "raw",
        "elementwise",
        "reduction",
        "dataclass",
        "mapping",
        "dtype",
    ],
)
def test_made_again_it_is_the_same(make: Any):
    """What is made twice from the same parts has one version."""
    assert code_version(make()) == code_version(make())


def test_compiling_does_not_count():
    """A kernel that has been compiled and run is the same kernel."""
    kernel = numba.njit(doubled)
    before = code_version(kernel)
    kernel(1.0)

    assert before == code_version(kernel)


def test_method_of_a_dataclass_counts():
    """What the user wrote into a dataclass is code, what dataclass made is not."""
    other = type("Config", (), dict(vars(Config)) | {"threads": lambda self: self.tile})

    assert code_version(Config) != code_version(other)


def test_kernel_from_a_file_is_refused():
    """A module of compiled code counts on a file that can change."""
    with pytest.raises(TraceError, match="its file_path names a file"):
        code_version(cupy.RawModule(path="kernels.cubin"))


def test_dataclass_that_can_change_is_refused():
    """A value that isn't frozen is refused by its class."""
    with pytest.raises(TraceError, match="the dataclass Loose is not frozen"):
        code_version(Loose())


def test_installed_package_counts_by_version(monkeypatch: pytest.MonkeyPatch):
    """A function of another installed package is identified by its release."""
    from tilewise.build import origin

    before = code_version(erf)
    monkeypatch.setattr(origin, "version_of", lambda top: "0.0.1")

    assert before != code_version(erf)


def test_numpys_version_does_not_count(monkeypatch: pytest.MonkeyPatch):
    """What provenance records by itself does not change the code's version."""
    from tilewise.build import origin

    before = code_version(np.maximum)
    monkeypatch.setattr(origin, "version_of", lambda top: "0.0.1")

    assert before == code_version(np.maximum)


def own(source: str = SOURCE, *options: str, arch: str | None = None) -> RawKernel:
    """Make tilewise's kernel from CUDA source."""
    return RawKernel(source, "k", options, arch)


@pytest.mark.parametrize(
    "other",
    [own(SOURCE.replace("1.0f", "2.0f")), own(SOURCE, "-DX"), own(arch="sm_80")],
    ids=("source", "option", "arch"),
)
def test_what_makes_a_raw_kernel_counts(other: RawKernel):
    """Source, options and arch are each part of the version; equal ones are equal."""
    assert code_version(own()) == code_version(own())
    assert code_version(own()) != code_version(other)
